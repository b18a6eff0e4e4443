"""Statements about arms and limits: bounds that hold together, and what they rest on."""

from dataclasses import dataclass

import numpy as np

from mfhpo.censored.gain import GainEstimates
from mfhpo.censored.history import RewardRange
from mfhpo.censored.limits import SharedLimits
from mfhpo.censored.zooming import Refinement
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.statistics import SurvivalPoint
from mfhpo.problem import Labels
from mfhpo.racing.roster import Roster


@dataclass(frozen=True)
class GainBounds:
    """Bounds on gains that hold for all pairs together, at all times, but with probability delta.

    Each arm has an equal share of it, and so have its limits, unless these are refined.
    """

    estimates: GainEstimates
    refinement: Refinement | None
    delta: float

    def interval(self, arm: int, point: int) -> tuple[float, float]:
        """Return bounds on the gain of a pair."""
        return self.estimates.bounds(arm, point, float(self._shares(arm)[point]))

    def surest(self, arm: int) -> int:
        """Return the index of the arm's limit with the best lower bound."""
        return int(np.argmax(self._lower_bounds(arm)))

    def believed(self, arm: int) -> tuple[float, tuple[float, float]]:
        """Return the estimated gain at the arm's surest limit, within its bounds, and these."""
        point = self.surest(arm)
        low, high = self.interval(arm, point)
        return min(max(float(self.estimates.gains(arm)[point]), low), high), (low, high)

    def best_arm(self, arms: IntArray) -> int | None:
        """Return the arm with the best lower bound; None if nothing is known about any."""
        pulled: list[int] = [arm for arm in arms.tolist() if self.estimates.counts(arm).any()]
        bounds = [self._lower_bounds(arm).max() for arm in pulled]
        return pulled[int(np.argmax(bounds))] if pulled else None

    def curve(self, arm: int) -> tuple[SurvivalPoint, ...]:
        """Return how probably a pull of an arm runs beyond each of its limits."""
        survival = self.estimates.survival(arm)
        lows, highs = self.estimates.survival_bounds(arm, self._shares(arm))
        columns = (self.estimates.limits(arm), np.clip(survival, lows, highs), lows, highs)
        return tuple(SurvivalPoint(*row) for row in np.stack(columns, axis=1).tolist())

    def _lower_bounds(self, arm: int) -> FloatArray:
        kept = self.estimates.lowest
        if arm not in kept:
            kept[arm] = self.estimates.lower_bounds(arm, self._shares(arm))
        return kept[arm]

    def _shares(self, arm: int) -> FloatArray:
        n_arms, n_points = len(self.estimates.tallies.points), len(self.estimates.limits(arm))
        parts = [n_points] * n_points if self.refinement is None else self.refinement.parts(arm)
        return self.delta / (n_arms * np.array(parts, dtype=np.float64))


def estimated_in_words(rewards: RewardRange, limits: SharedLimits) -> str:
    """Name what the bounds rest on and was not declared."""
    if rewards.declared is not None:
        return "the limits are estimated" if limits.n_derived else ""
    if limits.n_derived:
        return "the range of the values and the limits are estimated"
    return "the range of the values is estimated"


def assumptions_in_words(
    rewards: RewardRange, limits: SharedLimits, roster: Roster, labels: Labels
) -> tuple[str, ...]:
    """Return what an answer supposes."""
    parts = [rewards.in_words(labels)]
    if limits.n_derived and limits.known is not None:
        parts.append("limits derived from the first durations: the bounds are approximate")
    parts.append("pulls of an arm are alike: neither reward nor duration drifts")
    parts.append(
        "all pulls that were begun have been told; where several run at once, the quick ones "
        "come back first, and until the others have, bounds and estimates lean towards them"
    )
    if roster.withdrawn.any():
        gone = ", ".join(map(labels.arm, np.flatnonzero(roster.withdrawn).tolist()))
        parts.append(f"not compared, because their pulls gave no result: {gone}")
    return tuple(parts)


def reason_in_words(
    limits: SharedLimits, roster: Roster, arm: int | None, pulls: int, horizon: int | None
) -> str:
    """Return why the race is over, or that it is not."""
    if not roster.active.any():
        return "every arm left: their pulls kept failing"
    if limits.known is None:
        return "the limits are still being derived from the first durations"
    if arm is None:
        return "nothing was observed yet"
    if horizon is not None and pulls >= horizon:
        over = f"the horizon of {pulls} rounds is reached; the aim was reward"
    else:
        over = f"after {pulls} rounds; the aim is reward while it runs"
    return f"{over}, and nothing is certified"
