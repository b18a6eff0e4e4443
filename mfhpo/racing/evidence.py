"""What the observations say about every arm's mean at every fidelity, and which arm leads."""

import math
from collections.abc import Sequence

import numpy as np

from mfhpo._validation import shown
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.confidence import Radius, StudentMixtureRadius, default_radius, pulls_until
from mfhpo.knowledge.noise import (
    CONTRADICTED,
    FEWEST_VALUES,
    NORMALITY_LEVEL,
    REMEDY,
    Bounded,
    departure_in_words,
)
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.problem import LARGEST, Labels, Problem
from mfhpo.racing.noise_evidence import NoiseEvidence

# Where a variance is estimated: by choice, or because a declared scale was contradicted.
_OWN_VARIANCE = StudentMixtureRadius()

# Of the average of all values: finite from two values on, and wrong in one case of twenty on the
# side that matters.
_RADIUS_OF_AVERAGE = StudentMixtureRadius(prior=0.01)
_LEVEL_OF_AVERAGE = 0.1


class Evidence:
    """Means with confidence intervals that hold for all pairs (arm, fidelity) and at all times.

    With probability `delta` any of the intervals may fail; the union bound is over the `compared`
    fidelities, whose values are evidence. Where likelihood ratios decide beside the intervals
    (`variances`), and values are only bounded, half of delta is left to either. An `audit` compares
    a declared scale with the values; `expects_spread` says whether to warn where all are equal.
    """

    def __init__(
        self,
        problem: Problem,
        delta: float,
        compared: Sequence[int],
        radius: Radius | Sequence[Radius] | None,
        variances: bool = False,
        audit: bool = True,
        expects_spread: bool = True,
    ) -> None:
        n_arms, n_fidelities = problem.n_arms, problem.n_fidelities
        self._compared = tuple(compared)
        self._radii = _checked_radii(radius, problem)
        self._statistics = PullStatistics(n_arms, n_fidelities, self._radii[-1].first_guess)
        self.counts, self.sums = self._statistics.counts, self._statistics.sums
        has_radius = radius is not None
        self._bounds = problem.noise if isinstance(problem.noise, Bounded) else None
        self.noise = NoiseEvidence(
            problem, delta, compared, self._statistics, has_radius, variances, audit, expects_spread
        )

    @property
    def assumption(self) -> str:
        """What must be true of the noise at the compared fidelities, as a clause."""
        estimated = self.noise.is_estimated_at
        found = [
            _OWN_VARIANCE.assumption if estimated(m) else self._radii[m].assumption
            for m in self._compared
        ]
        return " and ".join(dict.fromkeys(found))

    @property
    def supposes_normal(self) -> bool:
        """Whether the intervals rest on normal noise."""
        return "normal" in self.assumption

    def add(self, arm: int, fidelity: int, value: float) -> str:
        """Learn one value; return what it contradicts, in words, or an empty string."""
        growth = self._statistics.add(arm, fidelity, value)
        return self.noise.learn(arm, fidelity, value, growth)

    def means(self, arms: IntArray, at: int | slice = slice(None)) -> FloatArray:
        """Return means of the values, shape (n,), or (n, M) at several fidelities; 0 for none."""
        return np.asarray(self.sums[arms, at] / np.maximum(self.counts[arms, at], 1))

    def intervals(self, arms: IntArray, bias: Bias | None) -> tuple[FloatArray, FloatArray]:
        """Return bounds on the target means of several arms, shape (n,) each, as in `interval`."""
        target = self.counts.shape[1] - 1
        lows, highs = np.full(len(arms), -np.inf), np.full(len(arms), np.inf)
        for m in range(target + 1):
            if m < target and (bias is None or bias.kind != "max"):
                continue
            xi = 0.0 if bias is None else bias.bounds[m]
            means, half = self.means(arms, m), self.half_widths(arms, m) + xi
            lows, highs = np.maximum(lows, means - half), np.minimum(highs, means + half)
        return lows, highs

    def leads(self, better: int, others: IntArray, bias: Bias) -> FloatArray:
        """Return the least by which an arm's target mean exceeds others', by intervals, (n,)."""
        one = np.array([better])
        if bias.kind == "max":
            lowest, _ = self.intervals(one, bias)
            _, highest = self.intervals(others, bias)
            return np.asarray(lowest - highest)
        found = np.full(len(others), -np.inf)
        for m in self._compared:
            low = self.means(one, m) - self.half_widths(one, m)
            high = self.means(others, m) + self.half_widths(others, m)
            found = np.maximum(found, low - high - bias.bounds[m])
        return found

    def half_widths(
        self, arms: IntArray, fidelity: int, counts: IntArray | None = None
    ) -> FloatArray:
        """Return confidence radii of the means, shape (n,), as if from `counts` values each."""
        counts = self.counts[arms, fidelity] if counts is None else counts
        if self.noise.is_estimated_at(fidelity):
            squares = self.noise.squares(arms, fidelity)
            return _OWN_VARIANCE(counts, self.noise.level, squares=squares)
        return self._radii[fidelity](
            counts,
            self.noise.level,
            squares=self._statistics.squares[arms, fidelity],
            prediction_errors=self._statistics.prediction_errors[arms, fidelity],
        )

    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Return count, mean and radius of one arm at a fidelity."""
        row = np.array([arm])
        return (
            int(self.counts[arm, fidelity]),
            float(self.means(row, fidelity)[0]),
            float(self.half_widths(row, fidelity)[0]),
        )

    def interval(self, arm: int, bias: Bias | None) -> tuple[float, float]:
        """Return bounds on an arm's target mean; of the target alone where levels contradict it."""
        low, high = self.intervals(np.array([arm]), bias)
        if low[0] > high[0]:
            low, high = self.intervals(np.array([arm]), None)
        return float(low[0]), float(high[0])

    def notices(self, arms: IntArray, labels: Labels) -> list[str]:
        """Return observations that speak against the conditions of a certificate."""
        found = [CONTRADICTED] if self.noise.widened else []
        seen, bounds, level = self._statistics, self._bounds, NORMALITY_LEVEL / len(self.counts)
        for m in self._compared:
            if bounds is None:
                continue
            beyond = (seen.lows[arms, m] < bounds.low) | (seen.highs[arms, m] > bounds.high)
            found += [
                f"{labels.arm(arm)} at {labels.fidelity(m)}: values beyond the declared bounds, on "
                f"which the claim rests; declare wider ones"
                for arm in arms[beyond].tolist()
            ]
        for m in self._compared if self.supposes_normal else ():
            for arm in arms[self.counts[arms, m] >= FEWEST_VALUES].tolist():
                figures = self.sums, seen.squares, seen.cubes, seen.lows, seen.highs
                total, squares, cubes, low, high = (float(each[arm, m]) for each in figures)
                count = int(self.counts[arm, m])
                words = departure_in_words(
                    count, total / count, (squares, cubes), (low, high), level, labels.value
                )
                if words:
                    found.append(f"{labels.arm(arm)} at {labels.fidelity(m)}: {words}; {REMEDY}")
        return found

    def noise_scales(self) -> FloatArray:
        """Return noise scales, shape (M,), seen where declared ones fail; NaN if unknown."""
        declared = self.noise.sigmas
        if declared is not None and not self.noise.widened:
            return np.array(declared)
        seen = np.array([self.noise.scale(m) for m in range(self.counts.shape[1])])
        return seen if declared is None else np.fmax(declared, seen)

    def pulls_until(self, fidelity: int, widths: FloatArray) -> FloatArray:
        """Return the number of values after which a radius is at most `widths`, same shape.

        Infinite where it never is; NaN if it depends on a spread and none was seen.
        """
        is_estimated, variance = self.noise.is_estimated_at(fidelity), None
        radius = _OWN_VARIANCE if is_estimated else self._radii[fidelity]
        if radius.needs_squares or radius.needs_prediction_errors:
            variance = self.noise.scale(fidelity) ** 2
            if math.isnan(variance):
                return np.full(widths.shape, np.nan)
            if variance > LARGEST:  # no width that a number holds is reached
                return np.full(widths.shape, np.inf)
        return pulls_until(radius, self.noise.level, widths, variance)


def _checked_radii(radius: Radius | Sequence[Radius] | None, problem: Problem) -> list[Radius]:
    n_fidelities = problem.n_fidelities
    if radius is None:
        return [default_radius(problem.noise, m, n_fidelities) for m in range(n_fidelities)]
    if isinstance(radius, Radius):
        return [radius] * n_fidelities
    if not isinstance(radius, Sequence) or not all(isinstance(one, Radius) for one in radius):
        raise TypeError(f"radius must be a mfhpo.Radius or several, got {shown(radius)}.")
    if len(radius) != n_fidelities:
        raise ValueError(
            f"radius has {len(radius)} entries but there are {n_fidelities} fidelities; "
            f"give one, or one for each fidelity."
        )
    return list(radius)


def surest_arm(evidence: Evidence, arms: IntArray) -> int:
    """Return the arm with the highest lower bound, at the highest fidelity with most pulls.

    Arms with the most pulls, or one less, are compared by their means until all have finite radii:
    an arm with equal values gets one first, however bad it is.
    """
    counts = evidence.counts[arms]
    pulled = (counts > 0).sum(axis=0)
    fidelity = int(np.flatnonzero(pulled == pulled.max())[-1])
    means = evidence.means(arms, fidelity)
    half = evidence.half_widths(arms, fidelity)
    compared = counts[:, fidelity] >= max(counts[:, fidelity].max() - 1, 1)
    if np.isfinite(half[compared]).all():
        return int(arms[np.argmax(means - half)])
    return int(arms[np.argmax(np.where(compared, means, -np.inf))])


def surest_at_target(evidence: Evidence, arms: IntArray, bias: Bias | None) -> int:
    """Return the arm with the highest lower bound on its target mean; see `surest_by`."""
    lowest, _ = evidence.intervals(arms, bias)
    return surest_by(lowest, evidence, arms)


def surest_by(lowest: FloatArray, evidence: Evidence, arms: IntArray) -> int:
    """Return the arm with the highest of these lower bounds on target means, else `surest_arm`.

    They count once they are finite for all arms with the most target pulls, or one less.
    """
    counts = evidence.counts[arms, -1]
    if np.isfinite(lowest[counts >= counts.max() - 1]).all():
        return int(arms[np.argmax(lowest)])
    return surest_arm(evidence, arms)


def cautious_value(seen: PullStatistics) -> float:
    """Return what the leader is worth at least, while its own interval is infinite.

    It is the lower end of an always-valid interval for the mean of all values at the target, in the
    only cell of `seen`: the leader is assumed to be no worse. -inf for fewer than two values.
    """
    count, squares = seen.counts[0], seen.squares[0]
    half = _RADIUS_OF_AVERAGE(count, _LEVEL_OF_AVERAGE, squares=squares)
    return float(seen.sums[0, 0] / max(int(count[0]), 1) - half[0])
