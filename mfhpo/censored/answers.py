"""In words: the grounds of answers about arms and limits, and why a race is over."""

import numpy as np

from mfhpo.censored.history import RewardRange
from mfhpo.censored.limits import SharedLimits
from mfhpo.problem import Labels
from mfhpo.racing.rule import Roster


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
