"""What the observations say of every arm's mean at every fidelity, and how surely."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.confidence import MixtureRadius, Radius, default_radius, pulls_until
from mfhpo.knowledge.noise import (
    Bounded,
    EstimatedNoise,
    Gaussian,
    NoiseAudit,
    PooledVariance,
    SubGaussian,
    declared_sigmas,
)
from mfhpo.knowledge.normality import FEWEST_VALUES, NORMALITY_LEVEL, departure_in_words
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.knowledge.variances import ArmVariances
from mfhpo.problem import Problem

__all__ = ["Evidence", "NoNoiseWarning"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Of delta, the share that pays for the upper bounds on an estimated noise variance.
_NOISE_SHARE = 0.1

# Times the standard deviation that is estimated.
_UNIT_RADIUS = MixtureRadius(1.0)


class NoNoiseWarning(UserWarning):
    """Repeated evaluations were equal, although noise was to be estimated from them."""


class Evidence:
    """Means with confidence intervals that hold for all pairs (arm, fidelity) and at all times.

    Parameters
    ----------
    problem
        Arms, fidelities and what is known of the noise.
    delta
        Probability with which any of the intervals may fail.
    compared
        The fidelities whose values are evidence: the union bound is over these.
    radius
        Confidence radius, or one per fidelity; None: the tightest one for the problem's noise.
    adaptive
        Whether the next pull depends on the values seen, beyond pulls in turn of those who are
        left. An estimated variance is then bounded by prediction errors, which costs a little
        more: see `PooledVariance`.
    variances
        Whether `variance_bounds` are needed; they cost a share of delta where nothing is declared
        of the noise's scale. Where it is only bounded, half of delta is left to the intervals,
        which see when the variance is far below what the range allows.
    audit
        Whether a declared scale is compared with the values (`NoiseAudit`), where the radius is
        that for the noise.

    Raises
    ------
    ValueError
        If the number of radii is not the number of fidelities.
    """

    def __init__(
        self,
        problem: Problem,
        delta: float,
        compared: Sequence[int],
        radius: Radius | Sequence[Radius] | None,
        adaptive: bool = False,
        variances: bool = False,
        audit: bool = True,
    ) -> None:
        n_arms, n_fidelities, noise = problem.n_arms, problem.n_fidelities, problem.noise
        self._sigmas = declared_sigmas(noise, n_fidelities)
        self._adaptive = adaptive
        self._audits: list[NoiseAudit] = []
        self._estimates: list[ArmVariances] = []
        self._is_estimated = radius is None and isinstance(noise, EstimatedNoise)
        share = 1.0
        if audit and radius is None and isinstance(noise, SubGaussian):
            assert self._sigmas is not None
            self._audits = [NoiseAudit(sigma) for sigma in self._sigmas]
        if self._is_estimated or self._audits:
            level = _NOISE_SHARE * delta / len(compared)
            self._estimates = [ArmVariances(level) for _ in range(n_fidelities)]
        if self._is_estimated:
            share -= _NOISE_SHARE
            radius = _UNIT_RADIUS
        self._own: list[list[PooledVariance]] = []
        if variances and isinstance(noise, Gaussian):
            share -= _NOISE_SHARE
            level = _NOISE_SHARE * delta / (n_arms * len(compared))
            self._own = [
                [PooledVariance(level) for _ in range(n_fidelities)] for _ in range(n_arms)
            ]
        if variances and isinstance(noise, Bounded):
            share = 0.5
        if radius is None:
            radius = [default_radius(noise, m, n_fidelities) for m in range(n_fidelities)]
        if not isinstance(radius, (Radius, Sequence)):
            raise TypeError(f"radius must be a mfhpo.Radius or several, got {radius!r}.")
        self._radii = [radius] * n_fidelities if isinstance(radius, Radius) else list(radius)
        for given in self._radii:
            if not isinstance(given, Radius):
                raise TypeError(f"radius must be a mfhpo.Radius or several, got {given!r}.")
        if len(self._radii) != n_fidelities:
            raise ValueError(
                f"radius has {len(self._radii)} entries but there are {n_fidelities} fidelities; "
                f"give one, or one for each fidelity."
            )
        self._delta = share * delta
        self._compared = tuple(compared)
        self._statistics = PullStatistics(n_arms, n_fidelities, self._radii[-1].first_guess)
        # What is taken for the noise's variance where it is estimated.
        self._estimated: FloatArray = np.full((n_arms, n_fidelities), np.inf)
        # Half-widths that were worked out, and whether something was learned since.
        self._half_widths = np.full((n_arms, n_fidelities), np.inf)
        self._is_stale = np.ones((n_arms, n_fidelities), dtype=bool)

    @property
    def counts(self) -> IntArray:
        """Number of values seen, shape (K, M)."""
        return self._statistics.counts

    @property
    def delta(self) -> float:
        """Probability with which the means may leave their regions, without the noise's share."""
        return (1.0 - _NOISE_SHARE) * self._delta if self.widened else self._delta

    @property
    def _level(self) -> float:
        """The same for one arm at one fidelity."""
        return self.delta / (len(self.counts) * len(self._compared))

    @property
    def depends_on_values(self) -> bool:
        """Whether the radii depend on what was observed, not only on how often."""
        return (
            self._is_estimated
            or self.widened
            or any(radius.needs_squares or radius.needs_prediction_errors for radius in self._radii)
        )

    @property
    def estimates_variances(self) -> bool:
        """Whether `variance_bounds` depend on what was observed."""
        return bool(self._is_estimated or self._own) or self.widened

    @property
    def widened(self) -> bool:
        """Whether a declared scale of the noise was contradicted, and is estimated instead."""
        return any(audit.contradicted for audit in self._audits)

    def _estimates_at(self, fidelity: int) -> bool:
        """Whether the noise is estimated at a fidelity: by choice, or instead of a false scale."""
        return self._is_estimated or bool(self._audits and self._audits[fidelity].contradicted)

    @property
    def unaudited(self) -> dict[int, int]:
        """How many repeats are missing where values are too few to see that sigma is too small.

        By the fidelities whose values are evidence.
        """
        if not self._audits:
            return {}
        missing = {m: self._audits[m].missing for m in self._compared if self.counts[:, m].any()}
        return {m: repeats for m, repeats in missing.items() if repeats}

    @property
    def assumption(self) -> str:
        """What must be true of the noise, as a clause."""
        if self._is_estimated or self.widened:
            return "the noise is normal"
        return self._radii[-1].assumption

    @property
    def estimate(self) -> str:
        """How the noise was estimated, in words; empty where it was not."""
        if self._is_estimated:
            return (
                "noise: estimated, one variance as far as the arms agree; an arm that spreads "
                "more is given its own"
            )
        return ""

    @property
    def supposes_normal(self) -> bool:
        """Whether the intervals rest on normal noise."""
        return bool(self._own) or "normal" in self.assumption

    def add(self, arm: int, fidelity: int, value: float) -> str:
        """Learn one value; return what it contradicts, in words, or an empty string."""
        count = int(self.counts[arm, fidelity])
        growth = self._statistics.add(arm, fidelity, value)
        self._is_stale[arm, fidelity] = True
        prediction_error = growth * (count + 1) / max(count, 1)
        if self._own and count:
            self._own[arm][fidelity].add(prediction_error, 1)
        if not self._estimates or not count:
            return ""
        contradicted = ""
        if self._audits:
            contradicted = self._audits[fidelity].add(growth, value)
        estimate = self._estimates[fidelity]
        before = estimate.bound
        changed = estimate.add(
            prediction_error if self._adaptive else growth,
            growth,
            self._statistics.squares[:, fidelity],
            self.counts[:, fidelity],
        )
        if contradicted:
            # All levels have a smaller share of delta from now on.
            self._is_stale[:] = True
        if self._estimates_at(fidelity):
            if changed or contradicted:
                self._is_stale[:, fidelity] = True
                self._estimate(slice(None), fidelity)
            self._estimate(arm, fidelity)
        if self._is_estimated and math.isinf(before) and estimate.bound == 0.0:
            warnings.warn(
                "repeated evaluations give exactly the same values, so there is no noise to "
                "be sure against. If that is a fixed random seed or split, the answer is the "
                "best for that one only: draw a new one in every evaluation",
                NoNoiseWarning,
                stacklevel=4,
            )
        return contradicted

    def _estimate(self, arms: int | slice, fidelity: int) -> None:
        """Bring the estimated variances of some arms up to date; never below a declared one."""
        variances = self._estimates[fidelity].of_arms(
            self._statistics.squares[arms, fidelity], self.counts[arms, fidelity], self._level
        )
        if self._sigmas is not None:
            variances = np.maximum(variances, self._sigmas[fidelity] ** 2)
        self._estimated[arms, fidelity] = variances

    def set_sums(self, arms: IntArray, fidelity: int, counts: IntArray, sums: FloatArray) -> None:
        """Replace counts and sums of some arms at a fidelity; their spreads are not kept."""
        self._statistics.counts[arms, fidelity] = counts
        self._statistics.sums[arms, fidelity] = sums
        self._is_stale[arms, fidelity] = True

    def sums(self, arms: IntArray, fidelity: int) -> FloatArray:
        """Sums of the values, shape (n,)."""
        chosen: FloatArray = self._statistics.sums[arms, fidelity]
        return chosen

    def means(self, arms: IntArray, fidelity: int) -> FloatArray:
        """Means of the values, shape (n,); 0 where nothing was seen."""
        counts = np.maximum(self.counts[arms, fidelity], 1)
        return np.asarray(self.sums(arms, fidelity) / counts, dtype=np.float64)

    def all_means(self, arms: IntArray) -> FloatArray:
        """Means of the values at all fidelities, shape (n, M); 0 where nothing was seen."""
        sums = self._statistics.sums[arms]
        return np.asarray(sums / np.maximum(self.counts[arms], 1), dtype=np.float64)

    def intervals(self, arms: IntArray, bias: Bias | None) -> tuple[FloatArray, FloatArray]:
        """Bounds on the target means of several arms, shape (n,) each, as in `interval`."""
        target = self.counts.shape[1] - 1
        lows, highs = np.full(len(arms), -np.inf), np.full(len(arms), np.inf)
        for m in range(target + 1):
            if m < target and (bias is None or bias.kind != "max"):
                continue
            xi = 0.0 if bias is None or m == target else bias.bounds[m]
            means, half = self.means(arms, m), self.half_widths(arms, m) + xi
            lows, highs = np.maximum(lows, means - half), np.minimum(highs, means + half)
        return lows, highs

    def separated(
        self, better: int, others: IntArray, bias: Bias, epsilon: float = 0.0
    ) -> npt.NDArray[np.bool_]:
        """Whether one arm's intervals lie above those of others, less epsilon, shape (n,)."""
        one = np.array([better])
        if bias.kind == "max":
            lowest, _ = self.intervals(one, bias)
            _, highest = self.intervals(others, bias)
            return np.asarray(lowest + epsilon >= highest)
        apart = np.zeros(len(others), dtype=bool)
        for m in self._compared:
            margin = bias.bounds[m]
            low = self.means(one, m) - self.half_widths(one, m)
            high = self.means(others, m) + self.half_widths(others, m)
            apart |= low - high + epsilon >= margin
        return apart

    def half_widths(
        self, arms: IntArray, fidelity: int, counts: IntArray | None = None
    ) -> FloatArray:
        """Confidence radii of the means, shape (n,), as if they came of `counts` values each."""
        seen = self.counts[arms, fidelity]
        is_as_seen = counts is None or bool((counts == seen).all())
        if self._radii[fidelity].changes or not is_as_seen:
            return self._computed_half_widths(arms, fidelity, seen if counts is None else counts)
        stale = arms[self._is_stale[arms, fidelity]]
        if len(stale):
            self._half_widths[stale, fidelity] = self._computed_half_widths(
                stale, fidelity, self.counts[stale, fidelity]
            )
            self._is_stale[stale, fidelity] = False
        half: FloatArray = self._half_widths[arms, fidelity]
        return half

    def _computed_half_widths(self, arms: IntArray, fidelity: int, counts: IntArray) -> FloatArray:
        if self._estimates_at(fidelity):
            half = _UNIT_RADIUS(counts, self._level)
            scale = np.sqrt(self._estimated[arms, fidelity])
            known = np.isfinite(half)
            half[known] *= scale[known]
            return half
        return self._radii[fidelity](
            counts,
            self._level,
            squares=self._statistics.squares[arms, fidelity],
            prediction_errors=self._statistics.prediction_errors[arms, fidelity],
        )

    def radius_after(self, counts: IntArray, fidelity: int) -> FloatArray:
        """The radius after so many values, where it depends on nothing else; any shape."""
        return self._radii[fidelity](counts, self._level)

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Count, mean and radius of one arm at a fidelity."""
        row = np.array([arm])
        return (
            int(self.counts[arm, fidelity]),
            float(self.means(row, fidelity)[0]),
            float(self.half_widths(row, fidelity)[0]),
        )

    def interval(self, arm: int, bias: Bias | None) -> tuple[float, float]:
        """Bounds on an arm's mean at the target fidelity.

        The target's own interval, intersected with those of cheaper fidelities widened by xi_m
        where the bias bounds are of that kind; infinite where nothing can be said.
        """
        low, high = -math.inf, math.inf
        target = self.counts.shape[1] - 1
        for m in range(target + 1):
            count, mean, half = self.summary(arm, m)
            if m < target:
                if bias is None or bias.kind != "max":
                    continue
                half += bias.bounds[m]
            if count and mean - half <= high and mean + half >= low:
                low, high = max(low, mean - half), min(high, mean + half)
        return low, high

    def variance_bounds(self, arms: IntArray) -> FloatArray:
        """Upper bounds on the noise's variance proxy, shape (n, M); infinite where unknown.

        Declared, or estimated: then they all hold with the probability that was set aside for it.
        """
        if self._sigmas is not None:
            bounds = np.tile(np.square(self._sigmas), (len(arms), 1))
            for m in range(len(self._sigmas)):
                if self._estimates_at(m):
                    bounds[:, m] = self._estimated[arms, m]
            return bounds
        if self._own:
            return np.array([[own.bound for own in self._own[arm]] for arm in arms])
        estimated: FloatArray = self._estimated[arms]
        return estimated

    def departures(
        self, arms: IntArray, fidelity: int, shown: Callable[[float], float]
    ) -> list[tuple[int, str]]:
        """Which arms' values at a fidelity are clearly not normal, and how, in words."""
        seen, level = self._statistics, NORMALITY_LEVEL / len(self.counts)
        found = []
        for arm in arms[self.counts[arms, fidelity] >= FEWEST_VALUES].tolist():
            cell = (arm, fidelity)
            words = departure_in_words(
                int(seen.counts[cell]),
                float(seen.sums[cell]) / max(int(seen.counts[cell]), 1),
                [float(sums[cell]) for sums in (seen.squares, seen.cubes)],
                float(seen.lows[cell]),
                float(seen.highs[cell]),
                level,
                shown,
            )
            if words:
                found.append((arm, words))
        return found

    def noise_scale(self, fidelity: int) -> float:
        """Pooled standard deviation of the values around their arms' means; NaN without repeats."""
        degrees = int(np.maximum(self.counts[:, fidelity] - 1, 0).sum())
        squares = float(self._statistics.squares[:, fidelity].sum())
        return math.sqrt(squares / degrees) if degrees else math.nan

    def pulls_until(self, fidelity: int, widths: FloatArray) -> FloatArray:
        """Number of values after which a radius is at most `widths`, of the same shape.

        Infinite where it never is. Where the radius depends on the spread, the one seen so far at
        the fidelity is taken; NaN if there is none.
        """
        if self._estimates_at(fidelity):
            scale = math.sqrt(self._estimates[fidelity].bound)
            if math.isinf(scale):
                return np.full(widths.shape, np.nan)
            widths = widths / scale if scale > 0.0 else np.full(widths.shape, np.inf)
            return pulls_until(_UNIT_RADIUS, self._level, widths)
        radius, variance = self._radii[fidelity], None
        if radius.needs_squares or radius.needs_prediction_errors:
            variance = self.noise_scale(fidelity) ** 2
            if math.isnan(variance):
                return np.full(widths.shape, np.nan)
        return pulls_until(radius, self._level, widths, variance)

    def state_dict(self) -> dict[str, Any]:
        """Everything learned, as plain JSON values."""
        return {
            "statistics": self._statistics.state_dict(),
            "estimates": [estimate.state_dict() for estimate in self._estimates],
            "own": [[own.state_dict() for own in row] for row in self._own],
            "audits": [audit.state_dict() for audit in self._audits],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state.

        Raises
        ------
        ValueError
            If it is of another shape.
        """
        self._is_stale[:] = True
        self._statistics.load_state_dict(state["statistics"])
        for estimate, saved in zip(self._estimates, state["estimates"], strict=True):
            estimate.load_state_dict(saved)
        for audit, saved in zip(self._audits, state["audits"], strict=True):
            audit.load_state_dict(saved)
        for fidelity in range(len(self._estimates)):
            if self._estimates_at(fidelity):
                self._estimate(slice(None), fidelity)
        for row, saved_row in zip(self._own, state["own"], strict=True):
            for own, saved in zip(row, saved_row, strict=True):
                own.load_state_dict(saved)
