"""The multi-output Gaussian process over utilities at several fidelities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular

from mfhpo._validation import check_array, shown
from mfhpo.knowledge.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Observations:
    """One player's utility as it was seen, by features, shape (n, d), and levels, shape (n,).

    Each value is the mean of so many ``counts``, shape (n,); ``squares`` sum their squared
    distances from it.
    """

    features: FloatArray
    levels: IntArray
    values: FloatArray
    counts: FloatArray
    squares: FloatArray

    @classmethod
    def once(cls, features: FloatArray, levels: IntArray, values: FloatArray) -> Observations:
        """Return observations with one value each."""
        return cls(features, levels, values, np.ones(len(values)), np.zeros(len(values)))

    @classmethod
    def none(cls, n_features: int) -> Observations:
        """Return no observations."""
        return cls.once(np.zeros((0, n_features)), np.zeros(0, dtype=np.int64), np.zeros(0))

    def and_one(self, features: FloatArray, level: int, value: float) -> Observations:
        """Return these observations and another one."""
        return Observations(
            np.vstack([self.features, features]),
            np.append(self.levels, level),
            np.append(self.values, value),
            np.append(self.counts, 1.0),
            np.append(self.squares, 0.0),
        )


def squared_distances(left: FloatArray, right: FloatArray, length_scales: FloatArray) -> FloatArray:
    """Return squared distances between points in units of the length scales, shape (n, k)."""
    a, b = left / length_scales, right / length_scales
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
    return np.asarray(np.maximum(squares, 0.0))


def kernel_of(left: FloatArray, right: FloatArray, length_scales: FloatArray) -> FloatArray:
    """Return the kernel between points of shape (n, d) and (k, d), shape (n, k)."""
    return np.asarray(np.exp(-0.5 * squared_distances(left, right, length_scales)))


def covariance(
    hyperparameters: Hyperparameters,
    left: tuple[FloatArray, IntArray],
    right: tuple[FloatArray, IntArray],
) -> FloatArray:
    """Return the prior covariance of utilities, given features (n, d) and levels (n,), (n, k).

    Eq. 19-21: a utility is a sum of independent processes, one for each kernel.
    """
    (x, levels), (y, others) = left, right
    total = np.zeros((len(levels), len(others)))
    amplitudes = hyperparameters.amplitudes
    for lengths, own in zip(hyperparameters.length_scales, amplitudes.T, strict=True):
        if own[levels].any() and own[others].any():
            total += np.outer(own[levels], own[others]) * kernel_of(x, y, lengths)
    return total


class MultiOutputGP:
    """A Gaussian process over (configuration, level), with the covariance of `covariance`.

    Parameters
    ----------
    hyperparameters
        Of the covariance.
    told
        Observations to begin with. None: there are none.

    References
    ----------
    Zhang, Simeone and Poor, Multi-fidelity Bayesian optimization for Nash equilibria with black-box
    utilities, Eq. 19-23. Kennedy and O'Hagan, Predicting the output from a complex computer code
    when fast approximations are available, Biometrika 2000.

    Examples
    --------
    >>> known = Hyperparameters.shared(0.89, 0.78, correlations=[0.768], noise=0.1, n_features=1)
    >>> gp = MultiOutputGP(known)
    >>> gp.add(np.array([0.5]), level=1, value=1.1)
    >>> mean, variance = gp.predict(np.array([[0.5]]), level=1)
    >>> mean.item(), round(variance.item(), 4)
    (1.0, 0.0909)
    """

    def __init__(self, hyperparameters: Hyperparameters, told: Observations | None = None) -> None:
        self.hyperparameters = hyperparameters
        self._told = told or Observations.none(hyperparameters.length_scales.shape[1])

    @property
    def n(self) -> int:
        """Number of observations; those that are given as one count once."""
        return len(self._told.levels)

    @property
    def top(self) -> int:
        """Index of the target level."""
        return self.hyperparameters.n_levels - 1

    @property
    def unit(self) -> float:
        """Standard deviation of the utility at the target, before anything was observed."""
        return float(self.hyperparameters.scales[-1])

    def add(self, features: FloatArray, level: int, value: float | None) -> None:
        """Learn an observation: features, shape (d,), a level, and a value.

        None stands for one that is under way, and is taken to be as predicted.
        """
        if value is None:
            value = float(self.mean(features[None, :], level)[0])
        self._told = self._told.and_one(features, level, value)
        for name in ("_factor", "_weights"):
            vars(self).pop(name, None)

    def predict(self, features: FloatArray, level: int) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of the utility, without noise, at points of shape (n, d)."""
        prior = self._prior(features, level)
        means = self.hyperparameters.offsets[level] + self._weights @ prior
        return means, self._variances(prior, level)

    def mean(self, features: FloatArray, level: int) -> FloatArray:
        """Return the means alone, which are cheap, at points of shape (n, d)."""
        prior = self._prior(features, level)
        return np.asarray(self.hyperparameters.offsets[level] + self._weights @ prior)

    def deviations(self, features: FloatArray, own: FloatArray, columns: IntArray) -> Deviations:
        """Return the target utility at points (n, d) with `own` features, (k, ...), instead."""
        told, lengths = self._told.features, self.hyperparameters.length_scales[-1]
        others = np.setdiff1d(np.arange(features.shape[1]), columns)
        stay = kernel_of(told[:, others], features[:, others], lengths[others])
        move = kernel_of(told[:, columns], own, lengths[columns])
        return Deviations(self, stay, move)

    @property
    def observed(self) -> tuple[FloatArray, IntArray]:
        """Features, shape (n, d), and levels, shape (n,), of what was added."""
        return self._told.features, self._told.levels

    @property
    def noise(self) -> FloatArray:
        """Variance of the noise of what was added, shape (n,)."""
        known, levels = self.hyperparameters, self._told.levels
        return np.maximum(known.noise[levels] / self._told.counts, known.least_noise[levels])

    def moves(self, drawn: FloatArray) -> FloatArray:
        """Return weights that move functions from observations `drawn` (n, k) to the real ones."""
        return self._solve(self._solve(self._told.values[:, None] - drawn), transposed=True)

    def moved(self, features: FloatArray, moves: FloatArray) -> FloatArray:
        """Return by how much functions move at the target at points (n, d), shape (n, k)."""
        return self._prior(features, self.top).T @ moves

    def covariances(self, features: FloatArray, level: int) -> FloatArray:
        """Return the covariances between utilities at points of shape (n, d), shape (n, n)."""
        rows = self._solve(self._prior(features, level))
        at = features, np.full(len(features), level)
        return covariance(self.hyperparameters, at, at) - rows.T @ rows

    def with_target(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return variances at all levels, and covariances with the target, (M, n) each."""
        amplitudes, levels = self.hyperparameters.amplitudes, range(self.top + 1)
        rows = np.stack([self._solve(self._prior(features, level)) for level in levels])
        variances = self.hyperparameters.scales[:, None] ** 2 - (rows**2).sum(axis=1)
        prior = amplitudes[:, -1:] * amplitudes[-1, -1]
        return np.maximum(variances, 0.0), prior - (rows * rows[-1]).sum(axis=1)

    def _prior(self, features: FloatArray, level: int) -> FloatArray:
        at = features, np.full(len(features), level)
        return covariance(self.hyperparameters, self.observed, at)

    @cached_property
    def _factor(self) -> FloatArray:
        total = covariance(self.hyperparameters, self.observed, self.observed)
        total[np.diag_indices_from(total)] += self.noise
        return np.asarray(cholesky(total, lower=True, check_finite=False))

    @cached_property
    def _weights(self) -> FloatArray:
        """Each observation's weight in a mean."""
        away = self._told.values - self.hyperparameters.offsets[self._told.levels]
        return self._solve(self._solve(away), transposed=True)

    def _variances(self, prior: FloatArray, level: int) -> FloatArray:
        left = self.hyperparameters.scales[level] ** 2 - (self._solve(prior) ** 2).sum(axis=0)
        return np.asarray(np.maximum(left, 0.0))

    def _solve(self, right: FloatArray, transposed: bool = False) -> FloatArray:
        if self.n == 0:
            return np.zeros_like(right)
        return solve_triangular(
            self._factor, right, lower=True, trans="T" if transposed else "N", check_finite=False
        )


class Deviations:
    """Utilities at the target with some features replaced by others.

    `stay`, shape (n_observed, n), is the kernel of the features that stay; `move`, (n_observed, k),
    that of those that are replaced: it is a product over features.
    """

    def __init__(self, model: MultiOutputGP, stay: FloatArray, move: FloatArray) -> None:
        amplitudes = model.hyperparameters.amplitudes[:, -1]
        self._model = model
        self._stay = stay * (amplitudes[model.observed[1]] * amplitudes[-1])[:, None]
        self._move = move

    def means(self) -> FloatArray:
        """Return the mean of each point with each replacement, shape (n, k)."""
        weighted = self._stay * self._model._weights[:, None]
        return np.asarray(self._model.hyperparameters.offsets[-1] + weighted.T @ self._move)

    def variances(self, chosen: IntArray) -> FloatArray:
        """Return the variances of points with some replacements, given by index, shape (n, m)."""
        prior = np.repeat(self._stay, chosen.shape[1], axis=1) * self._move[:, chosen.ravel()]
        return self._model._variances(prior, self._model.top).reshape(chosen.shape)


# Noise is no smaller than this share of the utilities' variance: what is evaluated twice must not
# make the covariance singular.
_LEAST_NOISE = 1e-6
_POSITIVE = np.nextafter(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """Hyperparameters of the autoregressive Gaussian process of `MultiOutputGP`.

    Parameters
    ----------
    length_scales
        Of the kernels ``exp(-sum(((x - x') / l) ** 2) / 2)``, shape (M, d): of each level's own
        part, the target's kernel last.
    correlations
        Of each level with the next one, between 0 and 1, shape (M - 1,).
    scales
        Standard deviation of the utility at each level, in its own unit, shape (M,).
    noise
        Variance of an observation at each level, shape (M,).
    offsets
        Mean of the utility at each level, shape (M,).

    Examples
    --------
    >>> paper = Hyperparameters.shared(0.89, 0.78, correlations=[0.768], noise=0.1, n_features=2)
    >>> paper.length_scales.round(3).tolist()
    [[0.801, 0.801], [0.75, 0.75]]
    """

    length_scales: FloatArray
    correlations: FloatArray
    scales: FloatArray
    noise: FloatArray
    offsets: FloatArray

    def __post_init__(self) -> None:
        for name in ("length_scales", "correlations", "scales", "noise", "offsets"):
            object.__setattr__(self, name, check_array(name, getattr(self, name), "numbers"))
        n_levels = self.scales.size
        n_features = (0, *self.length_scales.shape)[-1]
        for name, shape, least, words in (
            ("scales", (n_levels,), _POSITIVE, "positive"),
            ("length_scales", (n_levels, n_features), _POSITIVE, "positive"),
            ("correlations", (n_levels - 1,), 0.0, "from 0 to 1"),
            ("noise", (n_levels,), 0.0, "at least 0"),
            ("offsets", (n_levels,), -np.inf, ""),
        ):
            given = getattr(self, name)
            if given.shape != shape or not np.isfinite(given).all():
                raise ValueError(
                    f"{name} must be finite and of shape {shape}, as there are scales for "
                    f"{n_levels} levels, got {shown(given)}."
                )
            most = 1.0 if name == "correlations" else np.inf
            if not ((given >= least) & (given <= most)).all():
                raise ValueError(f"{name} must be {words}, got {shown(given)}.")
        object.__setattr__(self, "noise", np.maximum(self.noise, self.least_noise))

    @classmethod
    def shared(
        cls,
        rate: float,
        level_rate: float,
        *,
        correlations: npt.ArrayLike,
        noise: float | npt.ArrayLike,
        n_features: int,
    ) -> Hyperparameters:
        """Return the paper's hyperparameters: one rate for all features, unit variance, mean 0.

        `rate` is h of the target's kernel ``exp(-h |x - x'|**2)`` (Eq. 20), `level_rate` zeta of
        the others (Eq. 21). Noise is one variance, or one for each level.
        """
        rho = np.atleast_1d(np.asarray(correlations, dtype=float))
        n_levels = len(rho) + 1
        rates = np.full(n_levels, float(level_rate))
        rates[-1] = rate
        return cls(
            length_scales=np.repeat(np.sqrt(0.5 / rates)[:, None], n_features, axis=1),
            correlations=rho,
            scales=np.ones(n_levels),
            noise=np.broadcast_to(np.asarray(noise, dtype=float), (n_levels,)).copy(),
            offsets=np.zeros(n_levels),
        )

    @property
    def n_levels(self) -> int:
        """M."""
        return len(self.scales)

    @property
    def least_noise(self) -> FloatArray:
        """Smallest variance that an observation is given at each level, shape (M,)."""
        return _LEAST_NOISE * self.scales**2

    @property
    def amplitudes(self) -> FloatArray:
        """Factors of the kernels' processes in the levels' utilities, shape (M, M).

        Rows are levels; before they are scaled, ``u[m] = rho[m] u[m+1] + sqrt(1 - rho[m]**2)
        psi[m]`` (Eq. 19).
        """
        mixing = np.eye(self.n_levels)
        for level in reversed(range(self.n_levels - 1)):
            rho = self.correlations[level]
            mixing[level] = rho * mixing[level + 1]
            mixing[level, level] = np.sqrt(1.0 - rho**2)
        return self.scales[:, None] * mixing
