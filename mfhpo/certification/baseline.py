"""A race's winner beside the configuration in use today: is it better, and by how much.

The race itself and this comparison share delta, half for each. The comparison is one of the
baseline with every other arm, so that it holds for whichever arm the race chooses. Where another
arm than the winner has eliminated the baseline, the best arm is at least as good as that one, and
the winner is within the race's tolerance of the best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from mfhpo._validation import plain
from mfhpo.certification.tolerance import lead, seen_lead, tolerance
from mfhpo.identification.group_sequential import GroupSequential
from mfhpo.racing.race import Race

_RACE_SHARE = 0.5  # of delta, where there is a baseline; the rest is for the comparison

# What a race with a winner spends to tell it from the baseline, at most, by what it had cost.
_SHARE_TO_TELL = 0.5

Verdict: TypeAlias = Literal["better", "not told apart", "winner", "failed"]


def delta_of_race(delta: float, baseline: object) -> float:
    """Return the share of delta that a race has, if it has a baseline or None."""
    return delta if baseline is None else _RACE_SHARE * delta


@dataclass(frozen=True)
class Baseline:
    """A winner compared with the baseline, the configuration in use today.

    Parameters
    ----------
    name, params
        Of the baseline.
    verdict
        "better", of the winner; "not told apart"; "winner", of the baseline itself; or "failed":
        its evaluations fail too often, and it was not compared.
    difference
        By how much the winner's mean is better than the baseline's; NaN without both means.
    at_least
        A lower bound on by how much the winner is truly better, negative if it may be worse.
    delta
        Probability that this bound, or the claim of the certificate, is wrong.
    """

    name: str
    params: Mapping[str, Any]
    verdict: Verdict
    difference: float
    at_least: float
    delta: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values (None for what is not finite), with its words."""
        return {**plain(asdict(self)), "words": str(self)}

    def __str__(self) -> str:
        if self.verdict == "winner":
            return "the baseline is the winner: keep it"
        if self.verdict == "failed":
            return "the baseline was not compared, because its evaluations fail too often"
        if self.at_least == math.inf:
            return "better than the baseline, which gave the worst value there is"
        is_seen, least = not math.isnan(self.difference), f"at least {self.at_least:.3g}"
        if self.verdict == "not told apart":
            least = f", {least}" if math.isfinite(self.at_least) else ""
            so_far = f" ({self.difference:.3g} better so far{least})" if is_seen else ""
            return f"not told apart from the baseline: keep it{so_far}"
        by = f"{self.difference:.3g}, " if is_seen else ""
        sure = f"delta {self.delta:g}" if self.delta else "on these replicates, not on new ones"
        return f"better than the baseline by {by}{least} ({sure})"


class AgainstBaseline:
    """Compares whichever arm a race with its share of delta chooses with the baseline.

    What is known when the baseline leaves stays true, so that it is to `look` after each value.
    """

    def __init__(self, policy: Race, arm: int) -> None:
        self.arm = policy.known.baseline = arm
        self._policy = policy
        # Who has eliminated it, by which noise and bias, and the lead then.
        self._exit: tuple[tuple[Any, ...], float] | None = None
        self._race_cost = math.inf  # when its claim held first

    @property
    def delta(self) -> float:
        """The probability that the race's claim or the comparison is wrong."""
        return self._policy.delta / _RACE_SHARE

    def look(self) -> None:
        """Note whether the baseline has been eliminated, or is back, and whether to hold it."""
        known = self._policy.known
        known.baseline = self.arm
        by, widened = known.roster.beaten_by(self.arm), bool(known.evidence.noise.widened)
        grounds = by, widened, known.bias
        if by is None:
            self._exit = None
        elif self._exit is None or self._exit[0] != grounds:
            self._exit = grounds, max(0.0, lead(self._policy, by, self.arm))
        winner = self._policy.winner
        is_held = winner is not None and self._is_within_reach(winner)
        known.duel = (winner, self.arm) if winner is not None and is_held else ()

    def _is_within_reach(self, winner: int) -> bool:
        """Tell whether the race's winner seems better, and may be by more than epsilon."""
        policy, arm, roster = self._policy, self.arm, self._policy.known.roster
        if policy.is_measuring:
            self._race_cost = math.inf
            return False
        self._race_cost = min(self._race_cost, policy.cost)
        gone = roster.withdrawn[arm] or roster.ruled_out[arm]
        # Bounds by a few planned looks do not hold whenever a race ends.
        if winner == arm or gone or isinstance(policy, GroupSequential):
            return False
        is_spent = policy.cost >= (1.0 + _SHARE_TO_TELL) * self._race_cost
        if is_spent or not seen_lead(policy, winner, arm) > 0.0:
            return False
        is_better = self.compared(winner, policy.epsilon, {}).verdict == "better"
        return not is_better and -lead(policy, arm, winner) > policy.epsilon

    def compared(
        self, winner: int, most: float | None, params: Mapping[str, Any], name: str = "baseline"
    ) -> Baseline:
        """Return how the winner compares, which is certified to `most`; None: it is not."""
        policy, arm, roster = self._policy, self.arm, self._policy.known.roster
        verdict: Verdict = "not told apart"
        difference, at_least = math.nan, -math.inf
        if winner == arm:
            verdict, difference, at_least = "winner", 0.0, 0.0
            if most is None:
                verdict, difference = "not told apart", math.nan
        elif roster.withdrawn[arm]:
            verdict = "failed"
        elif roster.ruled_out[arm]:
            verdict, at_least = "better", math.inf
        else:
            counts = policy.known.evidence.counts[[winner, arm], policy.problem.target]
            difference = seen_lead(policy, winner, arm) if counts.all() else math.nan
            behind = min(tolerance(policy, winner), math.inf if most is None else most)
            at_least = max(lead(policy, winner, arm), -behind)
            by = None if self._exit is None else self._exit[0][0]
            if self._exit is not None:
                at_least = max(at_least, self._exit[1] - (0.0 if by == winner else behind))
            verdict = "better" if at_least > 0.0 or by == winner else verdict
        delta = 0.0 if policy.known.needs.is_exact(policy.known) else self.delta
        return Baseline(name, dict(params), verdict, difference, at_least, delta)
