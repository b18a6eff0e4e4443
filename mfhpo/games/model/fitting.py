"""Hyperparameters fitted to what was observed, and others that may be true."""

import numpy as np

from mfhpo.games.model.hyperparameters import Hyperparameters
from mfhpo.games.model.observed import Observations
from mfhpo.games.model.posterior import Assumptions, Posterior, standardised
from mfhpo.knowledge.arrays import FloatArray

_MOST = 200  # observations of a fit: its work grows with their cube
_STEPS = 60
_FAR = 12.0  # largest absolute value of a parameter in logarithms
_UNLIKE = 3.0  # ratio of levels' standard deviations, from which on a fit begins there too
_STEP, _FLAT = 1e-3, 1e-6  # of differences of gradients, and the smallest curvature
# Of what is drawn to choose from: how many for each chosen, and a distribution that is wider than
# the density, for the chosen to have the right weights.
_PROPOSALS, _FREEDOM, _WIDER = 8, 5.0, 1.2
_FLATTER = 0.9


def first_guess(observations: Observations, assumptions: Assumptions) -> Hyperparameters:
    """Return hyperparameters at the centre of their priors, in the values' unit."""
    posterior = Posterior(standardised(observations, assumptions), assumptions)
    return posterior.hyperparameters(posterior.centre)


def fit(observations: Observations, assumptions: Assumptions) -> Hyperparameters:
    """Return the hyperparameters of the largest posterior density, with weak priors.

    The mean of each level is integrated out, then set to its posterior mean. Levels may have their
    own units: scales have heavy-tailed priors, and noise is relative to them. Of many observations,
    `_MOST` are used, evenly spread over their order.
    """
    posterior = _posterior(observations, assumptions)
    return posterior.hyperparameters(_likeliest(posterior))


def drawn_hyperparameters(
    observations: Observations, assumptions: Assumptions, n_draws: int, rng: np.random.Generator
) -> list[Hyperparameters]:
    """Draw hyperparameters from their posterior, given one observation or more.

    More are drawn around those of the largest density, then resampled in proportion to the ratio of
    densities (Rubin, Using the SIR algorithm to simulate posterior distributions, Bayesian
    Statistics 1988). The ratios are flattened if too few would be chosen. Means of levels are drawn
    from their posterior, given the rest.
    """
    posterior = _posterior(observations, assumptions)
    centre, n_proposals = _likeliest(posterior), _PROPOSALS * n_draws
    steps = _WIDER * rng.standard_normal((n_proposals, posterior.size))
    steps *= np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, n_proposals))[:, None]
    proposals = np.clip(centre + steps @ _axes(centre, posterior).T, -_FAR, _FAR)
    losses = np.array([posterior.loss(at) for at in proposals])
    away = (steps**2).sum(axis=1) / (_FREEDOM * _WIDER**2)
    weights = 0.5 * (_FREEDOM + posterior.size) * np.log1p(away) - losses
    shares = np.cumsum(_even(weights, n_draws))
    ends = (rng.random() + np.arange(n_draws)) / n_draws * shares[-1]
    chosen = proposals[np.searchsorted(shares, ends)]
    return [posterior.hyperparameters(each, rng) for each in chosen]


def _even(logarithms: FloatArray, least: int) -> FloatArray:
    """Flatten weights by a power until they count for at least so many equal ones."""
    power, logarithms = 1.0, logarithms - logarithms.max()
    while True:
        weights: FloatArray = np.exp(power * logarithms)
        if weights.sum() ** 2 >= least * (weights**2).sum():
            return weights
        power *= _FLATTER


def _axes(centre: FloatArray, posterior: Posterior) -> FloatArray:
    """Return columns whose squares sum to the parameters' covariance, by the loss's curvature."""

    def slope(parameters: FloatArray) -> FloatArray:
        return posterior.loss_and_gradient(parameters)[1]

    curvature = np.array(
        [
            (slope(centre + step) - slope(centre - step)) / (2.0 * _STEP)
            for step in _STEP * np.eye(posterior.size)
        ]
    )
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2.0)
    # Nowhere wider than the priors, which are what is believed where observations say nothing.
    spreads = np.minimum(1.0 / np.sqrt(np.maximum(values, _FLAT)), posterior.spreads.max())
    return np.asarray(vectors * spreads)


def _posterior(observations: Observations, assumptions: Assumptions) -> Posterior:
    n = len(observations.values)
    if n > _MOST:
        rows = np.unique(np.linspace(0, n - 1, _MOST).round().astype(int))
        some = {name: values[rows] for name, values in vars(observations).items()}
        observations = Observations(**some)
    return Posterior(standardised(observations, assumptions), assumptions)


def _likeliest(posterior: Posterior) -> FloatArray:
    """Return the parameters of the largest density."""
    from scipy.optimize import minimize  # slow to import, and not needed before

    results = [
        minimize(
            posterior.loss_and_gradient,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-_FAR, _FAR)] * posterior.size,
            options={"maxiter": _STEPS},
        )
        for start in _starts(posterior)
    ]
    return min(results, key=lambda result: float(result.fun)).x


def _starts(posterior: Posterior) -> list[FloatArray]:
    """Return starts of fits: the priors' centre, and the levels' own scales if these differ."""
    levels, values = posterior.observations.levels, posterior.observations.values
    own = posterior.centre.copy()
    scales = own[posterior.scales]
    for level in range(len(scales)):
        values_there = values[levels == level]
        if len(values_there) and np.ptp(values_there) > 0.0:
            scales[level] = np.clip(np.log(values_there.std()), -_FAR, _FAR)
    if len(scales) == 1 or np.ptp(scales) <= np.log(_UNLIKE):
        return [posterior.centre]
    return [posterior.centre, own]
