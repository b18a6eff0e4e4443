"""The posterior of hyperparameters, by what was observed and what was believed before."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular

from mfhpo.games.model.mogp import (
    Hyperparameters,
    Observations,
    covariance,
    kernel_of,
    squared_distances,
)
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray

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
    """The parts that a fit leaves as they are."""

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


class Posterior:
    """The density of hyperparameters, given standardised observations.

    They are a vector of `size` parameters: logarithms of length scales and of the lower levels'
    ratios to them, logits of correlations, and logarithms of scales and of the noise. Priors have
    this `centre` and these `spreads`. Means of levels are integrated out.
    """

    def __init__(self, standard: Standardised, assumptions: Assumptions) -> None:
        self.observations, self._means, self._unit = standard
        self._assumptions = assumptions
        n_lengths = int(assumptions.groups.max()) + 1
        self._n_lower = n_lower = 0 if assumptions.averaging else assumptions.n_levels - 1
        sizes = (n_lengths, n_lower, n_lower, n_lower + 1, int(assumptions.noise is None))
        ends = np.cumsum(sizes).tolist()
        self.size = ends[-1]
        self._lengths, self._ratios, self._logits, self.scales, self._noise = (
            slice(end - size, end) for end, size in zip(ends, sizes, strict=True)
        )
        # Distances grow with the number of parameters.
        length = math.log(_LENGTH * math.sqrt(n_lengths))
        self.centre = np.repeat([length, 0.0, _LOGIT, 0.0, math.log(_NOISE)], sizes)
        self.spreads = np.repeat(
            [_LENGTH_SPREAD, _RATIO_SPREAD, _LOGIT_SPREAD, _SCALE_SPREAD, _NOISE_SPREAD], sizes
        )

    def loss(self, parameters: FloatArray) -> float:
        """Return minus the logarithm of the density."""
        known = self._unpacked(parameters)
        try:
            return self._loss(parameters, known, self._factor(known))
        except LinAlgError:
            return _IMPOSSIBLE

    def loss_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the logarithm of the density, and its gradient."""
        known = self._unpacked(parameters)
        try:
            factor = self._factor(known)
        except LinAlgError:
            return _IMPOSSIBLE, np.zeros_like(parameters)
        return self._loss(parameters, known, factor), self._gradient(parameters, known, factor)

    def hyperparameters(
        self, parameters: FloatArray, rng: np.random.Generator | None = None
    ) -> Hyperparameters:
        """Return hyperparameters in the values' unit, with offsets at posterior means or drawn."""
        known = self._unpacked(parameters)
        every, factor = np.arange(known.n_levels), (self._factor(known), True)
        shared = self._offset_covariance(every, self.observations.levels)
        explained = cho_solve(factor, shared.T, check_finite=False)
        offsets = explained.T @ self.observations.values
        if rng is not None:
            left = self._offset_covariance(every, every) - shared @ explained
            values, vectors = np.linalg.eigh((left + left.T) / 2.0)
            moves = np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(every))
            offsets = offsets + vectors @ moves
        return replace(
            known,
            scales=known.scales * self._unit,
            noise=known.noise * self._unit**2,
            offsets=self._means + self._unit * offsets,
        )

    def _unpacked(self, parameters: FloatArray) -> Hyperparameters:
        """Return hyperparameters of standardised values, with offsets of 0."""
        given, n_levels = self._assumptions, self._assumptions.n_levels
        ratios, correlations = np.zeros(n_levels), np.ones(n_levels - 1)
        ratios[: self._n_lower] = parameters[self._ratios]
        correlations[: self._n_lower] = 1.0 / (1.0 + np.exp(-parameters[self._logits]))
        scales = np.broadcast_to(np.exp(parameters[self.scales]), (n_levels,))
        if given.noise is None:
            noise = np.exp(parameters[self._noise]) * scales**2
        else:
            noise = np.full(n_levels, given.noise / self._unit**2)
        return Hyperparameters(
            length_scales=np.exp(ratios)[:, None] * np.exp(parameters[self._lengths])[given.groups],
            correlations=correlations,
            scales=scales.copy(),
            noise=noise * given.noise_weights,
            offsets=np.zeros(n_levels),
        )

    def _factor(self, known: Hyperparameters) -> FloatArray:
        """Return the factor of the observations' covariance, or raise LinAlgError."""
        told = self.observations
        at = told.features, told.levels
        total = covariance(known, at, at) + self._offset_covariance(told.levels, told.levels)
        noise = known.noise[told.levels] / told.counts
        total[np.diag_indices_from(total)] += noise + self._jitter(known) + _ROUNDING
        return np.asarray(cholesky(total, lower=True, check_finite=False))

    def _jitter(self, known: Hyperparameters) -> FloatArray:
        """Return variances that keep the observations' covariance regular, shape (n,)."""
        return _JITTER * known.scales[self.observations.levels] ** 2

    def _offset_covariance(self, levels: IntArray, others: IntArray) -> FloatArray:
        """Return the prior covariance of levels' means, (n, k); averaging levels share a mean."""
        same = self._assumptions.averaging | (levels[:, None] == others[None, :])
        return np.asarray(_OFFSET**2 + _LEVEL_OFFSET**2 * same)

    def _loss(self, parameters: FloatArray, known: Hyperparameters, factor: FloatArray) -> float:
        told = self.observations
        whitened = solve_triangular(factor, told.values, lower=True, check_finite=False)
        loss = 0.5 * whitened @ whitened + np.log(np.diag(factor)).sum()
        # Of repeated observations their mean tells of the utility, their spread of the noise.
        noise = known.noise[told.levels]
        loss += 0.5 * ((told.counts - 1.0) * np.log(noise) + told.squares / noise).sum()
        away = (parameters - self.centre) / self.spreads
        loss += 0.5 * _TAIL * np.log1p(away[self.scales] ** 2 / _TAIL).sum()
        return float(loss + 0.5 * (np.delete(away, self.scales) ** 2).sum())

    def _gradient(
        self, parameters: FloatArray, known: Hyperparameters, factor: FloatArray
    ) -> FloatArray:
        told = self.observations
        away = (parameters - self.centre) / self.spreads
        gradient: FloatArray = away / self.spreads
        gradient[self.scales] /= 1.0 + away[self.scales] ** 2 / _TAIL
        inverse = cho_solve((factor, True), np.eye(len(told.values)), check_finite=False)
        solved = inverse @ told.values
        # d loss / d K, to be summed with what K changes by.
        slope = 0.5 * (inverse - np.outer(solved, solved))
        # By kernel, and then by amplitude, each times the logarithm of what changes, (M, M).
        parts = [
            slope * np.outer(own, own) * kernel_of(told.features, told.features, lengths)
            for own, lengths in zip(
                known.amplitudes[told.levels].T, known.length_scales, strict=True
            )
        ]
        moved = 2.0 * self._by_level(np.stack([part.sum(axis=1) for part in parts], axis=1))
        by_length = np.array(list(map(self._by_length, parts, known.length_scales)))
        gradient[self._lengths] += by_length.sum(axis=0)
        gradient[self._ratios] += by_length[: self._n_lower].sum(axis=1)
        for step, rho in enumerate(known.correlations[: self._n_lower]):
            crossing, own = moved[: step + 1, step + 1 :].sum(), moved[:, step].sum()
            gradient[self._logits][step] += (1.0 - rho) * crossing - rho**2 / (1.0 + rho) * own
        of_noise, is_fitted = self._by_noise(known, np.diag(slope))
        gradient[self._noise] += of_noise[is_fitted].sum()
        of_scales = moved.sum(axis=1)
        of_scales += 2.0 * self._by_level(of_noise + np.diag(slope) * self._jitter(known))
        gradient[self.scales] += of_scales if self._n_lower else of_scales.sum()
        return gradient

    def _by_noise(self, known: Hyperparameters, slope: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return how the loss moves with the logarithm of each noise, and which is fitted.

        It is in proportion to the square of the scale, unless it is known; and always where it is
        so small that the least noise stands for it.
        """
        told, noise = self.observations, known.noise[self.observations.levels]
        moved = slope * noise / told.counts
        moved += 0.5 * (told.counts - 1.0 - told.squares / noise)
        is_least = (known.noise <= known.least_noise)[told.levels]
        if self._assumptions.noise is None:
            return moved, ~is_least
        return np.where(is_least, moved, 0.0), np.zeros(len(moved), dtype=bool)

    def _by_level(self, rows: FloatArray) -> FloatArray:
        """Return sums of rows by level, (M, ...)."""
        sums = np.zeros((self._assumptions.n_levels, *rows.shape[1:]))
        np.add.at(sums, self.observations.levels, rows)
        return sums

    def _by_length(self, part: FloatArray, lengths: FloatArray) -> list[float]:
        """Return how the loss moves with the logarithm of each length scale of a kernel."""
        groups, x = self._assumptions.groups, self.observations.features
        return [
            float((part * squared_distances(x[:, own], x[:, own], lengths[own])).sum())
            for own in (groups == index for index in range(self._lengths.stop))
        ]
