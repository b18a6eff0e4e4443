"""Elimination of learning curves by declared bounds on what they still gain, also in stages."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

import numpy as np

from mfhpo._validation import check_number, check_numbers, shown, unwrapped
from mfhpo.identification.curves.curves import Run, mean_of
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.problem import Recommendation

Bound: TypeAlias = float | tuple[float, float]
StepT = TypeVar("StepT", int, float)

_ROUNDING = 1e-12  # of the values: what misses a bound by less does so by rounding


def _checked_gains(names: Sequence[object], gains: Sequence[tuple[float, float]]) -> FloatArray:
    """Return the least and the largest gain from each fidelity on, shape (S, 2), or raise."""
    for position, (name, (low, high)) in enumerate(zip(names, gains, strict=True)):
        if not -math.inf < low <= 0.0 <= high < math.inf:
            raise ValueError(
                f"bias[{name!r}] must be a finite number of at least 0, or a pair with 0 in "
                f"between; got {(low, high)!r} as the least and the largest gain."
            )
        before = gains[max(0, position - 1)]
        if not (before[0] <= low and high <= before[1]):
            raise ValueError(
                f"bias must not grow with the step: bias[{name!r}] allows gains in "
                f"{(low, high)!r}, bias[{names[position - 1]!r}] in {before!r} only."
            )
    return np.array(gains, dtype=np.float64).reshape(len(gains), 2)


def _as_gain(step: float, bound: Bound) -> tuple[float, float]:
    """Return the least and largest gain that a bound allows: that pair, or a distance."""
    name = f"bias[{step}]"
    bound = unwrapped(bound)
    if isinstance(bound, (Sequence, np.ndarray)):
        pair = check_numbers(name, bound, "a number or a pair of numbers")
        if len(pair) != 2:
            raise ValueError(f"{name}: a bound must be a number or a pair, got {bound!r}.")
        return pair[0], pair[1]
    largest = check_number(name, bound, " or a pair of numbers")
    return -largest, largest


def checked_bounds(bias: Any, check_step: Callable[[Any], StepT]) -> dict[StepT, Bound]:
    """Return bounds, given as ``{step: bound}``, sorted by step; ValueError if they are wrong."""
    if not isinstance(bias, Mapping) or not bias:
        raise ValueError(
            f"bias must be {{step: bound}} with at least one step, a function of the step, "
            f"or None; got {shown(bias)}."
        )
    bounds = {check_step(step): bias[step] for step in bias}
    bounds = {step: bounds[step] for step in sorted(bounds)}
    _checked_gains(list(bounds), [_as_gain(step, bound) for step, bound in bounds.items()])
    return bounds


def gains_of(
    bias: Mapping[StepT, Bound] | Callable[[StepT], Bound],
    steps: Sequence[StepT],
    sign: float = 1.0,
) -> FloatArray:
    """Return bounds on gains in values that are maximised, for `BoundedCurves`, shape (M, 2).

    `bias` gives a bound for each of the `steps` but the last. `sign` is -1 to minimise.
    """
    bounds = [bias[step] if isinstance(bias, Mapping) else bias(step) for step in steps[:-1]]
    gains = _checked_gains(steps[:-1], list(map(_as_gain, steps, bounds)))
    # Adding 0 makes 0 of -0.
    return np.concatenate((sign * gains[:, :: int(sign)], np.zeros((1, 2)))) + 0.0


class BoundedCurves:
    """Elimination of learning curves by declared bounds on what they still gain.

    Once an arm has shown a value at fidelity m, its final mean is in ``[value + a_m - noise, value
    + b_m + noise]``, a_m and b_m being the `gains`, shape (M, 2), which may be widened. A run is
    hopeless when the smallest upper end of its arm is below the largest lower end of another arm.
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
        rounding = _ROUNDING * (np.abs(curve) + abs(curve[-1]))
        below = gains + slack < self.gains[:, 0] - rounding
        above = gains - slack > self.gains[:, 1] + rounding
        self.gains = self.gains.copy()
        self.gains[below, 0] = (gains + slack)[below]
        self.gains[above, 1] = (gains - slack)[above]
        return np.flatnonzero(below | above).tolist()


def _is_below(arm: Hashable, reach: float, lows: Iterable[tuple[Hashable, float]]) -> bool:
    """Tell whether an arm's upper end is below another one's lower end, by more than rounding."""
    bar = max((low for other, low in lows if other != arm), default=-math.inf)
    return reach < bar and not math.isclose(reach, bar, rel_tol=_ROUNDING)


class BoundedElimination:
    """A race of arms, each of which has one or several runs, by the rule of `BoundedCurves`.

    Arms are `active`, or `out` once they were let go, or have `failed` if nothing is left to run.
    Those that contradicted what was declared are `contradicting`. The last stage is the target.
    """

    def __init__(
        self, gains: Sequence[tuple[float, float]] | FloatArray, noise: float = 0.0
    ) -> None:
        self.active: set[int] = set()
        self.out: set[int] = set()
        self.failed: set[int] = set()
        self.contradicting: set[int] = set()
        self._n_begun = 0  # runs that have shown something
        self._curves = BoundedCurves(gains, noise)
        self._noise = noise
        self._shown: dict[int, list[list[float]]] = {}  # values by arm and stage
        self._target = len(gains) - 1
        # The highest upper end of an arm that was let go: the answer has to stand up to it.
        self._highest_out = -math.inf

    @property
    def gains(self) -> FloatArray:
        """The bounds in force, shape (M, 2): the declared ones, or wider."""
        return self._curves.gains

    def enter(self, arm: int) -> None:
        """Let an arm take part, unless it was let go before."""
        if arm not in self.out:
            self.active.add(arm)
            self.failed.discard(arm)

    def observe(self, arm: int, curve: FloatArray, stage: int) -> list[int]:
        """Learn what a run has shown at a stage; return the stages whose bounds it contradicts.

        Of the run's `curve`, shape (M,), the value at `stage` is new.
        """
        if np.count_nonzero(np.isfinite(curve)) == 1:
            self._n_begun += 1
        self._shown.setdefault(arm, [[] for _ in self.gains])[stage].append(float(curve[stage]))
        if arm in self.out:
            return []
        contradicted = self._curves.add(arm, curve)
        if contradicted or self._is_empty(arm):
            self.contradicting.add(arm)
        return contradicted

    def let_go(self) -> list[int]:
        """Let all arms go that cannot be the best, and return them."""
        # Where no final value agrees with what an arm has shown, nothing follows from it.
        judged = [arm for arm in sorted(self.active) if not self._is_empty(arm)]
        gone = self._curves.hopeless(judged)
        self.active.difference_update(gone)
        self.out.update(gone)
        self._highest_out = max([self._highest_out, *map(self.reach, gone)])
        return gone

    def fail(self, arm: int) -> None:
        """Take an arm out of which no run is left, and none has come to its end."""
        self.active.discard(arm)
        self.failed.add(arm)
        self._curves.withdraw(arm)

    def n_finished(self, arm: int) -> int:
        """Return the number of an arm's values at the target."""
        return len(self._shown[arm][self._target]) if arm in self._shown else 0

    def reach(self, arm: int) -> float:
        """Return an arm's upper end."""
        return self._curves.interval(arm)[1]

    def recommend(self, cost: float, finished: bool, complete: bool) -> Recommendation:
        """Return the best answer so far, given what was paid and whether all arms have entered."""
        failed = self.failed and not self.active
        answer = Recommendation(
            delta=0.0,
            epsilon=0.0,
            finished=finished,
            cost=cost,
            pulls=self._n_begun,
            survivors=tuple(sorted(self.active)),
            reason="every arm has failed" if failed else "nothing is known",
            compared=len(self.active) + len(self.out),
            not_compared=tuple(
                f"arm {each}: none of its runs came to the end" for each in sorted(self.failed)
            ),
        )
        intervals = {arm: self._curves.interval(arm) for arm in self.active}
        seen = [arm for arm in self.active if arm in self._shown]
        if not seen:
            return answer
        best = max(seen, key=lambda arm: (intervals[arm][0], -arm))
        low, high = intervals.pop(best)
        others = [self._highest_out, *(high_of_other for _, high_of_other in intervals.values())]
        why_not = self._why_not(best, max(others) - low, complete)
        stage = max(m for m, values in enumerate(self._shown[best]) if values)
        mean = mean_of(self._shown[best][stage])
        if stage == self._target and low <= high:
            # The bounds of cheaper levels are sure, and a mean of a few noisy values is not.
            mean = min(max(mean, low), high)
        noise = f"every value is within {self._noise:g} of its arm's mean, as declared"
        compared = " that was compared" if self.failed else ""
        return replace(
            answer,
            arm=best,
            mean=mean,
            interval=(low, high),
            fidelity=stage,
            certified=not why_not,
            reason=why_not or f"the bounds of no other arm{compared} reach it",
            conditions=(
                "the declared bounds on what is still gained hold",
                noise if self._noise else "there is no noise, as declared",
            ),
            remaining_cost=None if why_not else 0.0,
        )

    def _is_empty(self, arm: int) -> bool:
        low, high = self._curves.interval(arm)
        return low - high > _ROUNDING * (abs(low) + abs(high))

    def _why_not(self, best: int, behind: float, complete: bool) -> str:
        """Say why nothing is certified, by how far the best arm may be behind; else empty."""
        if self.contradicting:
            return (
                f"what was declared is contradicted by {len(self.contradicting)} of the arms: what "
                f"was stopped by it may have been stopped in error"
            )
        if not complete:
            return "not all arms have begun"
        if behind > 0.0:
            by = f", by at most {behind:.3g}" if math.isfinite(behind) else ""
            return f"the bounds allow that another arm is better{by}"
        if not self.n_finished(best):
            return "the bounds of no other arm reach it, but it has not finished yet"
        return ""
