"""Hyperparameters fitted to what was observed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_solve, cholesky
from scipy.optimize import minimize

from mfhpo.games.hyperparameters import Hyperparameters
from mfhpo.games.mogp import covariance, squared_distances

__all__ = ["Assumptions", "Observations", "drawn_hyperparameters", "first_guess", "fit", "loss"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_MOST = 200  # observations of a fit: its work grows with their cube
_STEPS = 60
_JITTER = 1e-8
_SAME = 1e-9  # relative difference of values that are taken to be the same
_STEP, _FLAT = 1e-3, 1e-6  # of differences of gradients, and the smallest curvature
# Centres and spreads of the priors, of logarithms but for the correlations' logits. Features have
# unit range; utilities are standardised.
_LENGTH, _LENGTH_SPREAD = 0.5, 1.0
_RATIO_SPREAD = 0.5  # of a level's own length scales to the target's
_LOGIT, _LOGIT_SPREAD = 2.0, 1.5  # a correlation of .88
_SCALE_SPREAD = 0.5
_NOISE, _NOISE_SPREAD = 0.1**2, 2.0
_OFFSET, _LEVEL_OFFSET = 1.0, 0.5  # standard deviations of the mean, and of each level's own
_FAR = 12.0  # largest absolute value of a parameter in logarithms


@dataclass(frozen=True, eq=False)
class Observations:
    """What one player's utility was seen to be.

    Parameters
    ----------
    features
        Of the configurations, shape (n, d).
    levels
        Shape (n,).
    values
        Shape (n,).
    counts
        Of how many observations each value is the mean, shape (n,).
    squares
        Sum of their squared distances from it, shape (n,).
    """

    features: FloatArray
    levels: IntArray
    values: FloatArray
    counts: FloatArray
    squares: FloatArray

    @classmethod
    def once(cls, features: FloatArray, levels: IntArray, values: FloatArray) -> Observations:
        """Each value is that of one observation."""
        return cls(features, levels, values, np.ones(len(values)), np.zeros(len(values)))

    def chosen(self, rows: IntArray) -> Observations:
        """Some of them."""
        return Observations(
            self.features[rows],
            self.levels[rows],
            self.values[rows],
            self.counts[rows],
            self.squares[rows],
        )


@dataclass(frozen=True, eq=False)
class Assumptions:
    """What a fit leaves as it is.

    Parameters
    ----------
    n_levels
        M.
    groups
        For each feature the index of the parameter that it belongs to, shape (d,): features of one
        parameter share their length scale.
    noise_weights
        Relative variance of an observation at each level, shape (M,).
    averaging
        Whether levels differ in nothing but their noise.
    noise
        Variance of an observation of weight 1, in the values' unit; None if it is fitted.
    """

    n_levels: int
    groups: IntArray
    noise_weights: FloatArray
    averaging: bool = False
    noise: float | None = None


class _Layout:
    """Where each hyperparameter is in the vector that is fitted."""

    def __init__(self, assumptions: Assumptions) -> None:
        n_lengths = int(assumptions.groups.max()) + 1
        n_lower = 0 if assumptions.averaging else assumptions.n_levels - 1
        sizes = (n_lengths, n_lower, n_lower, n_lower + 1, int(assumptions.noise is None))
        ends = np.cumsum(sizes)
        self.lengths, self.ratios, self.logits, self.scales, self.noise = (
            slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)
        )
        self.size = int(ends[-1])
        self.centre = np.zeros(self.size)
        self.spread = np.ones(self.size)
        for part, centre, spread in (
            # Distances grow with the number of parameters.
            (self.lengths, np.log(_LENGTH * np.sqrt(n_lengths)), _LENGTH_SPREAD),
            (self.ratios, 0.0, _RATIO_SPREAD),
            (self.logits, _LOGIT, _LOGIT_SPREAD),
            (self.scales, 0.0, _SCALE_SPREAD),
            (self.noise, np.log(_NOISE), _NOISE_SPREAD),
        ):
            self.centre[part] = centre
            self.spread[part] = spread


def first_guess(observations: Observations, assumptions: Assumptions) -> Hyperparameters:
    """Hyperparameters at the centre of their priors, in the unit of what was observed."""
    layout = _Layout(assumptions)
    return _hyperparameters(layout.centre, layout, observations, assumptions)


def fit(observations: Observations, assumptions: Assumptions) -> Hyperparameters:
    """Hyperparameters of the largest posterior density, with weak priors.

    The mean of each level is integrated out, and taken at its posterior mean afterwards. Of many
    observations, `_MOST` are taken, evenly spread over their order.

    Parameters
    ----------
    observations
        At least one.
    assumptions
        What is known.
    """
    some = _some(observations)
    layout = _Layout(assumptions)
    return _hyperparameters(_fitted(some, layout, assumptions), layout, some, assumptions)


def drawn_hyperparameters(
    observations: Observations, assumptions: Assumptions, n_draws: int, rng: np.random.Generator
) -> list[Hyperparameters]:
    """Hyperparameters drawn from what may be believed of them, by Laplace's approximation.

    Where observations are few, those of the largest density say too surely what utilities are like.

    Parameters
    ----------
    observations
        At least one.
    assumptions
        What is known.
    n_draws
        How many.
    rng
        Source of randomness.
    """
    some = _some(observations)
    layout = _Layout(assumptions)
    centre = _fitted(some, layout, assumptions)
    standardised, _, unit = _standardised(some)

    def slope(parameters: FloatArray) -> FloatArray:
        return loss(parameters, standardised, assumptions, unit)[1]

    curvature = np.array(
        [
            (slope(centre + step) - slope(centre - step)) / (2.0 * _STEP)
            for step in _STEP * np.eye(layout.size)
        ]
    )
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2.0)
    # Nowhere wider than the priors, which are what is believed where observations say nothing.
    spread = np.minimum(1.0 / np.sqrt(np.maximum(values, _FLAT)), layout.spread.max())
    moves = (rng.standard_normal((n_draws, layout.size)) * spread) @ vectors.T
    return [
        _hyperparameters(np.clip(centre + move, -_FAR, _FAR), layout, some, assumptions)
        for move in moves
    ]


def _some(observations: Observations) -> Observations:
    """At most so many as a fit takes."""
    n = len(observations.values)
    if n <= _MOST:
        return observations
    return observations.chosen(np.unique(np.linspace(0, n - 1, _MOST).round().astype(int)))


def _fitted(observations: Observations, layout: _Layout, assumptions: Assumptions) -> FloatArray:
    """The parameters of the largest posterior density."""
    standardised, _, unit = _standardised(observations)
    result = minimize(
        loss,
        layout.centre,
        args=(standardised, assumptions, unit),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-_FAR, _FAR)] * layout.size,
        options={"maxiter": _STEPS},
    )
    found: FloatArray = result.x
    return found


def loss(
    parameters: FloatArray, observations: Observations, assumptions: Assumptions, unit: float
) -> tuple[float, FloatArray]:
    """Minus the logarithm of the posterior density, and its gradient.

    Parameters
    ----------
    parameters
        Logarithms of length scales, of the lower levels' ratios to them, logits of correlations,
        logarithms of scales and of the noise.
    observations
        With standardised values.
    assumptions
        What is known.
    unit
        Of the values, in which a known noise is given.
    """
    layout = _Layout(assumptions)
    known = _unpacked(parameters, layout, assumptions, unit)
    away = (parameters - layout.centre) / layout.spread
    x, levels = observations.features, observations.levels
    higher = np.maximum(levels[:, None], levels[None, :])
    links, weights, scales = known.links, known.weights, known.scales
    outer = links[levels[:, None], levels[None, :]] * scales[levels][:, None] * scales[levels]
    kernels = [np.exp(-0.5 * squared_distances(x, x, row)) for row in known.length_scales]
    shares = [weights[higher, kernel] for kernel in range(known.n_levels)]
    signal = sum(
        (share * kernel for share, kernel in zip(shares, kernels, strict=True)),
        np.zeros_like(outer),
    )
    prior = outer * signal
    total = prior + _offset_covariance(levels, levels, assumptions)
    noise = known.noise[levels] / observations.counts
    total[np.diag_indices_from(total)] += noise + _JITTER
    try:
        factor = cholesky(total, lower=True, check_finite=False)
    except LinAlgError:
        return 1e12, np.zeros_like(parameters)
    inverse = cho_solve((factor, True), np.eye(len(levels)), check_finite=False)
    solved = inverse @ observations.values
    density = 0.5 * observations.values @ solved + np.log(np.diag(factor)).sum()
    # Of repeated observations their mean tells of the utility, their spread of the noise.
    further = observations.counts - 1.0
    spread = observations.squares / known.noise[levels]
    density += 0.5 * (further * np.log(known.noise[levels]) + spread).sum()
    # d loss / d K, to be summed with what K changes by.
    slope = 0.5 * (inverse - np.outer(solved, solved))
    gradient = away / layout.spread
    per_kernel = [
        slope * outer * share * kernel for share, kernel in zip(shares, kernels, strict=True)
    ]
    for index in range(layout.lengths.stop):
        columns = x[:, assumptions.groups == index]
        for kernel, sensitivity in enumerate(per_kernel):
            rows = known.length_scales[kernel][assumptions.groups == index]
            moved = float((sensitivity * squared_distances(columns, columns, rows)).sum())
            gradient[index] += moved
            if layout.ratios.stop > layout.ratios.start and kernel < known.n_levels - 1:
                gradient[layout.ratios.start + kernel] += moved
    for step in range(layout.logits.stop - layout.logits.start):
        rho = float(known.correlations[step])
        lower = np.minimum(levels[:, None], levels[None, :])
        # Links that cross this step are in proportion to rho; so are the shares' square roots.
        crossing = (lower <= step) & (higher > step)
        changed = np.where(crossing, signal / max(rho, 1e-12), 0.0)
        for kernel in range(known.n_levels):
            changed += _share_slope(known, step)[higher, kernel] * kernels[kernel]
        slope_of_rho = float((slope * outer * changed).sum())
        gradient[layout.logits.start + step] += slope_of_rho * rho * (1.0 - rho)
    by_row = (slope * prior).sum(axis=1)
    if layout.scales.stop - layout.scales.start == 1:
        gradient[layout.scales.start] += 2.0 * by_row.sum()
    else:
        for level in range(known.n_levels):
            gradient[layout.scales.start + level] += 2.0 * by_row[levels == level].sum()
    if assumptions.noise is None:
        gradient[layout.noise] += float((np.diag(slope) * noise + 0.5 * (further - spread)).sum())
    return float(density + 0.5 * (away**2).sum()), gradient


def _share_slope(known: Hyperparameters, step: int) -> FloatArray:
    """Derivative of the kernels' shares in each level with one correlation, shape (M, M)."""
    rho = float(known.correlations[step])
    weights = known.weights
    slope = np.zeros_like(weights)
    for level in range(step + 1):
        slope[level, step + 1 :] = 2.0 * weights[level, step + 1 :] / max(rho, 1e-12)
        product = np.prod(known.correlations[level:step] ** 2)
        slope[level, step] = -2.0 * rho * product
    return slope


def _standardised(observations: Observations) -> tuple[Observations, float, float]:
    """Observations with values of mean 0 and variance 1, with their mean and unit."""
    mean = float(observations.values.mean())
    within = observations.squares.sum() / observations.counts.sum()
    spread = math.sqrt(float(observations.values.var() + within))
    # Where all are the same, what is not seen is taken to be as small as rounding.
    unit = spread if spread > _SAME * abs(mean) else _SAME * (abs(mean) or 1.0)
    standardised = replace(
        observations,
        values=(observations.values - mean) / unit,
        squares=observations.squares / unit**2,
    )
    return standardised, mean, unit


def _offset_covariance(levels: IntArray, others: IntArray, assumptions: Assumptions) -> FloatArray:
    """Prior covariance of the means of levels; levels that average have one mean."""
    same = assumptions.averaging | (levels[:, None] == others[None, :])
    own: FloatArray = _OFFSET**2 + _LEVEL_OFFSET**2 * same
    return own


def _unpacked(
    parameters: FloatArray, layout: _Layout, assumptions: Assumptions, unit: float
) -> Hyperparameters:
    """Hyperparameters of standardised values; the offsets are 0."""
    n_levels = assumptions.n_levels
    lengths = np.exp(parameters[layout.lengths])[assumptions.groups]
    ratios = np.zeros(n_levels)
    correlations = np.ones(n_levels - 1)
    if not assumptions.averaging:
        ratios[:-1] = parameters[layout.ratios]
        correlations = 1.0 / (1.0 + np.exp(-parameters[layout.logits]))
    scales = np.broadcast_to(np.exp(parameters[layout.scales]), (n_levels,))
    if assumptions.noise is None:
        noise = float(np.exp(parameters[layout.noise][0]))
    else:
        noise = assumptions.noise / unit**2
    return Hyperparameters(
        length_scales=np.exp(ratios)[:, None] * lengths[None, :],
        correlations=correlations,
        scales=scales.copy(),
        noise=noise * assumptions.noise_weights,
        offsets=np.zeros(n_levels),
    )


def _hyperparameters(
    parameters: FloatArray,
    layout: _Layout,
    observations: Observations,
    assumptions: Assumptions,
) -> Hyperparameters:
    """Hyperparameters in the unit of the values, with offsets at their posterior means."""
    standardised, mean, unit = _standardised(observations)
    known = _unpacked(parameters, layout, assumptions, unit)
    levels = observations.levels
    at = (observations.features, levels)
    total = covariance(known, at, at) + _offset_covariance(levels, levels, assumptions)
    total[np.diag_indices_from(total)] += known.noise[levels] / observations.counts + _JITTER
    factor = cholesky(total, lower=True, check_finite=False)
    solved = cho_solve((factor, True), standardised.values, check_finite=False)
    shared = _offset_covariance(np.arange(assumptions.n_levels), levels, assumptions)
    return Hyperparameters(
        length_scales=known.length_scales,
        correlations=known.correlations,
        scales=known.scales * unit,
        noise=known.noise * unit**2,
        offsets=mean + unit * (shared @ solved),
    )
