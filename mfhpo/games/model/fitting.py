"""Learning a player's utility: hyperparameters that fit, and others that may be true."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mfhpo._validation import check_instance, check_sequence
from mfhpo.games.model.mogp import Hyperparameters, MultiOutputGP, Observations
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

    Levels may have their own units: scales have heavy-tailed priors, and noise is relative to them.
    Of many observations, `_MOST` are used.
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


_NEAR, _TOGETHER = 0.5, 1.0  # length scales
_SEVERAL = 5


class Place(NamedTuple):
    """Features of a profile, and the level at which it was queried."""

    features: tuple[float, ...]
    level: int


class ObservedUtilities:
    """Collects the observations of one player."""

    def __init__(self) -> None:
        self._seen: dict[Place, list[float]] = {}
        self._failed: Counter[Place] = Counter()

    def __len__(self) -> int:
        """Return the number of observations and failures."""
        return sum(map(len, self._seen.values())) + self._failed.total()

    @property
    def has_seen(self) -> bool:
        """True if any utility was observed."""
        return bool(self._seen)

    @property
    def constant(self) -> float | None:
        """The only value that was observed, in several places; None if there is none."""
        values = {value for several in self._seen.values() for value in several}
        return values.pop() if len(self._seen) >= _SEVERAL and len(values) == 1 else None

    def add(self, features: FloatArray, level: int, value: float | None) -> None:
        """Note the utility of a profile with these features, shape (d,), or None for a failure."""
        place = Place(tuple(features.tolist()), level)
        if value is None:
            self._failed[place] += 1
        else:
            self._seen.setdefault(place, []).append(value)

    def observations(self, length_scales: FloatArray) -> Observations:
        """Return all observations, merged by utility; failures count as the worst utility."""
        failures = self.failures(length_scales)
        values = [*self._seen.values(), *([worst] for worst in failures.values())]
        features, levels = zip(*self._seen, *failures, strict=True)
        return Observations(
            np.array(features),
            np.array(levels),
            np.array([sum(each) / len(each) for each in values]),
            np.array([float(len(each)) for each in values]),
            np.array([np.var(each) * len(each) if len(each) > 1 else 0.0 for each in values]),
        )

    def failures(self, length_scales: FloatArray) -> dict[Place, float]:
        """Return failures that the profiles cause, and the worst utility that was seen there.

        A profile counts if it failed again at the same level, and never gave a value there; or if
        another failure is within a length scale of the player's model, unless something at no lower
        level was observed within half of one. The worst utility is that of the level, or of all.
        """
        if not self._failed or not self.has_seen:
            return {}
        from scipy.spatial.distance import cdist  # slow to import, and not needed before

        failed, levels = map(np.array, zip(*self._failed, strict=True))
        seen, levels_seen = map(np.array, zip(*self._seen, strict=True))
        least = np.array([min(each) for each in self._seen.values()])
        apart = cdist(failed / length_scales, failed / length_scales)
        np.fill_diagonal(apart, np.inf)
        observed = cdist(failed / length_scales, seen / length_scales)
        observed[levels_seen[None, :] < levels[:, None]] = np.inf
        nearest = observed.min(axis=1)
        again = (np.array([*self._failed.values()]) > 1) & (nearest > 0.0)
        counts = again | ((apart.min(axis=1) <= _TOGETHER) & (nearest > _NEAR))
        return {
            place: float(least[levels_seen == place.level].min(initial=least.max()))
            for place, is_cause in zip(self._failed, counts, strict=True)
            if is_cause
        }


_FIRST_FIT = 4  # observations
_NEXT_FIT = 1.4  # fits are repeated each time that there are so many times more


class LearnedUtility:
    """A model of a player's utility, and what was ``seen`` of it.

    The ``model`` has the hyperparameters of the largest density, or declared ones.
    """

    def __init__(self, assumptions: Assumptions, declared: Hyperparameters | None = None) -> None:
        self._assumptions = assumptions
        self._is_declared = declared is not None
        self.seen = ObservedUtilities()
        self._next_fit = _FIRST_FIT
        if declared is None:
            at = np.zeros((1, len(assumptions.groups))), np.array([assumptions.n_levels - 1])
            declared = first_guess(Observations.once(*at, np.zeros(1)), assumptions)
        self.model = MultiOutputGP(declared)

    def tell(self, features: FloatArray, level: int, value: float | None) -> None:
        """Add an observation, or None for a failure, and fit the model again when it is time."""
        seen, known = self.seen, self.model.hyperparameters
        lengths = known.length_scales[-1]
        seen.add(features, level, value)
        if not seen.has_seen:
            return
        observations = seen.observations(lengths)
        if not self._is_declared and len(seen) >= self._next_fit:
            known = fit(observations, self._assumptions)
            self._next_fit = math.ceil(_NEXT_FIT * len(seen))
        elif not self._is_declared and len(seen) < _FIRST_FIT:
            known = first_guess(observations, self._assumptions)
        self.model = MultiOutputGP(known, observations)

    def possible(self, n: int, rng: np.random.Generator) -> list[MultiOutputGP]:
        """Return possible models: n with drawn hyperparameters, or one if these are known."""
        if self._is_declared or not self.seen.has_seen:
            return [self.model]
        observations = self.seen.observations(self.model.hyperparameters.length_scales[-1])
        drawn = drawn_hyperparameters(observations, self._assumptions, n, rng)
        return [MultiOutputGP(known, observations) for known in drawn]


def checked(
    hyperparameters: Sequence[Hyperparameters] | None, assumptions: Sequence[Assumptions]
) -> Sequence[Hyperparameters | None]:
    """Return each player's declared hyperparameters, or raise; None for what is to be fitted."""
    if hyperparameters is None:
        return [None] * len(assumptions)
    right = "one mfhpo.games.Hyperparameters for each player"
    known = check_sequence("hyperparameters", hyperparameters, right)
    for each in known:
        check_instance("hyperparameters", each, Hyperparameters, right)
    shapes = [each.length_scales.shape for each in known]
    needed = [(each.n_levels, len(each.groups)) for each in assumptions]
    if shapes != needed:
        raise ValueError(
            f"hyperparameters must be {right}, with length_scales of the shapes {needed} (levels, "
            f"features), got {shapes}."
        )
    return known
