"""The multi-output Gaussian process over utilities at several fidelities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from mfhpo.games.hyperparameters import Hyperparameters

__all__ = ["Mark", "MultiOutputGP", "covariance", "squared_distances"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_CAPACITY = 64


def squared_distances(left: FloatArray, right: FloatArray, length_scales: FloatArray) -> FloatArray:
    """Squared distances of two sets of points in units of the length scales, shape (n, k)."""
    a, b = left / length_scales, right / length_scales
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
    distances: FloatArray = np.maximum(squares, 0.0)
    return distances


def covariance(
    hyperparameters: Hyperparameters,
    left: tuple[FloatArray, IntArray],
    right: tuple[FloatArray, IntArray],
) -> FloatArray:
    """Prior covariance of utilities, each given by its features and its level (Eq. 19-21).

    With ``K[m, m']`` for levels ``m <= m'``: ``K[M, M]`` is the target's kernel, ``K[m, m] =
    rho[m]**2 K[m+1, m+1] + (1 - rho[m]**2) kernel[m]``, and ``K[m, m'] = rho[m] ... rho[m'-1]
    K[m', m']``.

    Parameters
    ----------
    hyperparameters
        As named.
    left, right
        Features of shape (n, d) and levels of shape (n,).

    Returns
    -------
    array of shape (n, k)
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


class Mark(NamedTuple):
    """Where a process stood, to go back to."""

    n: int
    explained: FloatArray
    shared: FloatArray
    means: FloatArray


class MultiOutputGP:
    """A Gaussian process over (configuration, level), with the covariance of `covariance`.

    Observations are added one at a time; the Cholesky factor grows with them, and so do the
    predictions for a fixed set of points, at a cost that is linear in the observations.

    Parameters
    ----------
    hyperparameters
        What is taken as known.
    points
        Features of points at which predictions are kept at hand, shape (n_points, d).

    References
    ----------
    Zhang, Simeone and Poor, Multi-fidelity Bayesian optimization for Nash equilibria with
    black-box utilities, Eq. 19-23. Kennedy and O'Hagan, Predicting the output from a complex
    computer code when fast approximations are available, Biometrika 2000.

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
        n_levels = hyperparameters.n_levels
        self.hyperparameters = hyperparameters
        self.points = np.zeros((0, n_features)) if points is None else points
        self._n = 0
        self._features = np.zeros((_CAPACITY, n_features))
        self._levels = np.zeros(_CAPACITY, dtype=np.int64)
        self._factor = np.zeros((_CAPACITY, _CAPACITY))
        self._whitened = np.zeros(_CAPACITY)
        # The points' covariances with what was observed, whitened, and what follows from them:
        # the part of their variance that is explained, and of their covariance with the target.
        self._rows = np.zeros((n_levels, _CAPACITY, len(self.points)))
        self._explained = np.zeros((n_levels, len(self.points)))
        self._shared = np.zeros((n_levels, len(self.points)))
        self._means = np.zeros((n_levels, len(self.points)))

    @property
    def n(self) -> int:
        """Number of observations."""
        return self._n

    # Learning.

    def add(self, features: FloatArray, level: int, value: float | None) -> None:
        """Learn an observation.

        Parameters
        ----------
        features
            Shape (d,).
        level
            Its index.
        value
            None for one that is under way: where it will be is known, and what it will be is taken
            to be as predicted.
        """
        known = self.hyperparameters
        if self._n == len(self._levels):
            self._grow()
        n = self._n
        at = (features[None, :], np.array([level]))
        told = (self._features[:n], self._levels[:n])
        row = covariance(known, told, at)[:, 0]
        if n:
            row = solve_triangular(self._factor[:n, :n], row, lower=True, check_finite=False)
        # Rounding must not make what is left smaller than the noise.
        left = max(known.scales[level] ** 2 - row @ row, 0.0) + known.noise[level]
        pivot = float(np.sqrt(left))
        self._factor[n, :n], self._factor[n, n] = row, pivot
        whitened = 0.0
        if value is not None:
            whitened = (value - known.offsets[level] - row @ self._whitened[:n]) / pivot
        self._whitened[n] = whitened
        self._features[n], self._levels[n] = features, level
        self._n = n + 1
        if len(self.points):
            for other in range(known.n_levels):
                levels = np.full(len(self.points), other)
                prior = covariance(known, at, (self.points, levels))[0]
                self._rows[other, n] = (prior - row @ self._rows[other, :n]) / pivot
            new = self._rows[:, n]
            self._explained = self._explained + new**2
            self._shared = self._shared + new * new[-1]
            self._means = self._means + new * whitened

    def mark(self) -> Mark:
        """Remember what is known, to go back to it with `restore`."""
        return Mark(self._n, self._explained, self._shared, self._means)

    def restore(self, mark: Mark) -> None:
        """Forget what was added since."""
        self._n, self._explained, self._shared, self._means = mark

    # Predicting.

    def predict(self, features: FloatArray, level: int) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the utility (without noise) at points of shape (n, d)."""
        known = self.hyperparameters
        rows = self._whiten(features, level)
        means = known.offsets[level] + self._whitened[: self._n] @ rows
        variances = np.maximum(known.scales[level] ** 2 - (rows**2).sum(axis=0), 0.0)
        return means, variances

    def mean(self, features: FloatArray, level: int) -> FloatArray:
        """Means alone, which are cheap, at points of shape (n, d)."""
        prior = self._prior(features, level)
        means: FloatArray = self.hyperparameters.offsets[level] + self._weights() @ prior
        return means

    def deviation_means(
        self, features: FloatArray, own: FloatArray, columns: IntArray
    ) -> FloatArray:
        """Means at the target if some features are replaced, all others being as they are.

        The kernel is a product over features, so that this costs little more than the means at the
        points and at the replacements.

        Parameters
        ----------
        features
            Shape (n, d).
        own
            What features are replaced by, shape (k, number of columns).
        columns
            Which they are.

        Returns
        -------
        array of shape (n, k)
        """
        known, n = self.hyperparameters, self._n
        told, levels = self._features[:n], self._levels[:n]
        weights = self._weights() * known.links[levels, -1] * known.scales[levels]
        others = np.setdiff1d(np.arange(features.shape[1]), columns)
        lengths = known.length_scales[-1]
        stay = squared_distances(features[:, others], told[:, others], lengths[others])
        move = squared_distances(own, told[:, columns], lengths[columns])
        means = (np.exp(-0.5 * stay) * weights) @ np.exp(-0.5 * move).T
        deviating: FloatArray = known.offsets[-1] + known.scales[-1] * means
        return deviating

    @property
    def observed(self) -> tuple[FloatArray, IntArray]:
        """Features, shape (n, d), and levels, shape (n,), of what was added."""
        return self._features[: self._n], self._levels[: self._n]

    def moves(self, drawn: FloatArray) -> FloatArray:
        """Weights by which functions become ones that go with the observations.

        Parameters
        ----------
        drawn
            What would have been observed of each of k functions, with noise, shape (n, k).

        Returns
        -------
        array of shape (n, k)
        """
        n = self._n
        factor, whitened = self._factor[:n, :n], self._whitened[:n]
        offsets = self.hyperparameters.offsets[self._levels[:n]]
        observed = factor @ whitened + offsets
        halfway = solve_triangular(
            factor, observed[:, None] - drawn, lower=True, check_finite=False
        )
        weights: FloatArray = solve_triangular(
            factor, halfway, lower=True, trans="T", check_finite=False
        )
        return weights

    def moved(self, features: FloatArray, moves: FloatArray) -> FloatArray:
        """By how much functions move at the target at points of shape (n, d), shape (n, k)."""
        moved: FloatArray = self._prior(features, self.hyperparameters.n_levels - 1).T @ moves
        return moved

    def covariances(self, features: FloatArray, level: int) -> FloatArray:
        """Covariances of the utilities at points of shape (n, d) with each other, shape (n, n)."""
        rows = self._whiten(features, level)
        levels = np.full(len(features), level)
        prior = covariance(self.hyperparameters, (features, levels), (features, levels))
        posterior: FloatArray = prior - rows.T @ rows
        return posterior

    def with_target(self, features: FloatArray, level: int) -> tuple[FloatArray, FloatArray]:
        """Of points of shape (n, d): variance at a level, covariance with the target, each (n,)."""
        known = self.hyperparameters
        rows = self._whiten(features, level)
        target = self._whiten(features, known.n_levels - 1)
        variances = known.scales[level] ** 2 - (rows**2).sum(axis=0)
        shared = self._prior_with_target()[level] - (rows * target).sum(axis=0)
        return np.maximum(variances, 0.0), shared

    # Predictions that are kept at hand.

    @property
    def point_means(self) -> FloatArray:
        """Means at the target of the points, shape (n_points,)."""
        means: FloatArray = self.hyperparameters.offsets[-1] + self._means[-1]
        return means

    @property
    def point_variances(self) -> FloatArray:
        """Variances of the points at each level, shape (M, n_points)."""
        prior = self.hyperparameters.scales[:, None] ** 2
        return np.maximum(prior - self._explained, 0.0)

    @property
    def point_covariances(self) -> FloatArray:
        """Covariances of the points at each level with their target, shape (M, n_points)."""
        return self._prior_with_target()[:, None] - self._shared

    def _prior_with_target(self) -> FloatArray:
        known = self.hyperparameters
        prior: FloatArray = known.links[:, -1] * known.scales * known.scales[-1]
        return prior

    def _prior(self, features: FloatArray, level: int) -> FloatArray:
        told = (self._features[: self._n], self._levels[: self._n])
        at = (features, np.full(len(features), level))
        return covariance(self.hyperparameters, told, at)

    def _weights(self) -> FloatArray:
        n = self._n
        weights: FloatArray = solve_triangular(
            self._factor[:n, :n], self._whitened[:n], lower=True, trans="T", check_finite=False
        )
        return weights

    def _whiten(self, features: FloatArray, level: int) -> FloatArray:
        n = self._n
        prior = self._prior(features, level)
        rows: FloatArray = solve_triangular(
            self._factor[:n, :n], prior, lower=True, check_finite=False
        )
        return rows

    def _grow(self) -> None:
        n = self._n
        self._features = np.concatenate((self._features, np.zeros_like(self._features)))
        self._levels = np.concatenate((self._levels, np.zeros_like(self._levels)))
        self._whitened = np.concatenate((self._whitened, np.zeros_like(self._whitened)))
        self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)), axis=1)
        factor = np.zeros((2 * n, 2 * n))
        factor[:n, :n] = self._factor
        self._factor = factor
