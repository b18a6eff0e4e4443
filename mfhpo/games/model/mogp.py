"""The multi-output Gaussian process over utilities at several fidelities."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from mfhpo.games.model.hyperparameters import Hyperparameters
from mfhpo.knowledge.arrays import FloatArray, IntArray


def squared_distances(left: FloatArray, right: FloatArray, length_scales: FloatArray) -> FloatArray:
    """Return squared distances between points in units of the length scales, shape (n, k)."""
    a, b = left / length_scales, right / length_scales
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
    return np.asarray(np.maximum(squares, 0.0))


def covariance(
    hyperparameters: Hyperparameters,
    left: tuple[FloatArray, IntArray],
    right: tuple[FloatArray, IntArray],
) -> FloatArray:
    """Return the prior covariance of utilities, given features (n, d) and levels (n,), (n, k).

    Eq. 19-21: with ``K[m, m']`` for levels ``m <= m'``, ``K[M, M]`` is the target's kernel, ``K[m,
    m] = rho[m]**2 K[m+1, m+1] + (1 - rho[m]**2) kernel[m]``, and ``K[m, m'] = rho[m] ... rho[m'-1]
    K[m', m']``.
    """
    (x, levels), (y, others) = left, right
    higher = np.maximum(levels[:, None], others[None, :])
    lower = np.minimum(levels[:, None], others[None, :])
    weights, scales = hyperparameters.weights, hyperparameters.scales
    total = np.zeros((len(levels), len(others)))
    for kernel in range(
        int(higher.min(initial=hyperparameters.n_levels)), hyperparameters.n_levels
    ):
        share = weights[higher, kernel]
        if share.any():
            lengths = hyperparameters.length_scales[kernel]
            total += share * np.exp(-0.5 * squared_distances(x, y, lengths))
    total *= hyperparameters.links[lower, higher]
    return total * scales[levels][:, None] * scales[others][None, :]


class MultiOutputGP:
    """A Gaussian process over (configuration, level), with the covariance of `covariance`.

    Observations are added one at a time; those of the same utility are merged.

    Parameters
    ----------
    hyperparameters
        Of the covariance.
    points
        Features of what is predicted, shape (n_points, d). None: nothing.

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

    def __init__(self, hyperparameters: Hyperparameters, points: FloatArray | None = None) -> None:
        n_features = hyperparameters.length_scales.shape[1]
        self.hyperparameters = hyperparameters
        self.points = np.zeros((0, n_features)) if points is None else points
        self._features = np.zeros((0, n_features))
        self._levels = np.zeros(0, dtype=np.int64)
        self._counts, self._values = np.zeros((2, 0))

    @classmethod
    def of(
        cls,
        hyperparameters: Hyperparameters,
        features: FloatArray,
        levels: IntArray,
        values: FloatArray,
        counts: FloatArray,
        points: FloatArray | None = None,
    ) -> MultiOutputGP:
        """Return a process with different observations of `counts` each; faster than `add`."""
        process = cls(hyperparameters, points)
        process._features, process._levels = features.copy(), levels.copy()
        process._values, process._counts = values.copy(), counts.copy()
        return process

    @property
    def n(self) -> int:
        """Number of observations, those of the same utility counted once."""
        return len(self._levels)

    @property
    def top(self) -> int:
        """Index of the target level."""
        return self.hyperparameters.n_levels - 1

    @property
    def unit(self) -> float:
        """Standard deviation of the utility at the target, before anything was observed."""
        return float(self.hyperparameters.scales[-1])

    def add(self, features: FloatArray, level: int, value: float | None, count: int = 1) -> None:
        """Learn an observation: features, shape (d,), a level, and the mean of `count` values.

        None stands for one that is under way, and is taken to be as predicted. Of observations of
        the same utility their mean is kept, unless noise is so small that the covariance would
        become singular.
        """
        again = None if value is None else self._index_of(features, level, count)
        if value is None:
            value = float(self.mean(features[None, :], level)[0])
        if again is None:
            self._features = np.vstack([self._features, features])
            self._levels = np.append(self._levels, level)
            self._counts = np.append(self._counts, float(count))
            self._values = np.append(self._values, value)
        else:
            self._counts[again] += count
            self._values[again] += (value - self._values[again]) * count / self._counts[again]
        self._begin()

    def _index_of(self, features: FloatArray, level: int, count: int) -> int | None:
        """Return the place at which further observations of the same utility are merged."""
        known = self.hyperparameters
        same = (self._features == features).all(axis=1) & (self._levels == level)
        noise = known.noise[level] / (self._counts + count)
        found = np.flatnonzero(same & (noise >= known.least_noise[level]))
        return int(found[0]) if len(found) else None

    def _begin(self) -> None:
        for name in ("_factor", "_weights", "_of_points"):
            vars(self).pop(name, None)

    def mark(self) -> int:
        """Remember what is known, to go back to it with `restore`."""
        return self.n

    def restore(self, mark: int) -> None:
        """Forget what was added since: what is under way, for what was merged stays merged."""
        if mark < self.n:
            self._features, self._levels = self._features[:mark], self._levels[:mark]
            self._counts, self._values = self._counts[:mark], self._values[:mark]
            self._begin()

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
        known = self.hyperparameters
        told = self._features
        others = np.setdiff1d(np.arange(features.shape[1]), columns)
        lengths = known.length_scales[-1]
        stay = squared_distances(told[:, others], features[:, others], lengths[others])
        move = squared_distances(told[:, columns], own, lengths[columns])
        return Deviations(self, np.exp(-0.5 * stay), np.exp(-0.5 * move))

    @property
    def observed(self) -> tuple[FloatArray, IntArray]:
        """Features, shape (n, d), and levels, shape (n,), of what was added."""
        return self._features, self._levels

    @property
    def noise(self) -> FloatArray:
        """Variance of the noise of what was added, shape (n,)."""
        known, levels = self.hyperparameters, self._levels
        return np.maximum(known.noise[levels] / self._counts, known.least_noise[levels])

    def moves(self, drawn: FloatArray) -> FloatArray:
        """Return weights that move functions from observations `drawn` (n, k) to the real ones."""
        return self._solve(self._solve(self._values[:, None] - drawn), transposed=True)

    def moved(self, features: FloatArray, moves: FloatArray) -> FloatArray:
        """Return by how much functions move at the target at points (n, d), shape (n, k)."""
        return self._prior(features, self.top).T @ moves

    def covariances(self, features: FloatArray, level: int) -> FloatArray:
        """Return the covariances between utilities at points of shape (n, d), shape (n, n)."""
        rows = self._whiten(features, level)
        levels = np.full(len(features), level)
        prior = covariance(self.hyperparameters, (features, levels), (features, levels))
        return prior - rows.T @ rows

    def with_target(self, features: FloatArray, level: int) -> tuple[FloatArray, FloatArray]:
        """Return the variance at a level and the covariance with the target at points (n, d)."""
        known = self.hyperparameters
        rows = self._whiten(features, level)
        target = self._whiten(features, self.top)
        variances = known.scales[level] ** 2 - (rows**2).sum(axis=0)
        shared = self._prior_with_target()[level] - (rows * target).sum(axis=0)
        return np.maximum(variances, 0.0), shared

    @property
    def point_means(self) -> FloatArray:
        """Means at the target of the points, shape (n_points,)."""
        return self.mean(self.points, self.top)

    @property
    def point_variances(self) -> FloatArray:
        """Variances of the points at each level, shape (M, n_points)."""
        prior = self.hyperparameters.scales[:, None] ** 2
        return np.maximum(prior - self._of_points[0], 0.0)

    @property
    def point_covariances(self) -> FloatArray:
        """Covariances of the points at each level with their target, shape (M, n_points)."""
        return self._prior_with_target()[:, None] - self._of_points[1]

    def _prior_with_target(self) -> FloatArray:
        known = self.hyperparameters
        return np.asarray(known.links[:, -1] * known.scales * known.scales[-1])

    def _prior(self, features: FloatArray, level: int) -> FloatArray:
        known = self.hyperparameters
        told = self.observed
        if level < self.top:
            return covariance(known, told, (features, np.full(len(features), level)))
        # What goes for most: the target's covariances have no part but its own kernel.
        squares = squared_distances(told[0], features, known.length_scales[-1])
        return np.exp(-0.5 * squares) * self._scales_with_target()[:, None]

    def _scales_with_target(self) -> FloatArray:
        """Return the factors of the target's kernel in its covariance with each observation."""
        known, levels = self.hyperparameters, self._levels
        return np.asarray(known.links[levels, -1] * known.scales[levels] * known.scales[-1])

    @cached_property
    def _factor(self) -> FloatArray:
        total = covariance(self.hyperparameters, self.observed, self.observed)
        total[np.diag_indices_from(total)] += self.noise
        return np.asarray(cholesky(total, lower=True, check_finite=False))

    @cached_property
    def _weights(self) -> FloatArray:
        """Each observation's weight in a mean."""
        away = self._values - self.hyperparameters.offsets[self._levels]
        return self._solve(self._solve(away), transposed=True)

    @cached_property
    def _of_points(self) -> tuple[FloatArray, FloatArray]:
        """The parts of the points' variances, and of their covariances with the target, known."""
        levels = range(self.hyperparameters.n_levels)
        rows = np.stack([self._whiten(self.points, level) for level in levels])
        return (rows**2).sum(axis=1), (rows * rows[-1]).sum(axis=1)

    def _variances(self, prior: FloatArray, level: int) -> FloatArray:
        left = self.hyperparameters.scales[level] ** 2 - (self._solve(prior) ** 2).sum(axis=0)
        return np.asarray(np.maximum(left, 0.0))

    def _whiten(self, features: FloatArray, level: int) -> FloatArray:
        return self._solve(self._prior(features, level))

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
        self._model = model
        self._stay = stay * model._scales_with_target()[:, None]
        self._move = move

    def means(self) -> FloatArray:
        """Return the mean of each point with each replacement, shape (n, k)."""
        weighted = self._stay * self._model._weights[:, None]
        return np.asarray(self._model.hyperparameters.offsets[-1] + weighted.T @ self._move)

    def variances(self, chosen: IntArray) -> FloatArray:
        """Return the variances of points with some replacements, given by index, shape (n, m)."""
        n_points, n_chosen = chosen.shape
        prior = np.repeat(self._stay, n_chosen, axis=1) * self._move[:, chosen.ravel()]
        variances = self._model._variances(prior, self._model.top)
        return variances.reshape(n_points, n_chosen)
