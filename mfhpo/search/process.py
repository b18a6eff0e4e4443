"""A model of values over configurations and levels: what cheap levels say of the target."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import Bounds, minimize

from mfhpo.search.warping import warp, warp_with_slopes

__all__ = ["LevelData", "LevelProcess"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_JITTER, _MOST_JITTER = 1e-6, 1.0
_STEPS = 100  # of a fit
# Where a fit begins, and the centre of its prior. Scales grow with the number of features, as
# distances do: two random configurations should tell a little of each other in any space.
_SCALE, _ALIKE, _ROUGH, _NOISE = 0.35, 0.9, 0.7, 0.05
_SCALE_SPREAD, _MIXING_SPREAD, _NOISE_SPREAD = 1.0, 0.7, 1.5
_OWN, _OWN_SPREAD = 1.2, 0.7  # of the target's own part, in standard deviations of its values
_FAR = 20.0  # of the logarithm of a scale or a noise
_FINER = 5.0  # the rough part's share of the scales is one in so many
_EXPONENT_SPREAD, _EXPONENT_MOST = 0.75, 3.0  # of the logarithms of what numbers are warped by
_NEIGHBOURS = 0.7  # correlation of neighbouring levels, before anything is seen
_STEP = 1e-4  # in which curvature is measured, in standard deviations of the prior


@dataclass(frozen=True)
class LevelData:
    """Observations that a process is conditioned on.

    Parameters
    ----------
    features
        Of the configuration, shape (n, d).
    levels
        Index of the level, shape (n,).
    values
        Of about unit size at each level, shape (n,).
    counts
        Number of evaluations that each value is the mean of, shape (n,), or one for all.
    """

    features: FloatArray
    levels: IntArray
    values: FloatArray
    counts: IntArray | int = 1


class LevelProcess:
    """A Gaussian process over configurations, one output for each level.

    The covariance of two observations is ``B[m, m'] k(x, x') + C[m, m'] h(x, x')``, plus noise: a
    smooth part, which tells of configurations that are alike, and a rough one, which tells of a
    configuration's other levels and of those that are nearly the same. Both matrices over levels
    are free (the linear model of coregionalisation), so that a level that says nothing of the
    target is found out; `k` is the Matérn kernel of 5/2 with a scale for each feature, `h` that of
    3/2 with a share of these scales. The target has a part of its own besides, with its own scales:
    there are many more values at cheap levels, the shared scales are theirs, and what matters after
    few epochs need not be what matters after many. Numbers are warped first: a scale that fits one
    end of a range need not fit the other. Everything is fitted by the largest posterior density,
    with weak priors.

    Parameters
    ----------
    n_features, n_levels
        Sizes.
    numbers
        Which features are numbers in ranges from 0 to 1, which may be warped
        (`mfhpo.search.warping`), shape (n_features,). None: none.

    References
    ----------
    Bonilla, Chai and Williams, Multi-task Gaussian process prediction, NIPS 2007. Swersky, Snoek
    and Adams, Multi-task Bayesian optimization, NIPS 2013. Kennedy and O'Hagan, Predicting the
    output from a complex computer code when fast approximations are available, Biometrika 2000,
    for the target's own part. Snoek, Swersky, Zemel and Adams, Input warping for Bayesian
    optimization of non-stationary functions, ICML 2014. MacKay, Information Theory, Inference,
    and Learning Algorithms, Cambridge University Press 2003, chapter 27, for Laplace's
    approximation.
    """

    def __init__(
        self, n_features: int, n_levels: int, numbers: npt.NDArray[np.bool_] | None = None
    ) -> None:
        self.n_features = n_features
        self.n_levels = n_levels
        self._numbers = np.zeros(n_features, dtype=np.bool_) if numbers is None else numbers
        self._triangle = np.tril_indices(n_levels)
        # Where the target's own part is among the parameters; one level alone needs none.
        first = n_features + 2 * len(self._triangle[0]) + n_levels
        self._own = slice(first, first + (n_features + 1 if n_levels > 1 else 0))
        # Then what numbers are warped by.
        self._exponents = slice(self._own.stop, self._own.stop + 2 * int(self._numbers.sum()))
        self._prior, self._precision = self._weak_prior()
        self._parameters = self._prior.copy()
        self._root = np.diag(self._precision**-0.5)  # of the parameters' covariance

    # Fitting.

    def fit(self, data: LevelData, steps: int = _STEPS) -> None:
        """Fit scales, covariances, noise and warping, from where the last fit ended.

        Parameters
        ----------
        data
            Observations.
        steps
            Largest number of steps.
        """
        indicators = np.eye(self.n_levels)[data.levels]
        most = np.full(len(self._parameters), np.inf)
        most[self._exponents] = _EXPONENT_MOST
        result = minimize(
            self._loss,
            self._parameters,
            args=(data, indicators),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(-most, most),
            options={"maxiter": steps},
        )
        self._parameters = result.x
        self._root = self._root_of_covariance(data, indicators)

    def drawn(self, rng: np.random.Generator) -> LevelProcess:
        """A process with parameters drawn from what the prior and the data of the fit leave open.

        The most probable parameters alone make a model too sure of itself: from few values they
        say, for instance, that one feature does not matter, and what lies beyond is never tried.
        Parameters are drawn from Laplace's approximation of their posterior, or from the prior if
        nothing was fitted.

        Parameters
        ----------
        rng
            Source of randomness.

        Returns
        -------
        LevelProcess
            Not conditioned yet.
        """
        other = LevelProcess(self.n_features, self.n_levels, self._numbers)
        off = self._root @ rng.standard_normal(len(self._parameters))
        other._parameters = self._parameters + off
        warped = other._parameters[self._exponents]
        other._parameters[self._exponents] = np.clip(warped, -_EXPONENT_MOST, _EXPONENT_MOST)
        other._root = self._root
        return other

    def condition(self, data: LevelData) -> None:
        """Learn what was observed, with everything else as it was fitted or drawn."""
        data = replace(data, features=self._on_their_scales(data.features))
        self._data = data
        self._scales, smooth, rough, self._noise = self._unpacked(self._parameters)
        self._smooth, self._rough = smooth @ smooth.T, rough @ rough.T
        levels = data.levels
        distance = _distances(data.features, data.features, self._scales)
        covariance = self._smooth[np.ix_(levels, levels)] * _smooth_kernel(distance)
        covariance += self._rough[np.ix_(levels, levels)] * _rough_kernel(distance)
        if self.n_levels > 1:
            top = levels == self.n_levels - 1
            own, _ = self._own_part(self._parameters, data.features[top], data.features[top])
            covariance[np.ix_(top, top)] += own
        covariance[np.diag_indices_from(covariance)] += (
            self._noise[levels] ** 2 / data.counts + _JITTER
        )
        self._factor = _factor(covariance)
        self._weights = cho_solve((self._factor, True), data.values, check_finite=False)

    # Predicting.

    def at_target(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation at the target level, without noise, for shape (n, d)."""
        target = self.n_levels - 1
        levels = np.full(len(features), target)
        across = self._across(features, levels)
        half = solve_triangular(self._factor, across.T, lower=True, check_finite=False)
        variance = self._over_levels()[target, target] - (half**2).sum(axis=0)
        return across @ self._weights, np.sqrt(np.maximum(variance, 1e-10))

    @property
    def target_noise(self) -> float:
        """Standard deviation of an observation at the target."""
        return float(self._noise[-1])

    def learnt_at(
        self, features: FloatArray, levels: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What observing configurations at levels would tell of the target.

        Returns
        -------
        mean, moved, left : arrays of shape (n,)
            Mean at the target now; standard deviation of that mean once the observation is made;
            standard deviation of the target that would still be left.
        """
        target = self.n_levels - 1
        at_target = self._across(features, np.full(len(features), target))
        at_level = self._across(features, levels)
        target_half = solve_triangular(self._factor, at_target.T, lower=True, check_finite=False)
        level_half = solve_triangular(self._factor, at_level.T, lower=True, check_finite=False)
        prior = self._over_levels()
        variance = prior[target, target] - (target_half**2).sum(axis=0)
        seen = prior[levels, levels] - (level_half**2).sum(axis=0) + self._noise[levels] ** 2
        shared = prior[levels, target] - (target_half * level_half).sum(axis=0)
        moved = np.minimum(np.abs(shared) / np.sqrt(np.maximum(seen, 1e-10)), np.sqrt(variance))
        left = np.sqrt(np.maximum(variance - moved**2, 1e-10))
        return at_target @ self._weights, moved, left

    def correlation_with_target(self) -> FloatArray:
        """Correlation of each level's values with the target's, over configurations."""
        prior = self._over_levels()
        scale = np.sqrt(np.diag(prior))
        correlation: FloatArray = prior[:, -1] / (scale * scale[-1])
        return correlation

    # Helpers.

    def _root_of_covariance(self, data: LevelData, indicators: FloatArray) -> FloatArray:
        """The matrix that makes independent standard normal numbers the parameters' errors.

        Times its transpose it is the inverse of the loss's curvature, which is taken to be nowhere
        less than the prior's: a fit may have ended before the largest density was reached. Of all
        such matrices it is the one that moves little when the curvature does.
        """
        spreads = self._precision**-0.5
        here = self._parameters
        slopes = self._loss(here, data, indicators)[1]
        curvature = np.empty((len(here), len(here)))
        for i, spread in enumerate(spreads):
            there = here.copy()
            there[i] += _STEP * spread
            curvature[i] = (self._loss(there, data, indicators)[1] - slopes) / _STEP * spreads
        values, vectors = np.linalg.eigh((curvature + curvature.T) / 2.0)
        root: FloatArray = vectors / np.sqrt(np.maximum(values, 1.0)) @ vectors.T
        return spreads[:, None] * root

    def _on_their_scales(self, features: FloatArray) -> FloatArray:
        scaled = features.copy()
        scaled[:, self._numbers] = warp(
            features[:, self._numbers], self._parameters[self._exponents]
        )
        return scaled

    def _weak_prior(self) -> tuple[FloatArray, FloatArray]:
        """Centre and precision of all parameters."""
        apart = np.abs(np.subtract.outer(np.arange(self.n_levels), np.arange(self.n_levels)))
        mixing = np.linalg.cholesky(_NEIGHBOURS**apart)[self._triangle]
        scales = np.full(self.n_features, np.log(_SCALE * np.sqrt(max(self.n_features, 1))))
        parts = [
            (scales, _SCALE_SPREAD),
            (_ALIKE * mixing, _MIXING_SPREAD),
            (_ROUGH * mixing, _MIXING_SPREAD),
            (np.full(self.n_levels, np.log(_NOISE)), _NOISE_SPREAD),
        ]
        if self.n_levels > 1:
            parts += [(scales, _SCALE_SPREAD), (np.log([_OWN]), _OWN_SPREAD)]
        parts.append((np.zeros(2 * int(self._numbers.sum())), _EXPONENT_SPREAD))
        centre = np.concatenate([centres for centres, _ in parts])
        spreads = np.repeat([spread for _, spread in parts], [len(one) for one, _ in parts])
        return centre, spreads**-2.0

    def _unpacked(
        self, parameters: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        d, t = self.n_features, len(self._triangle[0])
        smooth = np.zeros((self.n_levels, self.n_levels))
        rough = np.zeros((self.n_levels, self.n_levels))
        smooth[self._triangle] = parameters[d : d + t]
        rough[self._triangle] = parameters[d + t : d + 2 * t]
        # A step too far on the way of a fit must not overflow.
        scales = np.exp(np.clip(parameters[:d], -_FAR, _FAR))
        noise = parameters[d + 2 * t : d + 2 * t + self.n_levels]
        return scales, smooth, rough, np.exp(np.clip(noise, -_FAR, _FAR))

    def _own_part(
        self, parameters: FloatArray, features: FloatArray, others: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The target's own part of the covariance, and the distances in its scales."""
        own = np.exp(np.clip(parameters[self._own], -_FAR, _FAR))
        distance = _distances(features, others, own[:-1])
        return own[-1] ** 2 * _smooth_kernel(distance), distance

    def _over_levels(self) -> FloatArray:
        """Covariance of a configuration's values at all levels, before anything is seen."""
        prior: FloatArray = self._smooth + self._rough
        if self.n_levels > 1:
            nowhere = np.zeros((1, self.n_features))
            own, _ = self._own_part(self._parameters, nowhere, nowhere)
            prior[-1, -1] += own.item()
        return prior

    def _across(self, features: FloatArray, levels: IntArray) -> FloatArray:
        data = self._data
        features = self._on_their_scales(features)
        distance = _distances(features, data.features, self._scales)
        across = self._smooth[levels][:, data.levels] * _smooth_kernel(distance)
        across += self._rough[levels][:, data.levels] * _rough_kernel(distance)
        if self.n_levels > 1:
            here, there = levels == self.n_levels - 1, data.levels == self.n_levels - 1
            own, _ = self._own_part(self._parameters, features[here], data.features[there])
            across[np.ix_(here, there)] += own
        return across

    def _loss(
        self, parameters: FloatArray, data: LevelData, indicators: FloatArray
    ) -> tuple[float, FloatArray]:
        """Minus the log posterior density of the parameters, and its gradient."""
        d, t = self.n_features, len(self._triangle[0])
        scales, smooth, rough, noise = self._unpacked(parameters)
        levels = np.ix_(data.levels, data.levels)
        features = data.features.copy()
        features[:, self._numbers], by_a, by_b = warp_with_slopes(
            features[:, self._numbers], parameters[self._exponents]
        )
        distance = _distances(features, features, scales)
        alike, near = _smooth_kernel(distance), _rough_kernel(distance)
        smooth_levels, rough_levels = (smooth @ smooth.T)[levels], (rough @ rough.T)[levels]
        covariance = smooth_levels * alike + rough_levels * near
        top = data.levels == self.n_levels - 1
        if self.n_levels > 1:
            at_top = features[top]
            own, own_distance = self._own_part(parameters, at_top, at_top)
            covariance[np.ix_(top, top)] += own
        covariance[np.diag_indices_from(covariance)] += (
            noise[data.levels] ** 2 / data.counts + _JITTER
        )
        off = parameters - self._prior
        try:
            factor = cholesky(covariance, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(parameters)
        weights = cho_solve((factor, True), data.values, check_finite=False)
        inverse = cho_solve((factor, True), np.eye(len(data.levels)), check_finite=False)
        loss = 0.5 * data.values @ weights + np.log(np.diag(factor)).sum()
        # Half the trace of `pull` times a derivative of the covariance is the loss's derivative.
        pull = inverse - np.outer(weights, weights)
        gradient = np.empty_like(parameters)
        # The kernels' derivatives by a log scale are these times the squared scaled difference.
        smooth_change = (5.0 / 3.0) * (1.0 + distance) * np.exp(-distance)
        rough_change = 5.0 * _FINER**2 * np.exp(-_FINER * distance)
        spread = pull * (smooth_levels * smooth_change + rough_levels * rough_change)
        scaled = features / scales
        away = scaled * spread.sum(axis=1)[:, None] - spread @ scaled
        gradient[:d] = (scaled * away).sum(axis=0)
        by_feature = -away / scales
        by_level = indicators.T @ (pull * alike) @ indicators
        gradient[d : d + t] = (by_level @ smooth)[self._triangle]
        by_level = indicators.T @ (pull * near) @ indicators
        gradient[d + t : d + 2 * t] = (by_level @ rough)[self._triangle]
        gradient[d + 2 * t : d + 2 * t + self.n_levels] = (
            indicators.T @ (np.diag(pull) / data.counts) * noise**2
        )
        if self.n_levels > 1:
            values = np.exp(np.clip(parameters[self._own], -_FAR, _FAR))
            pull_top = pull[np.ix_(top, top)]
            change = (5.0 / 3.0) * (1.0 + own_distance) * np.exp(-own_distance)
            own_spread = pull_top * values[-1] ** 2 * change
            own_scaled = at_top / values[:-1]
            own_away = own_scaled * own_spread.sum(axis=1)[:, None] - own_spread @ own_scaled
            own_gradient = (own_scaled * own_away).sum(axis=0)
            by_feature[top] -= own_away / values[:-1]
            gradient[self._own] = np.append(own_gradient, (pull_top * own).sum())
        by_feature = by_feature[:, self._numbers]
        gradient[self._exponents] = np.concatenate(
            [(by_feature * by_a).sum(axis=0), (by_feature * by_b).sum(axis=0)]
        )
        return loss + 0.5 * float(off**2 @ self._precision), gradient + self._precision * off


def _factor(covariance: FloatArray) -> FloatArray:
    """The Cholesky factor, with more on the diagonal where rounding leaves it none.

    As for many observations of configurations that are nearly the same, and hardly any noise, or
    for a drawn scale so small that distances keep no digits.
    """
    jitter = _JITTER
    while True:
        try:
            factor: FloatArray = cholesky(covariance, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            if jitter >= _MOST_JITTER:
                raise
            jitter *= 10.0
            covariance = covariance + jitter * np.eye(len(covariance))
        else:
            return factor


def _smooth_kernel(distance: FloatArray) -> FloatArray:
    kernel: FloatArray = (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)
    return kernel


def _rough_kernel(distance: FloatArray) -> FloatArray:
    kernel: FloatArray = (1.0 + _FINER * distance) * np.exp(-_FINER * distance)
    return kernel


def _distances(features: FloatArray, others: FloatArray, scales: FloatArray) -> FloatArray:
    """Distances times the square root of 5, shape (n, m)."""
    left, right = features / scales, others / scales
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :]
    distances: FloatArray = np.sqrt(5.0 * np.maximum(squares - 2.0 * left @ right.T, 0.0) + 1e-12)
    return distances
