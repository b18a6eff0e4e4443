"""Which learning curves cannot win: by bounds that are learned or declared, or by a tolerance.

Learned order bounds are those of IISE-gamma. The tolerance that halves is that of paper 002,
Algorithm 3, carried over from phases of pulls to stages of training.
"""

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from heapq import nlargest
from operator import itemgetter

import numpy as np
from scipy.special import stdtrit

from mfhpo._validation import check_number, shown
from mfhpo.knowledge.arrays import FloatArray, IntArray

# Probability with which a mean lies beyond its noise radius, in `CurveRace`.
_NOISE_LEVEL = 0.05

# The spread of the first values is that of the middle 80 %: runs that diverge must not widen it.
_OUTER_SHARE = 0.1

# A spread below this share of the values is rounding: they are equal.
_ROUNDING = 1e-9

Run = tuple[Hashable, FloatArray]
"""An arm and what its run has shown so far: values at the fidelities, (M,), NaN where none."""


def check_reduction_factor(factor: float) -> float:
    """Return how many times longer each level is than the one before, or raise."""
    if not 1.0 < check_number("reduction_factor", factor) < math.inf:
        raise ValueError(
            f"reduction_factor must be above 1 and finite, got {shown(factor)}; try 3."
        )
    return float(factor)


def check_steps(final_step: int, reduction_factor: float, first_step: int = 1) -> tuple[int, ...]:
    """Choose the steps that count as fidelities: a geometric grid from `first_step` on.

    They are few, because every further one costs confidence.
    """
    steps = {final_step}
    step = final_step / reduction_factor
    while step + 1e-9 >= max(first_step, 1):
        steps.add(math.floor(step + 1e-9))
        step /= reduction_factor
    return tuple(sorted(steps))


def read_curve(reports: Mapping[int, float], steps: Sequence[int]) -> FloatArray:
    """Read the first value at or after each fidelity's step and before the next, (M,), else NaN."""
    reported = sorted(step for step, value in reports.items() if not math.isnan(value))
    values = np.full(len(steps), np.nan)
    for fidelity, step in enumerate(steps):
        position = bisect_left(reported, step)
        is_target = fidelity == len(steps) - 1
        if position < len(reported) and (is_target or reported[position] < steps[fidelity + 1]):
            values[fidelity] = reports[reported[position]]
    return values


def gain_bounds(gains: FloatArray, level: float) -> FloatArray:
    """Bound a new arm's gains at all fidelities at once, from other arms' gains, shape (n, S).

    The bound of each fidelity is the (t+1)-th largest gain there, with one t for all fidelities,
    the largest for which ``min(V_t + 1, S (t+1)) <= level (n+1)``; V_t counts the arms that, at
    some fidelity, have at most t others at or above them. If the n + 1 arms are exchangeable, at
    most so many of them would exceed the bounds that the others give, so that the new one exceeds
    some bound with probability at most `level`. For one fidelity this is the split-conformal
    quantile. The bounds are infinite while n is too small, at most below S/level - 1.
    """
    n, n_fidelities = gains.shape
    # The tolerance keeps 1 - 0.8 from being less than 0.2.
    allowed = level * (n + 1) + 1e-9
    most = min(int(allowed), n)
    if most == 0:
        return np.full(n_fidelities, np.inf)
    # Only the largest gains matter: t < most, and who stands out is among them at some fidelity.
    largest = np.sort(np.partition(gains.T, n - most, axis=1)[:, n - most :], axis=1)
    others_above = np.full(n, most)
    for top, column in zip(largest, gains.T, strict=True):
        arms = np.flatnonzero(column >= top[0])
        not_below = most - np.searchsorted(top, column[arms], side="left")
        others_above[arms] = np.minimum(others_above[arms], not_below - 1)
    standing_out = np.cumsum(np.bincount(others_above, minlength=most))[:most]
    exceeding = np.minimum(standing_out + 1, n_fidelities * np.arange(1, most + 1))
    ranks = int(np.count_nonzero(exceeding <= allowed))  # `exceeding` increases with t
    if ranks == 0:
        return np.full(n_fidelities, np.inf)
    return np.asarray(largest[:, most - ranks], dtype=np.float64)


class CurveRace:
    """Elimination of learning curves by order bounds learned from the finished ones.

    IISE-gamma (Poiani et al. 2022, Section 5) compares arm i at fidelity m with an arm j. Here j
    has finished, so its own bias cancels, and arm i's gain is left to bound: it is dropped when

        ``mean_im + noise_i + G_m <= max_j (mean_jM - noise_j)``

    with G_m from `gain_bounds` over the finished arms: with probability `coverage`, a new arm's
    gains respect all of them. The noise radius is Student's t quantile times the pooled standard
    deviation of repeats at that fidelity over the square root of the arm's number of runs; 0
    without any repeats. `n_curves` have finished, repeats included.
    """

    def __init__(self, n_fidelities: int, coverage: float = 0.8) -> None:
        self._level = 1.0 - coverage
        # Means and numbers of values of each arm at each fidelity.
        self._seen: dict[Hashable, tuple[FloatArray, IntArray]] = {}
        self._squares: FloatArray = np.zeros(n_fidelities)
        self._degrees = np.zeros(n_fidelities, dtype=np.int64)
        self.n_curves = 0
        self._stale = True
        self._bounds: FloatArray = np.full(n_fidelities - 1, np.inf)
        self._radii: FloatArray = np.zeros(n_fidelities)
        self._bar = -math.inf
        self._incumbent: Hashable | None = None

    @property
    def bounds(self) -> FloatArray:
        """The bounds G_m on an arm's gain, shape (M - 1,), infinite while too few have finished."""
        self._refresh()
        return self._bounds

    def add(self, arm: Hashable, curve: FloatArray) -> None:
        """Add a finished curve, (M,); without a target value the arm's gain counts as unbounded."""
        nothing = np.zeros(len(curve)), np.zeros(len(curve), dtype=np.int64)
        means, counts = self._seen.setdefault(arm, nothing)
        seen = np.isfinite(curve)
        deviations = np.where(seen, curve, means) - means
        self._squares += deviations**2 * counts / (counts + 1)
        self._degrees += seen & (counts > 0)
        counts += seen
        means += deviations / np.maximum(counts, 1)
        self.n_curves += 1
        self._stale = True

    def stops(self, arm: Hashable, fidelity: int, value: float) -> bool:
        """Judge an unfinished curve by its value at one fidelity, averaged with finished runs."""
        self._refresh()
        mean, count = float(value), 1
        if arm in self._seen:
            means, counts = self._seen[arm]
            count += int(counts[fidelity])
            mean += (float(means[fidelity]) - mean) * (count - 1) / count
        noise = float(self._radii[fidelity]) / math.sqrt(count)
        reach = mean + noise + float(self._bounds[fidelity])
        # Stopping an unlucky repeat of the incumbent would leave it with its lucky ones.
        return arm != self._incumbent and reach <= self._bar

    def _refresh(self) -> None:
        if not self._stale or not self._seen:
            return
        degrees = np.maximum(self._degrees, 1)
        quantiles = np.asarray(stdtrit(degrees, 1.0 - _NOISE_LEVEL), dtype=np.float64)
        self._radii = quantiles * np.sqrt(self._squares / degrees)
        means, counts = (np.stack(rows) for rows in zip(*self._seen.values(), strict=True))
        finals = means[:, -1]
        values = np.where(counts[:, :-1] > 0, means[:, :-1], -np.inf)
        self._bounds = gain_bounds(finals[:, None] - values, self._level)
        bars = finals - self._radii[-1] / np.sqrt(counts[:, -1])
        best = int(np.argmax(bars))
        self._bar = float(bars[best])
        self._incumbent = list(self._seen)[best]
        self._stale = False


class BoundedCurves:
    """Elimination of learning curves by declared bounds on what they still gain.

    Once an arm has shown a value at fidelity m, its final mean is in ``[value + a_m - noise, value
    + b_m + noise]``. Here a_m and b_m bound its gain from there: the `gains`, shape (M, 2), whose
    last row is (0, 0); they may be widened. A run is hopeless when the smallest upper end of its
    arm is below the largest lower end of another arm.
    """

    def __init__(self, gains: Sequence[tuple[float, float]] | FloatArray, noise: float = 0.0):
        self.gains: FloatArray = np.array(gains, dtype=np.float64)
        self._noise = noise
        self._seen: dict[Hashable, tuple[FloatArray, FloatArray]] = {}  # smallest and largest
        # The ends of each arm's interval, and the lower ends of those that count against others.
        self._intervals: dict[Hashable, tuple[float, float]] = {}
        self._lows: dict[Hashable, float] = {}

    def add(self, arm: Hashable, curve: FloatArray) -> list[int]:
        """Add a finished curve, or what a run has shown that is not to be forgotten, shape (M,).

        What is not finite was not seen. Returns the fidelities whose bounds it contradicts beyond
        its noise, which are widened as far as this curve needs.
        """
        curve = np.where(np.isfinite(curve), curve, np.nan)
        contradicted = self._widen(curve)
        smallest, largest = self._seen.get(arm, (curve, curve))
        self._seen[arm] = np.fmin(smallest, curve), np.fmax(largest, curve)
        for other in self._seen if contradicted else [arm]:
            smallest, largest = self._seen[other]
            low = self._low(largest)
            self._intervals[other] = low, self._high(smallest)
            if other == arm or other in self._lows:
                self._lows[other] = low
        return contradicted

    def withdraw(self, arm: Hashable) -> None:
        """Let an arm count against others no more."""
        self._lows.pop(arm, None)

    def interval(self, arm: Hashable) -> tuple[float, float]:
        """Return bounds on an arm's final mean, from the values added so far."""
        return self._intervals.get(arm, (-math.inf, math.inf))

    def hopeless(self, arms: Iterable[int]) -> list[int]:
        """Return those of some arms that cannot be the best, by what was added of them."""
        best_two = nlargest(2, self._lows.items(), key=itemgetter(1))
        return [arm for arm in arms if _is_below(arm, self.interval(arm)[1], best_two)]

    def stops(self, arm: Hashable, curve: FloatArray, others: Iterable[Run] = ()) -> bool:
        """Judge an unfinished curve of an arm by all that was seen; `others` are under way."""
        smallest, _ = self._seen.get(arm, (curve, curve))
        lows = list(self._lows.items())
        for other, seen in others:
            lows.append((other, self._low(np.where(np.isfinite(seen), seen, np.nan))))
        return _is_below(arm, self._high(np.fmin(curve, smallest)), lows)

    def _low(self, largest: FloatArray) -> float:
        starts = largest + self.gains[:, 0]
        return -math.inf if np.isnan(starts).all() else float(np.nanmax(starts)) - self._noise

    def _high(self, smallest: FloatArray) -> float:
        ends = smallest + self.gains[:, 1]
        return math.inf if np.isnan(ends).all() else float(np.nanmin(ends)) + self._noise

    def _widen(self, curve: FloatArray) -> list[int]:
        gains = curve[-1] - curve
        slack = 2.0 * self._noise
        # What rounding alone can make of equal numbers is no contradiction.
        rounding = 1e-12 * (np.abs(curve) + abs(curve[-1]))
        below = gains + slack < self.gains[:, 0] - rounding
        above = gains - slack > self.gains[:, 1] + rounding
        self.gains = self.gains.copy()
        self.gains[below, 0] = (gains + slack)[below]
        self.gains[above, 1] = (gains - slack)[above]
        return np.flatnonzero(below | above).tolist()


def _is_below(arm: Hashable, reach: float, lows: Iterable[tuple[Hashable, float]]) -> bool:
    """Tell whether an arm's upper end is below another one's lower end, by more than rounding."""
    bar = max((low for other, low in lows if other != arm), default=-math.inf)
    return reach < bar and not math.isclose(reach, bar, rel_tol=1e-12)


def mean_of(values: Sequence[float]) -> float:
    """Return the mean of some values, NaN without any."""
    return sum(values) / len(values) if values else math.nan


class PhasedCurves:
    """Elimination of learning curves by a tolerance that halves from fidelity to fidelity.

    As in Algorithm 3 of Wang et al. (2023), an arm is kept at the p-th fidelity while
    ``mean + 2^(1-p) W`` exceeds the largest mean there. W is the spread of the middle 80 % of the
    values at the first fidelity where they differ; nothing is stopped before. The paper's
    guarantee does not carry over: no two arms would have to gain amounts that differ by more than
    ``2^(1-p) W`` from there on.
    """

    def __init__(self, n_fidelities: int) -> None:
        self._seen: list[list[float]] = [[] for _ in range(n_fidelities)]
        self._shown: dict[Hashable, list[list[float]]] = {}  # by arm and fidelity

    def tolerance(self, fidelity: int) -> float:
        """Return how far behind an arm may be at a fidelity; infinite before that of W."""
        for first, values in enumerate(self._seen[:-1]):
            ends = np.quantile(values or [0.0], (_OUTER_SHARE, 1.0 - _OUTER_SHARE))
            low, high = ends.tolist()
            if high - low > _ROUNDING * max(abs(low), abs(high)):
                phase = fidelity - first
                return (high - low) * 2.0 ** (1 - phase) if phase >= 0 else math.inf
        return math.inf

    def begin(self, curve: FloatArray) -> None:
        """Note the values, shape (M,), of a run that may have been stopped later on."""
        for fidelity in np.flatnonzero(np.isfinite(curve)):
            self._seen[fidelity].append(float(curve[fidelity]))

    def add(self, arm: Hashable, curve: FloatArray) -> None:
        """Add values of a run, noted by `begin` as well, shape (M,); repeats are averaged."""
        shown = self._shown.setdefault(arm, [[] for _ in self._seen])
        for fidelity in np.flatnonzero(np.isfinite(curve)).tolist():
            shown[fidelity].append(float(curve[fidelity]))

    def stops(self, arm: Hashable, fidelity: int, value: float, others: Iterable[Run] = ()) -> bool:
        """Judge an unfinished curve by its value at one fidelity, averaged with added ones."""
        own = self._shown[arm][fidelity] if arm in self._shown else []
        mean = mean_of([*own, float(value)])
        rivals = [(other, mean_of(values[fidelity])) for other, values in self._shown.items()]
        rivals += [(other, float(seen[fidelity])) for other, seen in others]
        bar = max(
            (at for other, at in rivals if other != arm and math.isfinite(at)), default=-math.inf
        )
        return mean + self.tolerance(fidelity) <= bar and mean < bar
