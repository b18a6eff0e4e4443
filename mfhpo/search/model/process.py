"""A model of values over configurations and levels: what cheap levels say about the target."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtrtri

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.search.model.kernels import FINER, distances, five_halves, three_halves, warp

_JITTER, _MOST_JITTER = 1e-6, 1.0
_STEPS = 100  # of a fit
# Where a fit begins, and the centre of its prior. Scales grow with the number of features, as
# distances do: two random configurations should tell a little about each other in any space.
_SCALE, _ALIKE, _ROUGH, _NOISE = 0.35, 0.9, 0.7, 0.05
_SCALE_SPREAD, _MIXING_SPREAD, _NOISE_SPREAD = 1.0, 0.7, 1.5
_OWN, _OWN_SPREAD = 1.2, 0.7  # of the target's own part, in standard deviations of its values
_FAR = 20.0  # of the logarithm of a scale or a noise: a step of a fit must not overflow
_EXPONENT_SPREAD, _EXPONENT_MOST = 0.75, 3.0  # of the logarithms of what numbers are warped by
_NEIGHBOURS = 0.7  # correlation of neighbouring levels, before anything is seen
_STEP = 1e-4  # in which curvature is measured, in standard deviations of the prior


@dataclass(frozen=True)
class LevelData:
    """Observations that a process is conditioned on.

    Configurations' features, shape (n, d); level indices (n,); values of about unit size at each
    level (n,); and the number of evaluations that each value is the mean of (n,), or one for all.
    """

    features: FloatArray
    levels: IntArray
    values: FloatArray
    counts: IntArray | int = 1

    def by_level(self) -> LevelData:
        """Return the rows in the order of levels: those of the target come last."""
        order = np.argsort(self.levels, kind="stable")
        counts = np.broadcast_to(self.counts, len(order))[order]
        return LevelData(self.features[order], self.levels[order], self.values[order], counts)


class LevelProcess:
    """A Gaussian process over configurations, one output for each level.

    The covariance of two observations is ``B[m, m'] k(x, x') + C[m, m'] h(x, x')``, plus noise. The
    smooth part `k`, the Matérn kernel of 5/2 with a scale for each feature, tells about
    configurations that are alike. The rough part `h`, that of 3/2 with a share of these scales,
    tells about a configuration's other levels. Both matrices over levels are free (Bonilla, Chai
    and Williams, Multi-task Gaussian process prediction, NIPS 2007). The target has a part of its
    own (Kennedy and O'Hagan, Biometrika 2000): what matters after few epochs need not matter after
    many. Inputs are warped first: `numbers` says which features are numbers from 0 to 1, shape
    (n_features,). Everything is fitted by the largest posterior density, with weak priors; draws
    use Laplace's approximation (MacKay, Information Theory, Inference, and Learning Algorithms,
    2003, chapter 27).
    """

    def __init__(self, n_features: int, n_levels: int, numbers: BoolArray | None = None) -> None:
        self.n_features = n_features
        self.n_levels = n_levels
        self._numbers = np.zeros(n_features, dtype=np.bool_) if numbers is None else numbers
        self._triangle = np.tril_indices(n_levels)
        # Where each kind of parameter is among all of them; one level alone has no own part.
        n_mixing = len(self._triangle[0])
        sizes = [n_features, n_mixing, n_mixing, n_levels]
        sizes += [n_features + 1 if n_levels > 1 else 0, 2 * int(self._numbers.sum())]
        ends = np.cumsum(sizes).tolist()
        (
            self._scales_at,
            self._smooth_at,
            self._rough_at,
            self._noise_at,
            self._own_at,
            self._exponents_at,
        ) = (slice(end - size, end) for end, size in zip(ends, sizes, strict=True))
        self._prior, self._precision = self._weak_prior()
        self._parameters = self._prior.copy()
        self._root = np.diag(self._precision**-0.5)  # of the parameters' covariance

    def fit(self, data: LevelData, steps: int = _STEPS) -> None:
        """Fit all parameters in so many steps at most, from where the last fit ended."""
        from scipy.optimize import Bounds, minimize  # slow to import, and not needed before

        data = data.by_level()
        indicators = np.eye(self.n_levels)[data.levels]
        most = np.full(len(self._parameters), np.inf)
        most[self._exponents_at] = _EXPONENT_MOST
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
        """Draw a process, not conditioned yet, with parameters from their posterior, or prior."""
        other = copy(self)
        off = self._root @ rng.standard_normal(len(self._parameters))
        other._parameters = self._parameters + off
        warped = other._parameters[self._exponents_at]
        other._parameters[self._exponents_at] = np.clip(warped, -_EXPONENT_MOST, _EXPONENT_MOST)
        return other

    def condition(self, data: LevelData) -> None:
        """Learn what was observed, with everything else as it was fitted or drawn."""
        data = data.by_level()
        self._data = replace(data, features=self._warped(data.features))
        self._scales, smooth, rough, self._noise, self._own = self._unpacked(self._parameters)
        between, alone = smooth @ smooth.T, rough @ rough.T
        self._smooth, self._rough = between[:, data.levels], alone[:, data.levels]
        self._at_target = float(between[-1, -1]), float(alone[-1, -1])
        # Of a configuration's values at all levels, before anything is seen.
        self._over_levels = between + alone
        self._over_levels[-1, -1] += self._own[-1] ** 2 if self.n_levels > 1 else 0.0
        covariance = self._covariance(self._data.features, data.levels)
        _add_noise(covariance, self._noise[data.levels], data.counts)
        # Every question multiplies by it, which is much faster than solving equations each time.
        self._inverse_factor: FloatArray = dtrtri(_factor(covariance), lower=1)[0]
        self._weights = self._inverse_factor.T @ (self._inverse_factor @ data.values)

    def at_target(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation at the target, without noise, for shape (n, d)."""
        target = self.n_levels - 1
        across = self._covariance(self._warped(features), target)
        variance = self._over_levels[target, target] - (self._half(across) ** 2).sum(axis=0)
        return across @ self._weights, np.sqrt(np.maximum(variance, 1e-10))

    def jointly_at_target(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means (n,) and covariances (n, n) at the target level, without noise."""
        features = self._warped(features)
        across = self._covariance(features, self.n_levels - 1)
        half = self._half(across)
        smooth, rough = _kernels(features, features, self._scales)
        covariance: FloatArray = self._at_target[0] * smooth + self._at_target[1] * rough
        if self.n_levels > 1:
            own = five_halves(distances(features, features, self._own[:-1]))[0]
            covariance += self._own[-1] ** 2 * own
        return across @ self._weights, covariance - half.T @ half

    def expected(self, features: FloatArray, levels: IntArray) -> FloatArray:
        """Return means of configurations at levels, shape (n,)."""
        return np.asarray(self._covariance(self._warped(features), levels) @ self._weights)

    @property
    def target_noise(self) -> float:
        """Standard deviation of an observation at the target."""
        return float(self._noise[-1])

    def learnt_at(
        self, features: FloatArray, levels: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what observing configurations at levels would tell about the target, (n,) each.

        That is the mean now, the deviation of the mean after it, and the deviation that is left.
        """
        target = self.n_levels - 1
        features = self._warped(features)
        at_target = self._covariance(features, target)
        target_half, level_half = (
            self._half(at_target),
            self._half(self._covariance(features, levels)),
        )
        prior = self._over_levels
        variance = prior[target, target] - (target_half**2).sum(axis=0)
        seen = prior[levels, levels] - (level_half**2).sum(axis=0) + self._noise[levels] ** 2
        shared = prior[levels, target] - (target_half * level_half).sum(axis=0)
        moved = np.minimum(np.abs(shared) / np.sqrt(np.maximum(seen, 1e-10)), np.sqrt(variance))
        left = np.sqrt(np.maximum(variance - moved**2, 1e-10))
        return at_target @ self._weights, moved, left

    def _weak_prior(self) -> tuple[FloatArray, FloatArray]:
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

    def _unpacked(self, parameters: FloatArray) -> tuple[FloatArray, ...]:
        """Return scales, the factors of the smooth and rough parts over levels, noise, own part."""
        smooth = np.zeros((self.n_levels, self.n_levels))
        rough = np.zeros((self.n_levels, self.n_levels))
        smooth[self._triangle] = parameters[self._smooth_at]
        rough[self._triangle] = parameters[self._rough_at]
        scales = np.exp(np.clip(parameters[self._scales_at], -_FAR, _FAR))
        noise = np.exp(np.clip(parameters[self._noise_at], -_FAR, _FAR))
        return scales, smooth, rough, noise, np.exp(np.clip(parameters[self._own_at], -_FAR, _FAR))

    def _root_of_covariance(self, data: LevelData, indicators: FloatArray) -> FloatArray:
        """Return the root of the parameters' covariance, which is at most the prior's."""
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

    def _warped(self, features: FloatArray) -> FloatArray:
        warped = features.copy()
        exponents = self._parameters[self._exponents_at]
        warped[:, self._numbers] = warp(features[:, self._numbers], exponents)[0]
        return warped

    def _half(self, across: FloatArray) -> FloatArray:
        """Return covariances (n, m) in terms of independent data (m, n), for variances."""
        return np.asarray(dtrmm(1.0, self._inverse_factor, across.T, lower=1))

    def _covariance(self, features: FloatArray, levels: IntArray | int) -> FloatArray:
        """Return the covariance of values with the data, without noise; features are warped."""
        data = self._data
        covariance, rough = _kernels(features, data.features, self._scales)
        covariance *= self._smooth[levels]
        rough *= self._rough[levels]
        covariance += rough
        if self.n_levels > 1:
            target = self.n_levels - 1
            here = slice(None) if isinstance(levels, int) and levels == target else levels == target
            first = int(np.searchsorted(data.levels, target))
            apart = distances(features[here], data.features[first:], self._own[:-1])
            covariance[here, first:] += self._own[-1] ** 2 * five_halves(apart)[0]
        return covariance

    def _loss(
        self, parameters: FloatArray, data: LevelData, indicators: FloatArray
    ) -> tuple[float, FloatArray]:
        scales, smooth, rough, noise, own_values = self._unpacked(parameters)
        features = data.features.copy()
        features[:, self._numbers], by_a, by_b = warp(
            features[:, self._numbers], parameters[self._exponents_at]
        )
        distance = distances(features, features, scales)
        alike, change = five_halves(distance)
        distance *= FINER
        near, rough_change = three_halves(distance)
        smooth_levels = (smooth @ smooth.T)[:, data.levels][data.levels]
        rough_levels = (rough @ rough.T)[:, data.levels][data.levels]
        covariance = smooth_levels * alike
        covariance += rough_levels * near
        top = slice(int(np.searchsorted(data.levels, self.n_levels - 1)), None)
        if self.n_levels > 1:
            at_top = features[top]
            own, own_change = five_halves(distances(at_top, at_top, own_values[:-1]))
            own *= own_values[-1] ** 2
            own_change *= own_values[-1] ** 2
            covariance[top, top] += own
        _add_noise(covariance, noise[data.levels], data.counts)
        off = parameters - self._prior
        try:
            factor = cholesky(covariance, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(parameters)
        inverse_factor = dtrtri(factor, lower=1)[0]
        weights = inverse_factor.T @ (inverse_factor @ data.values)
        loss = 0.5 * data.values @ weights + np.log(np.diag(factor)).sum()
        # Half the trace of `pull` times a derivative of the covariance is the loss's derivative.
        pull = inverse_factor.T @ inverse_factor
        pull -= np.outer(weights, weights)
        gradient = np.empty_like(parameters)
        change *= 5.0 / 3.0 * smooth_levels
        change += 5.0 * FINER**2 * rough_levels * rough_change
        change *= pull
        gradient[self._scales_at], away = _by_scales(features, scales, change)
        by_feature = -away / scales
        by_level = indicators.T @ (pull * alike) @ indicators
        gradient[self._smooth_at] = (by_level @ smooth)[self._triangle]
        by_level = indicators.T @ (pull * near) @ indicators
        gradient[self._rough_at] = (by_level @ rough)[self._triangle]
        gradient[self._noise_at] = indicators.T @ (np.diag(pull) / data.counts) * noise**2
        if self.n_levels > 1:
            own_change *= 5.0 / 3.0
            own_change *= pull[top, top]
            own_gradient, own_away = _by_scales(at_top, own_values[:-1], own_change)
            by_feature[top] -= own_away / own_values[:-1]
            gradient[self._own_at] = np.append(own_gradient, (pull[top, top] * own).sum())
        by_feature = by_feature[:, self._numbers]
        gradient[self._exponents_at] = np.concatenate(
            [(by_feature * by_a).sum(axis=0), (by_feature * by_b).sum(axis=0)]
        )
        return loss + 0.5 * float(off**2 @ self._precision), gradient + self._precision * off


def _kernels(
    features: FloatArray, others: FloatArray, scales: FloatArray
) -> tuple[FloatArray, FloatArray]:
    distance = distances(features, others, scales)
    smooth = five_halves(distance)[0]
    distance *= FINER
    return smooth, three_halves(distance)[0]


def _add_noise(covariance: FloatArray, noise: FloatArray, counts: IntArray | int) -> None:
    covariance.flat[:: len(covariance) + 1] += noise**2 / counts + _JITTER


def _by_scales(
    features: FloatArray, scales: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the loss's derivatives by log scales, and minus those by scaled features."""
    scaled = features / scales
    away = scaled * spread.sum(axis=1)[:, None] - spread @ scaled
    return (scaled * away).sum(axis=0), away


def _factor(covariance: FloatArray) -> FloatArray:
    """Return the Cholesky factor, with more on the diagonal where rounding breaks it."""
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
