"""Policies that play the pair with the highest upper bound: the loop that they share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_positive
from mfhpo.censored.draws import Draw, Draws
from mfhpo.censored.gain import GainEstimates
from mfhpo.censored.kernel import (
    CONFIDENCES,
    DRAWS,
    HELPERS,
    LIMIT,
    REFINE,
    Rule,
    choose,
    forget,
    play,
)
from mfhpo.censored.policy import CensoredPolicy
from mfhpo.problem import Pull
from mfhpo.racing.native import compiled

__all__ = ["IndexPolicy"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class IndexPolicy(CensoredPolicy):
    """Plays the pair whose upper bound on the gain is the highest."""

    def _refine(self, estimates: GainEstimates, arm: int) -> None:
        """Give an arm further limits where it was played last."""

    def _choose(
        self, extra: FloatArray, all_extra: FloatArray, under_way: IntArray, allowed: BoolArray
    ) -> Pull:
        estimates = self._known()
        tallies, ceilings = estimates.tallies, estimates.ceilings
        tallies = tallies._replace(points=np.where(allowed, tallies.points, 0))
        number = self.pulls + int(all_extra.sum()) + 1
        arm, point = choose(tallies, estimates.rule, ceilings, extra, all_extra, number)
        # Of arms that are left out this time only, nothing is known the next time.
        ceilings.stale[~allowed & (estimates.tallies.points > 0)] = True
        if arm < 0:
            # Every arm is under way for the first time: the one that fewest are.
            arms = np.flatnonzero(allowed)
            arm = int(arms[np.argmin(all_extra[arms])])
            point = int(estimates.tallies.points[arm]) - 1
        return Pull(int(arm), 0, float(estimates.tallies.cells[arm, point, LIMIT]))

    def _take_note(self, arm: int, limit: float) -> None:
        estimates = self._known()
        forget(estimates.tallies, estimates.ceilings, arm, limit)

    def play(self, draw: Draw, rounds: int) -> None:
        """Play rounds at once (see `CensoredPolicy.play`)."""
        rounds = self._rounds_to_play(rounds)
        estimates = self._known()
        loop = compiled(play, *HELPERS)
        draws = Draws(draw, estimates, self.n_arms)
        while rounds > 0 and self._roster.active.any():
            block = draws.block(min(rounds, self._rounds_at_this_level()))
            reason, played, arm = DRAWS, 0, -1
            try:
                while reason == DRAWS:
                    if arm >= 0:
                        draws.fill(arm)
                    reason, played, arm = loop(
                        estimates.tallies,
                        estimates.rule,
                        estimates.ceilings,
                        block,
                        played,
                        self.pulls,
                    )
            finally:
                # Also if a draw failed: the estimates have learned from these.
                self._note_plays(block.arms[:played], block.notes[:played])
            rounds -= played
            if reason == REFINE:
                self._refine(estimates, arm)

    def _rounds_at_this_level(self) -> int:
        """How many rounds may be played before the rule changes."""
        return 1 << 20


def rule_of(
    confidence: str, exploration: float, level: float = 0.0, smoothness: float = 0.0
) -> Rule:
    """The rule of an `IndexPolicy`, its scale left open; ValueError for arguments out of range."""
    if confidence not in CONFIDENCES:
        known = ", ".join(map(repr, CONFIDENCES))
        raise ValueError(f"confidence must be one of {known}, got {confidence!r}.")
    return Rule(
        confidence=CONFIDENCES.index(confidence),
        counted=False,
        exploration=check_positive("exploration", exploration, "; try 1"),
        level=level,
        top=1.0,
        smoothness=smoothness,
    )
