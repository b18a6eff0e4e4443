"""Which learning curves cannot win: by declared bounds, or by a tolerance that halves.

Paper 002, Algorithm 3, carried over from phases of pulls to stages of training.
"""

import heapq
import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from mfhpo.identification.curves.curves import Verdict
from mfhpo.knowledge.arrays import FloatArray

# An arm and what its run has shown so far: values at the fidelities, shape (M,), NaN where none.
Run = tuple[Hashable, FloatArray]

# The spread of the first values is that of the middle 80 %: runs that diverge must not widen it.
_OUTER_SHARE = 0.1

# A spread below this share of the values is rounding: they are equal.
_ROUNDING = 1e-9


class BoundedCurves:
    """Elimination of learning curves by declared bounds on what they still gain.

    Once an arm has shown a value at fidelity m, its final mean is in ``[value + a_m - noise, value
    + b_m + noise]``. Here a_m and b_m bound its gain from there: the `gains`, shape (M, 2), whose
    last row is (0, 0). A run is hopeless when the smallest upper end of its arm is below the
    largest lower end of another arm.
    """

    def __init__(self, gains: Sequence[tuple[float, float]] | FloatArray, noise: float = 0.0):
        # The bounds in force: the declared ones, or wider.
        self.gains: FloatArray = np.array(gains, dtype=np.float64)
        self._noise = noise
        self._largest: dict[Hashable, FloatArray] = {}
        self._smallest: dict[Hashable, FloatArray] = {}
        # The ends of each arm's interval, and the lower ends of those that count against others.
        self._intervals: dict[Hashable, tuple[float, float]] = {}
        self._lows: dict[Hashable, float] = {}
        self._best: list[Hashable] = []  # the arms with the two largest of these

    def add(self, arm: Hashable, curve: FloatArray) -> list[int]:
        """Add a finished curve, or what a run has shown that is not to be forgotten, shape (M,).

        What is not finite was not seen. Returns the fidelities whose bounds it contradicts beyond
        its noise, which are widened as far as this curve needs.
        """
        curve = np.where(np.isfinite(curve), curve, np.nan)
        contradicted = self._widen(curve)
        self._largest[arm] = np.fmax(self._largest.get(arm, curve), curve)
        self._smallest[arm] = np.fmin(self._smallest.get(arm, curve), curve)
        for other in self._largest if contradicted else [arm]:
            low = self._low(self._largest[other])
            self._intervals[other] = low, self._high(self._smallest[other])
            if other == arm or other in self._lows:
                self._lows[other] = low
        self._rank(self._lows if contradicted else dict.fromkeys([*self._best, arm]))
        return contradicted

    def withdraw(self, arm: Hashable) -> None:
        """Let an arm count against others no more."""
        self._lows.pop(arm, None)
        if arm in self._best:
            self._rank(self._lows)

    def standing(self, arm: Hashable) -> Verdict:
        """Judge an arm by what was added of it, in a time that does not grow with the arms."""
        return self._verdict(arm, self.interval(arm)[1], self._rivals())

    def interval(self, arm: Hashable) -> tuple[float, float]:
        """Return bounds on an arm's final mean, from the values added so far."""
        return self._intervals.get(arm, (-math.inf, math.inf))

    def judge(self, arm: Hashable, curve: FloatArray, others: Iterable[Run] = ()) -> Verdict:
        """Judge an unfinished curve of an arm by all that was seen; `others` are under way."""
        reach = self._high(np.fmin(curve, self._smallest.get(arm, curve)))
        rivals = self._rivals()
        for other, seen in others:
            low = self._low(np.where(np.isfinite(seen), seen, np.nan))
            rivals[other] = max(rivals.get(other, -math.inf), low)
        return self._verdict(arm, reach, rivals)

    def _rivals(self) -> dict[Hashable, float]:
        return {other: self._lows[other] for other in self._best}

    @staticmethod
    def _verdict(arm: Hashable, reach: float, rivals: dict[Hashable, float]) -> Verdict:
        rivals.pop(arm, None)
        incumbent = max(rivals, key=rivals.__getitem__, default=None)
        bar = -math.inf if incumbent is None else rivals[incumbent]
        # What rounding alone makes of equal numbers stops nobody.
        stop = reach < bar and not math.isclose(reach, bar, rel_tol=1e-12)
        return Verdict(stop, reach, bar, incumbent)

    def _rank(self, arms: Iterable[Hashable]) -> None:
        self._best = heapq.nlargest(2, arms, key=self._lows.__getitem__)

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
        self._width: tuple[int, float] | None = None
        self._shown: dict[Hashable, list[list[float]]] = {}  # by arm and fidelity

    def tolerance(self, fidelity: int) -> float:
        """Return how far behind an arm may be at a fidelity; infinite before that of W."""
        first, spread = self._first_spread()
        return math.inf if fidelity < first else spread * 2.0 ** (1 - fidelity + first)

    def begin(self, curve: FloatArray) -> None:
        """Note the values, shape (M,), of a run that may have been stopped later on."""
        for fidelity in np.flatnonzero(np.isfinite(curve)):
            self._seen[fidelity].append(float(curve[fidelity]))
        self._width = None

    def add(self, arm: Hashable, curve: FloatArray) -> None:
        """Add values of a run, noted by `begin` as well, shape (M,); repeats are averaged."""
        shown = self._shown.setdefault(arm, [[] for _ in self._seen])
        for fidelity in np.flatnonzero(np.isfinite(curve)).tolist():
            shown[fidelity].append(float(curve[fidelity]))

    def judge(
        self, arm: Hashable, fidelity: int, value: float, others: Iterable[Run] = ()
    ) -> Verdict:
        """Judge an unfinished curve by its value at one fidelity, averaged with added ones."""
        own = self._shown[arm][fidelity] if arm in self._shown else []
        mean = mean_of([*own, float(value)])
        bar, incumbent = -math.inf, None
        shown = [(other, mean_of(values[fidelity])) for other, values in self._shown.items()]
        under_way = [(other, float(seen[fidelity])) for other, seen in others]
        for other, value_of_other in shown + under_way:
            if other != arm and bar < value_of_other < math.inf:
                bar, incumbent = value_of_other, other
        reach = mean + self.tolerance(fidelity)
        return Verdict(reach <= bar and mean < bar, reach, bar, incumbent)

    def _first_spread(self) -> tuple[int, float]:
        if self._width is None:
            self._width = (0, math.inf)
            for fidelity, values in enumerate(self._seen[:-1]):
                low, high = np.quantile(
                    values or [0.0], (_OUTER_SHARE, 1.0 - _OUTER_SHARE)
                ).tolist()
                if high - low > _ROUNDING * max(abs(low), abs(high)):
                    self._width = (fidelity, high - low)
                    break
        return self._width
