"""Hyperparameters fitted to what was observed, and others that may be true."""

import numpy as np
from scipy.linalg import cho_solve, cholesky

from mfhpo.games.model.hyperparameters import Hyperparameters
from mfhpo.games.model.marginal_likelihood import (
    Assumptions,
    Layout,
    Standardised,
    jitter,
    loss,
    loss_and_gradient,
    offset_covariance,
    standardised,
    unpacked,
)
from mfhpo.games.model.mogp import covariance
from mfhpo.games.model.observed import Observations
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
    layout = Layout(assumptions)
    return _hyperparameters(layout.centre, layout, observations, assumptions)


def fit(observations: Observations, assumptions: Assumptions) -> Hyperparameters:
    """Return the hyperparameters of the largest posterior density, with weak priors.

    The mean of each level is integrated out, then set to its posterior mean. Levels may have their
    own units: scales have heavy-tailed priors, and noise is relative to them. Of many observations,
    `_MOST` are used, evenly spread over their order.
    """
    some = _some(observations)
    layout = Layout(assumptions)
    found = _fitted(standardised(some, assumptions), layout, assumptions)
    return _hyperparameters(found, layout, some, assumptions)


def drawn_hyperparameters(
    observations: Observations, assumptions: Assumptions, n_draws: int, rng: np.random.Generator
) -> list[Hyperparameters]:
    """Draw hyperparameters from their posterior, given one observation or more.

    More are drawn around those of the largest density, then resampled in proportion to the ratio of
    densities (Rubin, Using the SIR algorithm to simulate posterior distributions, Bayesian
    Statistics 1988). The ratios are flattened if too few would be chosen. Means of levels are drawn
    from their posterior, given the rest.
    """
    some = _some(observations)
    layout = Layout(assumptions)
    standard = standardised(some, assumptions)
    centre = _fitted(standard, layout, assumptions)
    axes = _axes(centre, standard, layout, assumptions)
    n_proposals = _PROPOSALS * n_draws
    steps = _WIDER * rng.standard_normal((n_proposals, layout.size))
    steps *= np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, n_proposals))[:, None]
    proposals = np.clip(centre + steps @ axes.T, -_FAR, _FAR)
    losses = [loss(at, standard.observations, assumptions, standard.unit) for at in proposals]
    away = (steps**2).sum(axis=1) / (_FREEDOM * _WIDER**2)
    weights = 0.5 * (_FREEDOM + layout.size) * np.log1p(away) - np.array(losses)
    shares = np.cumsum(_even(weights, n_draws))
    ends = (rng.random() + np.arange(n_draws)) / n_draws * shares[-1]
    return [
        _hyperparameters(proposals[index], layout, some, assumptions, rng)
        for index in np.searchsorted(shares, ends)
    ]


def _even(logarithms: FloatArray, least: int) -> FloatArray:
    """Flatten weights by a power until they count for at least so many equal ones."""
    power, logarithms = 1.0, logarithms - logarithms.max()
    while True:
        weights: FloatArray = np.exp(power * logarithms)
        if weights.sum() ** 2 >= least * (weights**2).sum():
            return weights
        power *= _FLATTER


def _axes(
    centre: FloatArray, standard: Standardised, layout: Layout, assumptions: Assumptions
) -> FloatArray:
    """Return columns whose squares sum to the parameters' covariance, by the loss's curvature."""

    def slope(parameters: FloatArray) -> FloatArray:
        return loss_and_gradient(parameters, standard.observations, assumptions, standard.unit)[1]

    curvature = np.array(
        [
            (slope(centre + step) - slope(centre - step)) / (2.0 * _STEP)
            for step in _STEP * np.eye(layout.size)
        ]
    )
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2.0)
    # Nowhere wider than the priors, which are what is believed where observations say nothing.
    spreads = np.minimum(1.0 / np.sqrt(np.maximum(values, _FLAT)), layout.spread.max())
    return np.asarray(vectors * spreads)


def _some(observations: Observations) -> Observations:
    n = len(observations.values)
    if n <= _MOST:
        return observations
    rows = np.unique(np.linspace(0, n - 1, _MOST).round().astype(int))
    return Observations(**{name: values[rows] for name, values in vars(observations).items()})


def _fitted(standard: Standardised, layout: Layout, assumptions: Assumptions) -> FloatArray:
    from scipy.optimize import minimize  # slow to import, and not needed before

    results = [
        minimize(
            loss_and_gradient,
            start,
            args=(standard.observations, assumptions, standard.unit),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-_FAR, _FAR)] * layout.size,
            options={"maxiter": _STEPS},
        )
        for start in _starts(standard.observations, layout)
    ]
    return min(results, key=lambda result: float(result.fun)).x


def _starts(observations: Observations, layout: Layout) -> list[FloatArray]:
    """Return starts of fits: the priors' centre, and the levels' own scales if these differ."""
    spreads = np.ones(layout.n_scales)
    for level in range(layout.n_scales):
        values = observations.values[observations.levels == level]
        if len(values) and np.ptp(values) > 0.0:
            spreads[level] = values.std()
    if layout.n_scales == 1 or spreads.max() <= _UNLIKE * spreads.min():
        return [layout.centre]
    own = layout.centre.copy()
    own[layout.scales] = np.log(spreads)
    return [layout.centre, np.clip(own, -_FAR, _FAR)]


def _hyperparameters(
    parameters: FloatArray,
    layout: Layout,
    observations: Observations,
    assumptions: Assumptions,
    rng: np.random.Generator | None = None,
) -> Hyperparameters:
    """Return hyperparameters in the values' unit, with offsets at posterior means or drawn."""
    standard = standardised(observations, assumptions)
    known = unpacked(parameters, layout, assumptions, standard.unit)
    levels, every = observations.levels, np.arange(assumptions.n_levels)
    at = (observations.features, levels)
    total = covariance(known, at, at) + offset_covariance(levels, levels, assumptions)
    noise = known.noise[levels] / observations.counts + jitter(known.scales[levels])
    total[np.diag_indices_from(total)] += noise
    factor = cholesky(total, lower=True, check_finite=False)
    shared = offset_covariance(every, levels, assumptions)
    explained = cho_solve((factor, True), shared.T, check_finite=False)
    offsets = explained.T @ standard.observations.values
    if rng is not None:
        left = offset_covariance(every, every, assumptions) - shared @ explained
        values, vectors = np.linalg.eigh((left + left.T) / 2.0)
        moves = np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(every))
        offsets = offsets + vectors @ moves
    return Hyperparameters(
        length_scales=known.length_scales,
        correlations=known.correlations,
        scales=known.scales * standard.unit,
        noise=known.noise * standard.unit**2,
        offsets=standard.means + standard.unit * offsets,
    )
