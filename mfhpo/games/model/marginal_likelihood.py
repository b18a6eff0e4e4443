"""How well hyperparameters go with what was observed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from mfhpo.games.model.hyperparameters import Hyperparameters
from mfhpo.games.model.mogp import squared_distances
from mfhpo.games.model.observed import Observations
from mfhpo.knowledge.arrays import FloatArray, IntArray

_JITTER = 1e-8  # share of a level's variance
_ROUNDING = 1e-12  # variance that the means of levels are wide of by rounding

_IMPOSSIBLE = 1e12  # the loss where a covariance is singular
_SAME = 1e-12  # relative difference of values that are taken to be the same
_LEAST_UNIT = 1e-150  # squares of smaller ones, times a share of noise, may be 0
# Centres and spreads of the priors, of logarithms but for the correlations' logits. Features have
# unit range; utilities are standardised.
_LENGTH, _LENGTH_SPREAD = 0.5, 1.0
_RATIO_SPREAD = 0.5  # of a level's own length scales to the target's
_LOGIT, _LOGIT_SPREAD = 2.0, 1.5  # a correlation of .88
_SCALE_SPREAD = 0.5
_TAIL = 8.0  # of the scales' priors, Student's with 7 degrees: levels may have units of their own
_NOISE, _NOISE_SPREAD = 0.1**2, 2.0  # relative to the level's variance
_OFFSET, _LEVEL_OFFSET = 1.0, 0.5  # standard deviations of the mean, and of each level's own
_APART = 3.0  # standard deviations within levels, from which on each has a mean of its own


@dataclass(frozen=True, eq=False)
class Assumptions:
    """What a fit leaves as it is."""

    n_levels: int
    groups: IntArray  # parameter of each feature, (d,); features of one share their length scale
    noise_weights: FloatArray  # relative variance of an observation at each level, (M,)
    averaging: bool = False  # whether levels differ in nothing but their noise
    noise: float | None = None  # variance at weight 1, in the values' unit; None if it is fitted

    @classmethod
    def of_levels(
        cls, costs: FloatArray, groups: IntArray, averaging: bool, noise: float | None
    ) -> Assumptions:
        """Return a player's levels; where they average, the noise is that at cost 1."""
        if not averaging:
            return cls(len(costs), groups, np.ones(len(costs)), noise=noise)
        of_first = None if noise is None else noise / float(costs[0])
        return cls(len(costs), groups, costs[0] / costs, averaging, of_first)


class Layout:
    """Where each hyperparameter is in the vector that is fitted, and its prior."""

    def __init__(self, assumptions: Assumptions) -> None:
        n_lengths = int(assumptions.groups.max()) + 1
        n_lower = 0 if assumptions.averaging else assumptions.n_levels - 1
        sizes = (n_lengths, n_lower, n_lower, n_lower + 1, int(assumptions.noise is None))
        ends = np.cumsum(sizes)
        self.lengths, self.ratios, self.logits, self.scales, self.noise = (
            slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)
        )
        self.size = int(ends[-1])
        self.n_scales = n_lower + 1
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


def loss(
    parameters: FloatArray, observations: Observations, assumptions: Assumptions, unit: float
) -> float:
    """Return minus the logarithm of the posterior density.

    The parameters are logarithms of length scales, of the lower levels' ratios to them, logits of
    correlations, logarithms of scales and of the noise. `unit` belongs to the standardised values.
    """
    return _Evidence(parameters, observations, assumptions, unit).loss


def loss_and_gradient(
    parameters: FloatArray, observations: Observations, assumptions: Assumptions, unit: float
) -> tuple[float, FloatArray]:
    """Return minus the logarithm of the posterior density, and its gradient; see `loss`."""
    evidence = _Evidence(parameters, observations, assumptions, unit)
    return evidence.loss, evidence.gradient()


class _Evidence:
    """What observations and priors say about hyperparameters; see `loss` for the parameters."""

    def __init__(
        self,
        parameters: FloatArray,
        observations: Observations,
        assumptions: Assumptions,
        unit: float,
    ) -> None:
        self._layout = layout = Layout(assumptions)
        self._known = known = unpacked(parameters, layout, assumptions, unit)
        self._observations, self._assumptions = observations, assumptions
        self._away = (parameters - layout.centre) / layout.spread
        self._tails = 1.0 + self._away[layout.scales] ** 2 / _TAIL
        x, levels = observations.features, observations.levels
        self._higher = np.maximum(levels[:, None], levels[None, :])
        scales = known.scales[levels]
        self._outer = known.links[levels[:, None], levels[None, :]] * np.outer(scales, scales)
        self._kernels = [np.exp(-0.5 * squared_distances(x, x, row)) for row in known.length_scales]
        self._shares = [known.weights[self._higher, kernel] for kernel in range(known.n_levels)]
        self._signal = sum(
            (share * kernel for share, kernel in zip(self._shares, self._kernels, strict=True)),
            np.zeros_like(self._outer),
        )
        total = self._outer * self._signal + offset_covariance(levels, levels, assumptions)
        self._noise = known.noise[levels] / observations.counts
        self._jitter = jitter(scales)
        total[np.diag_indices_from(total)] += self._noise + self._jitter
        # Of repeated observations their mean tells of the utility, their spread of the noise.
        self._further = observations.counts - 1.0
        self._spread = observations.squares / known.noise[levels]
        try:
            self._factor = cholesky(total, lower=True, check_finite=False)
        except LinAlgError:
            self.loss = _IMPOSSIBLE
            return
        self.loss = self._minus_log_density()

    def _minus_log_density(self) -> float:
        values = self._observations.values
        whitened = solve_triangular(self._factor, values, lower=True, check_finite=False)
        noise = self._known.noise[self._observations.levels]
        told = 0.5 * whitened @ whitened + np.log(np.diag(self._factor)).sum()
        told += 0.5 * (self._further * np.log(noise) + self._spread).sum()
        normal = np.delete(self._away, self._layout.scales)
        prior = 0.5 * (normal**2).sum() + 0.5 * _TAIL * np.log(self._tails).sum()
        return float(told + prior)

    def gradient(self) -> FloatArray:
        layout, known, levels = self._layout, self._known, self._observations.levels
        gradient = self._away / layout.spread
        if self.loss == _IMPOSSIBLE:
            return np.zeros_like(gradient)
        gradient[layout.scales] /= self._tails
        factor = (self._factor, True)
        inverse = cho_solve(factor, np.eye(len(levels)), check_finite=False)
        solved = inverse @ self._observations.values
        # d loss / d K, to be summed with what K changes by.
        slope = 0.5 * (inverse - np.outer(solved, solved))
        self._add_lengths(gradient, slope)
        self._add_correlations(gradient, slope)
        by_row = (slope * self._outer * self._signal).sum(axis=1)
        by_row += np.diag(slope) * (self._jitter - _ROUNDING)
        # In proportion to the noise, which is in proportion to the square of the scale, unless it
        # is known; and always where it is so small that the least noise stands for it.
        of_noise = np.diag(slope) * self._noise + 0.5 * (self._further - self._spread)
        is_least = (known.noise <= known.least_noise)[levels]
        if self._assumptions.noise is None:
            gradient[layout.noise] += float(of_noise[~is_least].sum())
            by_row += of_noise
        else:
            by_row += np.where(is_least, of_noise, 0.0)
        if layout.n_scales == 1:
            gradient[layout.scales.start] += 2.0 * by_row.sum()
        else:
            for level in range(known.n_levels):
                gradient[layout.scales.start + level] += 2.0 * by_row[levels == level].sum()
        return gradient

    def _add_lengths(self, gradient: FloatArray, slope: FloatArray) -> None:
        layout, known, groups = self._layout, self._known, self._assumptions.groups
        has_ratios = layout.ratios.stop > layout.ratios.start
        per_kernel = [
            slope * self._outer * share * kernel
            for share, kernel in zip(self._shares, self._kernels, strict=True)
        ]
        for index in range(layout.lengths.stop):
            columns = self._observations.features[:, groups == index]
            for kernel, sensitivity in enumerate(per_kernel):
                lengths = known.length_scales[kernel][groups == index]
                moved = float((sensitivity * squared_distances(columns, columns, lengths)).sum())
                gradient[index] += moved
                if has_ratios and kernel < known.n_levels - 1:
                    gradient[layout.ratios.start + kernel] += moved

    def _add_correlations(self, gradient: FloatArray, slope: FloatArray) -> None:
        layout, known, levels = self._layout, self._known, self._observations.levels
        lower = np.minimum(levels[:, None], levels[None, :])
        for step in range(layout.logits.stop - layout.logits.start):
            rho = float(known.correlations[step])
            # Links that cross this step are in proportion to rho; so are the shares' square roots.
            crossing = (lower <= step) & (self._higher > step)
            changed = np.where(crossing, self._signal / max(rho, 1e-12), 0.0)
            for kernel in range(known.n_levels):
                changed += _share_slope(known, step)[self._higher, kernel] * self._kernels[kernel]
            slope_of_rho = float((slope * self._outer * changed).sum())
            gradient[layout.logits.start + step] += slope_of_rho * rho * (1.0 - rho)


def _share_slope(known: Hyperparameters, step: int) -> FloatArray:
    """Return the derivative of the kernels' shares in each level by one correlation, (M, M)."""
    rho = float(known.correlations[step])
    weights = known.weights
    slope = np.zeros_like(weights)
    for level in range(step + 1):
        slope[level, step + 1 :] = 2.0 * weights[level, step + 1 :] / max(rho, 1e-12)
        product = np.prod(known.correlations[level:step] ** 2)
        slope[level, step] = -2.0 * rho * product
    return slope


class Standardised(NamedTuple):
    """Observations of mean 0 and variance 1; their levels' means, shape (M,), and unit before."""

    observations: Observations
    means: FloatArray
    unit: float


def standardised(observations: Observations, assumptions: Assumptions) -> Standardised:
    """Return observations of mean 0 and variance 1, by level if their means are far apart."""
    levels, values, n = observations.levels, observations.values, len(observations.values)
    repeated = observations.squares.sum() / observations.counts.sum()
    means = np.full(assumptions.n_levels, float(values.mean()))
    spread = math.sqrt(float(values.var() + repeated))
    if not assumptions.averaging:
        own = means.copy()
        for level in np.unique(levels):
            own[level] = values[levels == level].mean()
        within = math.sqrt(float(((values - own[levels]) ** 2).sum() / n + repeated))
        if np.ptp(own[levels]) > _APART * within > 0.0:
            means, spread = own, within
    # Where all are the same, what is not seen is taken to be as small as rounding, or as the noise.
    largest = float(np.abs(means).max())
    unit = spread if spread > _SAME * largest else _SAME * (largest or 1.0)
    if assumptions.noise is not None:
        unit = max(unit, math.sqrt(assumptions.noise * float(assumptions.noise_weights.min())))
    if unit < _LEAST_UNIT:
        unit = _SAME  # as if all were 0
    standardised = replace(
        observations, values=(values - means[levels]) / unit, squares=observations.squares / unit**2
    )
    return Standardised(standardised, means, unit)


def offset_covariance(levels: IntArray, others: IntArray, assumptions: Assumptions) -> FloatArray:
    """Return the prior covariance of the levels' means, (n, k); averaging levels share a mean."""
    same = assumptions.averaging | (levels[:, None] == others[None, :])
    return np.asarray(_OFFSET**2 + _LEVEL_OFFSET**2 * same)


def jitter(scales: FloatArray) -> FloatArray:
    """Return variances that keep the observations' covariance regular, shape (n,)."""
    return _JITTER * scales**2 + _ROUNDING


def unpacked(
    parameters: FloatArray, layout: Layout, assumptions: Assumptions, unit: float
) -> Hyperparameters:
    """Return hyperparameters of standardised values, with offsets of 0; see `loss`."""
    n_levels = assumptions.n_levels
    lengths = np.exp(parameters[layout.lengths])[assumptions.groups]
    ratios = np.zeros(n_levels)
    correlations = np.ones(n_levels - 1)
    if not assumptions.averaging:
        ratios[:-1] = parameters[layout.ratios]
        correlations = 1.0 / (1.0 + np.exp(-parameters[layout.logits]))
    scales = np.broadcast_to(np.exp(parameters[layout.scales]), (n_levels,))
    if assumptions.noise is None:
        noise = np.exp(parameters[layout.noise][0]) * scales**2
    else:
        noise = np.full(n_levels, assumptions.noise / unit**2)
    return Hyperparameters(
        length_scales=np.exp(ratios)[:, None] * lengths[None, :],
        correlations=correlations,
        scales=scales.copy(),
        noise=noise * assumptions.noise_weights,
        offsets=np.zeros(n_levels),
    )
