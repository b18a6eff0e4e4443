"""Whether a race's winner is better than the configuration in use today, and by how much.

The race itself and this comparison share delta, half for each. The comparison is one of the
baseline with every other arm, so that it holds for whichever arm the race chooses. Where another
arm than the winner has eliminated the baseline, the best arm is at least as good as that one, and
the winner is within the race's tolerance of the best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from mfhpo.certification.tolerance import lead
from mfhpo.identification.likelihood.blocks import Blocks
from mfhpo.racing.race import Race

RACE_SHARE = 0.5
"""Of delta, the share of a race in which there is a baseline; the rest is for the comparison."""


Verdict: TypeAlias = Literal["better", "not told apart", "winner", "failed"]


@dataclass(frozen=True)
class Baseline:
    """What is known about a winner and the baseline, the configuration in use today.

    Parameters
    ----------
    name, params
        Of the baseline.
    verdict
        "better": the winner is better. "not told apart": it may be no better. "winner": the
        baseline itself is the winner. "failed": the baseline's evaluations fail too often, and it
        was not compared.
    difference
        By how much the winner's mean is better than the baseline's; NaN without both means. The
        winner was chosen by this mean, so that it is too large on average.
    at_least
        A lower bound on by how much the winner is truly better; negative if it may be worse,
        infinite where the baseline gave the worst value, minus infinity where nothing is known.
    delta
        Probability that `at_least` or the claim of the certificate is wrong.
    """

    name: str
    params: Mapping[str, Any]
    verdict: Verdict
    difference: float
    at_least: float
    delta: float

    def without_noise(self) -> Baseline:
        """Return what is known where the noise of the race cannot be seen."""
        if self.verdict != "better" or self.at_least == math.inf:
            return self
        return replace(self, verdict="not told apart", at_least=-math.inf)

    def __str__(self) -> str:
        if self.verdict == "winner":
            return "the baseline is the winner: keep it"
        if self.verdict == "failed":
            return "the baseline was not compared, because its evaluations fail too often"
        if self.at_least == math.inf:
            return "better than the baseline, which gave the worst value there is"
        if self.verdict == "not told apart":
            seen = "" if math.isnan(self.difference) else f" ({self.difference:+.3g} so far"
            if seen and math.isfinite(self.at_least):
                seen += f", at least {self.at_least:+.3g}"
            return f"not told apart from the baseline: keep it{seen and f'{seen})'}"
        by = "" if math.isnan(self.difference) else f"{self.difference:.3g}, "
        least = f"at least {self.at_least:.3g} (delta {self.delta:g})"
        return f"better than the baseline by {by}{least}"


class AgainstBaseline:
    """Compares whichever arm a race chooses with one of its arms, the baseline.

    What is known when the baseline leaves the race stays true: `look` after each value.

    Parameters
    ----------
    policy, arm
        The race, which has `RACE_SHARE` of delta, and the baseline.
    delta
        See `Baseline`.
    """

    def __init__(self, policy: Race, arm: int, delta: float) -> None:
        self._policy, self.arm, self._delta = policy, arm, delta
        self._exit: tuple[int, float] | None = None  # who has eliminated it, and the lead then

    def look(self) -> None:
        """Note whether the baseline has been eliminated, or is back."""
        by = self._policy.known.roster.beaten_by(self.arm)
        if by is None:
            self._exit = None
        elif self._exit is None:
            self._exit = by, max(0.0, lead(self._policy, by, self.arm))

    def compared(
        self, winner: int, within: float, params: Mapping[str, Any], name: str = "baseline"
    ) -> Baseline:
        """Return how the winner compares; no arm is better than it by more than `within`."""
        policy, arm = self._policy, self.arm
        roster, difference, at_least = policy.known.roster, math.nan, -math.inf
        verdict: Verdict = "not told apart"
        if winner == arm:
            verdict, difference, at_least = "winner", 0.0, 0.0
        elif roster.withdrawn[arm]:
            verdict = "failed"
        elif roster.ruled_out[arm]:
            at_least = math.inf
        else:
            difference, at_least = _difference(policy, winner, arm), lead(policy, winner, arm)
        if self._exit is not None and verdict == "not told apart":
            by, known = self._exit
            at_least = max(at_least, known if by == winner else known - within)
        if at_least > 0.0 or (self._exit is not None and self._exit[0] == winner):
            verdict = "better"
        return Baseline(name, dict(params), verdict, difference, at_least, self._delta)


def _difference(policy: Race, winner: int, baseline: int) -> float:
    """Return the difference of two means at the target; in blocks, over those that both share."""
    blocks, both = policy.known.needs.intake, [winner, baseline]
    if isinstance(blocks, Blocks) and blocks.in_blocks:
        differences = blocks.values[winner] - blocks.values[baseline]
        shared = differences[~np.isnan(differences)]
        return float(shared.mean()) if shared.size else math.nan
    evidence, target = policy.known.evidence, policy.problem.target
    if not (evidence.counts[both, target] > 0).all():
        return math.nan
    ours, theirs = evidence.means(np.array(both), target).tolist()
    return float(ours - theirs)
