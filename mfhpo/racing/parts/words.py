"""What an answer says about a race: why it stands as it does, and on what that rests."""

import math
from dataclasses import dataclass

import numpy as np

from mfhpo.racing.answer import bias_condition, bias_in_words, notices, remaining_pulls
from mfhpo.racing.claims import joined
from mfhpo.racing.noise_evidence import LEAST_REPEATS
from mfhpo.racing.parts.costs import Costs
from mfhpo.racing.parts.measuring import Measuring
from mfhpo.racing.rule import Known, Needs, Words

_SAME = "draw a new seed or split in every evaluation, or declare sigma=0 if there is no noise"


@dataclass(frozen=True)
class Speaker:
    """Words the answers of a race; `bias_level` is the error probability of estimated bounds."""

    known: Known
    needs: Needs
    costs: Costs
    measuring: Measuring
    bias_level: float

    def words(
        self, arm: int | None, awaits: bool, finished: bool, hides_noise: bool, n_pilot: int
    ) -> Words:
        """Return the words of an answer about an arm.

        `awaits` says whether the race goes on although it has a winner, and `n_pilot` how many
        arms the pilot had.
        """
        certifies = self.needs.certifies
        usual = Words(
            self._reason(arm, awaits, finished, hides_noise),
            self._conditions(n_pilot),
            self._assumptions(n_pilot),
            self._notices(),
            self._remaining_cost(arm, hides_noise) if certifies else None,
        )
        return usual if self.needs.words is None else self.needs.words(self.known, usual, arm)

    def _reason(self, arm: int | None, awaits: bool, finished: bool, hides_noise: bool) -> str:
        known = self.known
        if arm is None:
            return "every arm failed and left the race"
        if not self.needs.certifies:
            reason = self.needs.reason
            if finished:
                return f"{self._end(hides_noise)}; {reason}"
            return f"the pilot is not complete; {reason}" if known.piloting else reason
        winner = known.winner
        if winner is None:
            reason = f"{len(known.arms)} arms are not told apart yet"
            if known.piloting:
                reason = "the pilot is not complete"
        elif awaits:
            reason = "the winner is evaluated more often, to see what a few values cannot show"
            if self.measuring.is_short_at_target(winner):
                reason = "the winner's value at the target is still being measured"
        elif known.certified is not None:
            return self.needs.reason
        elif known.roster.is_lonely:
            return "every other arm left without being compared, because its pulls failed"
        elif known.roster.eliminated.any():
            compared = " that was compared" if known.roster.withdrawn.any() else ""
            return f"every other arm{compared} was eliminated"
        else:
            return "the only arm"
        return f"{self._end(hides_noise)} and {reason}" if finished else reason

    def _end(self, hides_noise: bool) -> str:
        """Say why a race that is not certified is over."""
        if end := self.needs.end(self.known):
            return end
        if hides_noise:
            return f"all repeated evaluations gave exactly the same value: {_SAME}"
        return f"the budget of {self.costs.budget:g} is spent"

    def _conditions(self, n_pilot: int) -> tuple[str, ...]:
        parts = ["evaluations are independent", self.known.evidence.assumption]
        if len(self.known.compared) > 1:
            parts.append(bias_condition(self.known.bias, n_pilot, self.bias_level))
        return tuple(parts)

    def _assumptions(self, n_pilot: int) -> tuple[str, ...]:
        parts = [self.known.evidence.estimate]
        if len(self.known.compared) > 1:
            parts.append(bias_in_words(self.known.bias, n_pilot))
        elif self.known.problem.n_fidelities > 1:
            parts.append("bias: nothing is taken for true of it; the target's values decide")
        return tuple(part for part in parts if part)

    def _notices(self) -> tuple[str, ...]:
        known, measuring = self.known, self.measuring
        noise, labels = known.evidence.noise, known.labels
        found: list[str] = []
        if self.needs.certifies:
            found = [
                f"all repeated evaluations at {labels.fidelity(m)} gave exactly the same value: "
                f"{_SAME}"
                for m in known.compared
                if noise.is_hidden(m, LEAST_REPEATS)
            ]
            if known.bias is not None and known.bias.source == "widened":
                found.append(
                    "observations contradicted the declared bias bounds, which were widened"
                )
            unaudited = noise.unaudited if measuring.waits else {}
            if unaudited and not measuring.waits_for_repeats:
                levels = joined([labels.fidelity(m) for m in unaudited])
                found.append(
                    f"too few repeats at {levels} to see whether the declared sigma is too small"
                )
        arms = np.flatnonzero(~known.roster.merged)
        return (*found, *notices(known.evidence, arms, known.compared, labels))

    def _remaining_cost(self, leader: int | None, hides_noise: bool) -> float | None:
        known = self.known
        if leader is None or known.piloting or hides_noise:
            return None
        winner = known.winner
        if winner is not None:
            lacking = self.measuring.lacking(winner).items()
            return sum((n * self.costs.of(m) for m, n in lacking), start=0.0)
        missing = remaining_pulls(known.evidence, known.arms, leader, known.epsilon)
        if math.isnan(missing):
            return None
        return missing if math.isinf(missing) else missing * self.costs.of(known.problem.target)
