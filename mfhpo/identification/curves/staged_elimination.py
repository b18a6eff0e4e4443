"""Elimination of arms whose runs are trained in stages: whose turn it is, who can be let go."""

import math
from collections.abc import Sequence

import numpy as np

from mfhpo.identification.curves.curves import BoundedCurves, mean_of
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.problem import Recommendation

# Bounds that miss each other by less than this share of the values do so by rounding.
_ROUNDING = 1e-12


class BoundedElimination:
    """A race of arms, each of which has one or several runs, by the rule of `BoundedCurves`.

    What is let go is surely not the best. The run with the largest upper end goes first: it has to
    be trained anyway. The last stage is the target.

    Arms are `active`, or `out` once they were let go, or have `failed` if nothing is left to run.
    Those that contradicted what was declared are `contradicting`.
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
        """Learn what a run has shown at a stage; returns the stages whose bounds it contradicts.

        The arm's `curve` has shape (M,), larger is better, NaN where it has no value; that at
        `stage` is new.
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
        self._highest_out = max([self._highest_out, *map(self._reach, gone)])
        return gone

    def fail(self, arm: int) -> None:
        """Take an arm out of which no run is left, and none has come to its end."""
        self.active.discard(arm)
        self.failed.add(arm)
        self._curves.withdraw(arm)

    def n_finished(self, arm: int) -> int:
        """Return the number of an arm's values at the target."""
        return len(self._shown[arm][self._target]) if arm in self._shown else 0

    def turn(self, arm: int, ahead: int) -> tuple[float, ...]:
        """Return the sort key of a run that waits; the smallest goes first.

        `ahead` counts the arm's other runs that are further or under way.
        """
        return ahead, -self._reach(arm)

    def recommend(self, cost: float, finished: bool, complete: bool) -> Recommendation:
        """Return the best answer so far, given what was paid and whether all arms have entered."""
        seen = [arm for arm in self.active if arm in self._shown]
        arm, stage, mean = None, 0, math.nan
        low, high = -math.inf, math.inf
        conditions: tuple[str, ...] = ()
        why_not = "every arm has failed" if self.failed and not self.active else "nothing is known"
        if seen:
            arm, low, high, why_not = self._best(seen, complete)
            stage = max(m for m, values in enumerate(self._shown[arm]) if values)
            mean = mean_of(self._shown[arm][stage])
            noise = f"every value is within {self._noise:g} of its arm's mean, as declared"
            if not self._noise:
                noise = "there is no noise, as declared"
            conditions = ("the declared bounds on what is still gained hold", noise)
        if stage == self._target and low <= high:
            # The bounds of cheaper levels are sure, and a mean of a few noisy values is not.
            mean = min(max(mean, low), high)
        compared = " that was compared" if self.failed else ""
        return Recommendation(
            arm=arm,
            mean=mean,
            interval=(low, high),
            fidelity=stage,
            delta=0.0,
            epsilon=0.0,
            certified=not why_not,
            finished=finished,
            cost=cost,
            pulls=self._n_begun,
            survivors=tuple(sorted(self.active)),
            reason=why_not or f"the bounds of no other arm{compared} reach it",
            conditions=conditions,
            remaining_cost=None if why_not else 0.0,
            compared=len(self.active) + len(self.out),
            not_compared=tuple(
                f"arm {each}: none of its runs came to the end" for each in sorted(self.failed)
            ),
        )

    def _reach(self, arm: int) -> float:
        return self._curves.interval(arm)[1]

    def _is_empty(self, arm: int) -> bool:
        low, high = self._curves.interval(arm)
        return low - high > _ROUNDING * (abs(low) + abs(high))

    def _best(self, seen: Sequence[int], complete: bool) -> tuple[int, float, float, str]:
        """Return the arm with the largest lower end, both ends, and why it is not certified."""
        intervals = {arm: self._curves.interval(arm) for arm in seen}
        best = max(seen, key=lambda arm: (intervals[arm][0], -arm))
        low, high = intervals.pop(best)
        others = [high_of_other for _, high_of_other in intervals.values()]
        others += [math.inf] * (len(self.active) - len(seen)) + [self._highest_out]
        return best, low, high, self._why_not(best, max(others) - low, complete)

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
