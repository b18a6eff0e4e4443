"""Elimination of arms whose runs are trained in stages: whose turn it is, who can be let go.

The rules are those of `curve_elimination`. Work per observation grows with the logarithm of the
number of arms, but for one pass over the arms' means where no bounds are declared.
"""

import abc
import heapq
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mfhpo.identification.curves.curve_elimination import BoundedCurves, PhasedCurves
from mfhpo.identification.curves.curves import Verdict
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.problem import Recommendation

# Bounds that miss each other by less than this share of the values do so by rounding.
_ROUNDING = 1e-12


class StagedElimination(abc.ABC):
    """A race of arms, each of which has one or several runs.

    No arm is let go before `n_startup_runs` have shown something; the last of the `n_stages` is the
    target. `active`, `out` and `contradicting` are the arms that are in the race, were let go, and
    contradicted what was declared; `n_begun` is the number of runs that have shown something.
    """

    def __init__(self, n_stages: int, n_startup_runs: int) -> None:
        self.active: set[int] = set()
        self.out: set[int] = set()
        self.n_begun = 0
        self.contradicting: set[int] = set()
        self._failed: set[int] = set()
        self._sums: dict[int, FloatArray] = {}
        self._counts: dict[int, FloatArray] = {}
        self._n_stages = n_stages
        self._n_startup_runs = n_startup_runs

    def enter(self, arm: int) -> None:
        """Let an arm take part, unless it was let go before."""
        if arm not in self.out:
            self.active.add(arm)
            self._failed.discard(arm)

    def observe(self, arm: int, curve: FloatArray, stage: int, standing: int) -> list[int]:
        """Learn what a run has shown at a stage; returns the stages whose bounds it contradicts.

        The arm's `curve` has shape (M,), larger is better, NaN where it has no value; that at
        `stage` is new. `standing` is the lowest stage that the arm's unfinished runs have come to,
        where it is compared.
        """
        if np.count_nonzero(np.isfinite(curve)) == 1:
            self.n_begun += 1
        if arm not in self._sums:
            self._sums[arm] = np.zeros(self._n_stages)
            self._counts[arm] = np.zeros(self._n_stages)
        self._sums[arm][stage] += curve[stage]
        self._counts[arm][stage] += 1.0
        if arm in self.out:
            return []
        return self._learn(arm, curve, stage, standing)

    def let_go(self) -> list[tuple[int, Verdict]]:
        """Let all arms go that cannot be the best, and return them with why."""
        gone: list[tuple[int, Verdict]] = []
        if self.n_begun < self._n_startup_runs:
            return gone
        while found := self._most_hopeless():
            gone.append(found)
            self.drop(*found)
        return gone

    def drop(self, arm: int, verdict: Verdict | None = None) -> None:
        """Let an arm go; without a verdict, one that is known to have been let go before."""
        self.active.discard(arm)
        self.out.add(arm)

    def fail(self, arm: int) -> None:
        """Take an arm out of which no run is left, and none has come to its end."""
        self.active.discard(arm)
        self._failed.add(arm)

    def n_finished(self, arm: int) -> int:
        """Return the number of an arm's values at the target."""
        return int(self._counts[arm][-1]) if arm in self._counts else 0

    def mean(self, arm: int, stage: int) -> float:
        """Return the mean of an arm's values at a stage where it was observed."""
        return float(self._sums[arm][stage] / self._counts[arm][stage])

    @abc.abstractmethod
    def turn(self, arm: int, reached: int, ahead: int) -> tuple[float, ...]:
        """Return the sort key of a run that waits; the smallest goes first.

        The run has come to the stage `reached`, -1 before the first. `ahead` counts the arm's other
        runs that are further or under way.
        """

    @abc.abstractmethod
    def _learn(self, arm: int, curve: FloatArray, stage: int, standing: int) -> list[int]: ...

    @abc.abstractmethod
    def _most_hopeless(self) -> tuple[int, Verdict] | None:
        """Return an arm that can be let go, or None."""

    @abc.abstractmethod
    def recommend(self, cost: float, finished: bool, complete: bool) -> Recommendation:
        """Return the best answer so far, given what was paid and whether all arms have entered."""

    def _answer(self, arm: int | None, cost: float, finished: bool, **what: Any) -> Recommendation:
        stage = 0 if arm is None else self._furthest(arm)
        mean = math.nan if arm is None else self.mean(arm, stage)
        content: dict[str, Any] = {
            "interval": (-math.inf, math.inf),
            "certified": False,
            "delta": 0.0,
            "epsilon": 0.0,
            "not_compared": tuple(
                f"arm {each}: none of its runs came to the end" for each in sorted(self._failed)
            ),
            **what,
        }
        low, high = content["interval"]
        if stage == self._n_stages - 1 and low <= high:
            # The bounds of cheaper levels are sure, and a mean of a few noisy values is not.
            mean = min(max(mean, low), high)
        return Recommendation(
            arm=arm,
            mean=mean,
            fidelity=stage,
            finished=finished,
            cost=cost,
            pulls=self.n_begun,
            survivors=tuple(sorted(self.active)),
            compared=len(self.active) + len(self.out),
            **content,
        )

    def _furthest(self, arm: int) -> int:
        return int(np.flatnonzero(self._counts[arm])[-1])

    def _without_any(self, cost: float, finished: bool) -> Recommendation:
        reason = "every arm has failed" if self._failed and not self.active else "nothing is known"
        return self._answer(None, cost, finished, reason=reason)


class BoundedElimination(StagedElimination):
    """By declared bounds on what is still gained: what is let go is surely not the best.

    The run with the largest upper end goes first: it has to be trained anyway. For the arguments
    see `BoundedCurves` and `StagedElimination`.
    """

    def __init__(
        self,
        gains: Sequence[tuple[float, float]] | FloatArray,
        noise: float = 0.0,
        n_startup_runs: int = 0,
    ) -> None:
        self._curves = BoundedCurves(gains, noise)
        self._noise = noise
        self._reaches: list[tuple[float, int]] = []
        # The highest upper end of an arm that was let go: the answer has to stand up to it.
        self._highest_out = -math.inf
        super().__init__(len(self._curves.gains), n_startup_runs)

    @property
    def gains(self) -> FloatArray:
        """The bounds in force, shape (M, 2): the declared ones, or wider."""
        return self._curves.gains

    def turn(self, arm: int, reached: int, ahead: int) -> tuple[float, ...]:
        """Prefer arms with few runs ahead, then the most promising."""
        return ahead, -self._curves.standing(arm).reach

    def drop(self, arm: int, verdict: Verdict | None = None) -> None:
        """Let an arm go."""
        super().drop(arm, verdict)
        reach = self._curves.standing(arm).reach if verdict is None else verdict.reach
        self._highest_out = max(self._highest_out, reach)

    def fail(self, arm: int) -> None:
        """Take an arm out; it counts against others no more."""
        super().fail(arm)
        self._curves.withdraw(arm)

    def _learn(self, arm: int, curve: FloatArray, stage: int, standing: int) -> list[int]:
        contradicted = self._curves.add(arm, curve)
        if contradicted or self._is_empty(arm):
            self.contradicting.add(arm)
        if contradicted:
            self._reaches = [(self._curves.standing(a).reach, a) for a in self.active]
            heapq.heapify(self._reaches)
        else:
            heapq.heappush(self._reaches, (self._curves.standing(arm).reach, arm))
        return contradicted

    def _most_hopeless(self) -> tuple[int, Verdict] | None:
        while self._reaches:
            reach, arm = self._reaches[0]
            verdict = self._curves.standing(arm)
            # Where no final value agrees with what an arm has shown, nothing follows from it.
            if arm in self.active and reach == verdict.reach and not self._is_empty(arm):
                return (arm, verdict) if verdict.stop else None
            heapq.heappop(self._reaches)
        return None

    def _is_empty(self, arm: int) -> bool:
        low, high = self._curves.interval(arm)
        return low - high > _ROUNDING * (abs(low) + abs(high))

    def recommend(self, cost: float, finished: bool, complete: bool) -> Recommendation:
        """Return the arm with the largest lower end (see `StagedElimination.recommend`)."""
        seen = [arm for arm in self.active if arm in self._counts]
        if not seen:
            return self._without_any(cost, finished)
        intervals = {arm: self._curves.interval(arm) for arm in seen}
        best = max(seen, key=lambda arm: (intervals[arm][0], -arm))
        low = intervals[best][0]
        others = [high for arm, (_, high) in intervals.items() if arm != best]
        others += [math.inf] * (len(self.active) - len(seen)) + [self._highest_out]
        behind = max(others) - low
        certified = False
        if self.contradicting:
            reason = (
                f"what was declared is contradicted by {len(self.contradicting)} of the arms: what "
                f"was stopped by it may have been stopped in error"
            )
        elif not complete:
            reason = "not all arms have begun"
        elif behind > 0.0:
            reason = "the bounds allow that another arm is better"
            if math.isfinite(behind):
                reason += f", by at most {behind:.3g}"
        elif not self.n_finished(best):
            reason = "the bounds of no other arm reach it, but it has not finished yet"
        else:
            certified = True
            compared = " that was compared" if self._failed else ""
            reason = f"the bounds of no other arm{compared} reach it"
        noise = f"every value is within {self._noise:g} of its arm's mean, as declared"
        if not self._noise:
            noise = "there is no noise, as declared"
        return self._answer(
            best,
            cost,
            finished,
            interval=intervals[best],
            certified=certified,
            reason=reason,
            conditions=("the declared bounds on what is still gained hold", noise),
            remaining_cost=0.0 if certified else None,
        )


class PhasedElimination(StagedElimination):
    """By a tolerance that halves from stage to stage: a heuristic, see `PhasedCurves`.

    An arm is compared at the stage that its runs have all come to, by the mean of their values. All
    runs come to a stage before any goes on from there, the most promising first.
    """

    def __init__(self, n_stages: int, n_startup_runs: int = 0) -> None:
        self._curves = PhasedCurves(n_stages)
        self._standings: dict[int, int] = {}
        self._means: list[list[tuple[float, int]]] = [[] for _ in range(n_stages)]
        super().__init__(n_stages, n_startup_runs)

    def turn(self, arm: int, reached: int, ahead: int) -> tuple[float, ...]:
        """Prefer the run that is least far, then the most promising arm."""
        return reached, ahead, -self.mean(arm, reached) if reached >= 0 else 0.0

    def drop(self, arm: int, verdict: Verdict | None = None) -> None:
        """Let an arm go; it counts against others no more."""
        super().drop(arm, verdict)
        self._curves.withdraw(arm)

    def fail(self, arm: int) -> None:
        """Take an arm out; it counts against others no more."""
        super().fail(arm)
        self._curves.withdraw(arm)

    def _learn(self, arm: int, curve: FloatArray, stage: int, standing: int) -> list[int]:
        new = np.full(self._n_stages, np.nan)
        new[stage] = curve[stage]
        self._curves.begin(new)
        self._curves.add(arm, new)
        self._standings[arm] = standing
        mean = self._curves.mean(arm, standing)
        if not math.isnan(mean):
            heapq.heappush(self._means[standing], (mean, arm))
        return []

    def _most_hopeless(self) -> tuple[int, Verdict] | None:
        for stage, waiting in enumerate(self._means):
            while waiting:
                mean, arm = waiting[0]
                current = self._standings[arm] == stage and self._curves.mean(arm, stage) == mean
                if arm in self.active and current:
                    verdict = self._curves.standing(arm, stage)
                    if verdict.stop:
                        return arm, verdict
                    break  # all others at this stage are better
                heapq.heappop(waiting)
        return None

    def recommend(self, cost: float, finished: bool, complete: bool) -> Recommendation:
        """Return the arm with the largest mean (see `StagedElimination.recommend`)."""
        seen = [arm for arm in self.active if arm in self._counts]
        if not seen:
            return self._without_any(cost, finished)

        def progress(arm: int) -> tuple[float, ...]:
            stage = self._furthest(arm)
            return stage, self.mean(arm, stage), -arm

        best = max(seen, key=progress)
        stage = self._furthest(best)
        n_values = int(self._counts[best][stage])
        n_there = sum(bool(self._counts[arm][stage]) for arm in seen)
        return self._answer(
            best,
            cost,
            finished,
            reason=(
                f"no bounds are declared, and a tolerance that halves is a heuristic; the mean is "
                f"that of {n_values} value{'s' if n_values > 1 else ''}, the best of {n_there}"
            ),
            assumptions=("that no arm gains much more than others after it was stopped",),
        )
