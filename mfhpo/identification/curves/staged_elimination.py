"""Elimination of arms whose runs are trained in stages: whose turn it is, who can be let go.

The rule is that of `BoundedCurves`. Work per observation grows with the logarithm of the number of
arms.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mfhpo.identification.curves.curve_elimination import BoundedCurves, Shown
from mfhpo.identification.curves.curves import Verdict
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.problem import Recommendation

# Bounds that miss each other by less than this share of the values do so by rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Field:
    """Who is in the race: its number of arms, those that were `seen`, whether some have failed.

    `complete` says whether all arms have entered.
    """

    n_active: int
    seen: Sequence[int]
    some_failed: bool
    complete: bool


class ByBounds:
    """By declared bounds on what is still gained: what is let go is surely not the best.

    The run with the largest upper end goes first: it has to be trained anyway.
    """

    def __init__(self, gains: Sequence[tuple[float, float]] | FloatArray, noise: float) -> None:
        self.curves = BoundedCurves(gains, noise)
        self.contradicting: set[int] = set()
        self._noise = noise
        self._reaches: list[tuple[float, int]] = []
        # The highest upper end of an arm that was let go: the answer has to stand up to it.
        self._highest_out = -math.inf

    def turn(self, arm: int, ahead: int) -> tuple[float, ...]:
        """Prefer arms with few runs ahead, then the most promising."""
        return ahead, -self.curves.standing(arm).reach

    def drop(self, arm: int, verdict: Verdict | None) -> None:
        """Remember how good an arm may have been."""
        reach = self.curves.standing(arm).reach if verdict is None else verdict.reach
        self._highest_out = max(self._highest_out, reach)

    def fail(self, arm: int) -> None:
        """Let an arm count against others no more."""
        self.curves.withdraw(arm)

    def learn(self, active: set[int], arm: int, curve: FloatArray) -> list[int]:
        """See `BoundedElimination.observe`."""
        contradicted = self.curves.add(arm, curve)
        if contradicted or self._is_empty(arm):
            self.contradicting.add(arm)
        if contradicted:
            self._reaches = [(self.curves.standing(a).reach, a) for a in active]
            heapq.heapify(self._reaches)
        else:
            heapq.heappush(self._reaches, (self.curves.standing(arm).reach, arm))
        return contradicted

    def most_hopeless(self, active: set[int]) -> tuple[int, Verdict] | None:
        """Return an arm that can be let go, or None."""
        while self._reaches:
            reach, arm = self._reaches[0]
            verdict = self.curves.standing(arm)
            # Where no final value agrees with what an arm has shown, nothing follows from it.
            if arm in active and reach == verdict.reach and not self._is_empty(arm):
                return (arm, verdict) if verdict.stop else None
            heapq.heappop(self._reaches)
        return None

    def _is_empty(self, arm: int) -> bool:
        low, high = self.curves.interval(arm)
        return low - high > _ROUNDING * (abs(low) + abs(high))

    def answer(self, shown: Shown, field: Field) -> tuple[int, dict[str, Any]]:
        """Return the arm with the largest lower end, and what is said about it."""
        intervals = {arm: self.curves.interval(arm) for arm in field.seen}
        best = max(field.seen, key=lambda arm: (intervals[arm][0], -arm))
        low = intervals[best][0]
        others = [high for arm, (_, high) in intervals.items() if arm != best]
        others += [math.inf] * (field.n_active - len(field.seen)) + [self._highest_out]
        reason, certified = self._reason(shown, field, best, max(others) - low), False
        if not reason:
            certified = True
            compared = " that was compared" if field.some_failed else ""
            reason = f"the bounds of no other arm{compared} reach it"
        noise = f"every value is within {self._noise:g} of its arm's mean, as declared"
        if not self._noise:
            noise = "there is no noise, as declared"
        return best, {
            "interval": intervals[best],
            "certified": certified,
            "reason": reason,
            "conditions": ("the declared bounds on what is still gained hold", noise),
            "remaining_cost": 0.0 if certified else None,
        }

    def _reason(self, shown: Shown, field: Field, best: int, behind: float) -> str:
        """Say why nothing is certified, by how far the best arm may be behind; else empty."""
        if self.contradicting:
            return (
                f"what was declared is contradicted by {len(self.contradicting)} of the arms: what "
                f"was stopped by it may have been stopped in error"
            )
        if not field.complete:
            return "not all arms have begun"
        if behind > 0.0:
            by = f", by at most {behind:.3g}" if math.isfinite(behind) else ""
            return f"the bounds allow that another arm is better{by}"
        if not shown.count(best, len(self.curves.gains) - 1):
            return "the bounds of no other arm reach it, but it has not finished yet"
        return ""


class BoundedElimination:
    """A race by declared bounds of arms, each of which has one or several runs.

    Parameters
    ----------
    gains, noise
        See `BoundedCurves`; the last stage is the target.
    n_startup_runs
        No arm is let go before so many have shown something.

    Attributes
    ----------
    active, out, failed
        The arms that are in the race, those that were let go, and those without anything to run.
    n_begun
        Number of runs that have shown something.
    """

    def __init__(
        self,
        gains: Sequence[tuple[float, float]] | FloatArray,
        noise: float = 0.0,
        n_startup_runs: int = 0,
    ) -> None:
        self.active: set[int] = set()
        self.out: set[int] = set()
        self.n_begun = 0
        self.rule = ByBounds(gains, noise)
        self.failed: set[int] = set()
        self._shown = Shown(len(gains))
        self._target = len(gains) - 1
        self._n_startup_runs = n_startup_runs

    @property
    def gains(self) -> FloatArray:
        """The bounds in force, shape (M, 2): the declared ones, or wider."""
        return self.rule.curves.gains

    @property
    def contradicting(self) -> set[int]:
        """The arms that contradicted what was declared."""
        return self.rule.contradicting

    def enter(self, arm: int) -> None:
        """Let an arm take part, unless it was let go before."""
        if arm not in self.out:
            self.active.add(arm)
            self.failed.discard(arm)

    def observe(self, arm: int, curve: FloatArray, stage: int) -> list[int]:
        """Learn what a run has shown at a stage; returns the stages whose bounds it contradicts.

        The arm's `curve` has shape (M,), larger is better, NaN where it has no value; that at
        `stage` is new.
        """
        if np.count_nonzero(np.isfinite(curve)) == 1:
            self.n_begun += 1
        self._shown.add(arm, stage, float(curve[stage]))
        if arm in self.out:
            return []
        return self.rule.learn(self.active, arm, curve)

    def let_go(self) -> list[tuple[int, Verdict]]:
        """Let all arms go that cannot be the best, and return them with why."""
        gone: list[tuple[int, Verdict]] = []
        if self.n_begun < self._n_startup_runs:
            return gone
        while found := self.rule.most_hopeless(self.active):
            gone.append(found)
            self.drop(*found)
        return gone

    def drop(self, arm: int, verdict: Verdict | None = None) -> None:
        """Let an arm go; without a verdict, one that is known to have been let go before."""
        self.active.discard(arm)
        self.out.add(arm)
        self.rule.drop(arm, verdict)

    def fail(self, arm: int) -> None:
        """Take an arm out of which no run is left, and none has come to its end."""
        self.active.discard(arm)
        self.failed.add(arm)
        self.rule.fail(arm)

    def n_finished(self, arm: int) -> int:
        """Return the number of an arm's values at the target."""
        return self._shown.count(arm, self._target)

    def turn(self, arm: int, ahead: int) -> tuple[float, ...]:
        """Return the sort key of a run that waits; the smallest goes first.

        `ahead` counts the arm's other runs that are further or under way.
        """
        return self.rule.turn(arm, ahead)

    def recommend(self, cost: float, finished: bool, complete: bool) -> Recommendation:
        """Return the best answer so far, given what was paid and whether all arms have entered."""
        seen = [arm for arm in self.active if arm in self._shown]
        arm: int | None = None
        stage, mean = 0, math.nan
        content: dict[str, Any] = {"interval": (-math.inf, math.inf), "certified": False}
        if seen:
            field = Field(len(self.active), seen, bool(self.failed), complete)
            arm, said = self.rule.answer(self._shown, field)
            content |= said
            stage = self._shown.furthest(arm)
            mean = self._shown.mean(arm, stage)
        elif self.failed and not self.active:
            content["reason"] = "every arm has failed"
        else:
            content["reason"] = "nothing is known"
        low, high = content["interval"]
        if seen and stage == self._target and low <= high:
            # The bounds of cheaper levels are sure, and a mean of a few noisy values is not.
            mean = min(max(mean, low), high)
        return Recommendation(
            arm=arm,
            mean=mean,
            fidelity=stage,
            delta=0.0,
            epsilon=0.0,
            finished=finished,
            cost=cost,
            pulls=self.n_begun,
            survivors=tuple(sorted(self.active)),
            compared=len(self.active) + len(self.out),
            not_compared=tuple(
                f"arm {each}: none of its runs came to the end" for each in sorted(self.failed)
            ),
            **content,
        )
