"""The tolerance that holds for a race's leader, as far as it goes."""

import math
from collections.abc import Callable

import numpy as np

from mfhpo.identification.group_sequential import GroupSequential
from mfhpo.knowledge.noise import Bounded
from mfhpo.racing.race import Race

# To which share of the interval's width the tolerance is worked out.
_PRECISION = 1e-4

# The tolerance is looked for up to so many times the values' spread.
_MOST_SPREADS = 1e6


def tolerance(policy: Race, leader: int) -> float:
    """Return the smallest epsilon by which no candidate is better than the leader.

    It is valid whenever the policy's certificate is, because their event does not depend on
    epsilon.
    """
    others = policy.active[policy.active != leader]
    if not others.size:
        return 0.0
    if isinstance(policy, GroupSequential):
        return policy.behind
    found, falls_short = math.inf, policy.known.needs.falls_short
    if falls_short is not None:
        spread = float(np.nan_to_num(policy.known.evidence.noise_scales()[-1]))
        found = _least_tolerance(
            lambda epsilon: falls_short(policy.known, leader, epsilon) > 0.0, spread
        )
        # Its intervals are another event, but for bounded values, and sure without any noise.
        if not (isinstance(policy.problem.noise, Bounded) or spread == 0.0):
            return found
    if policy.known.needs.intake is None:
        # In blocks, arms are compared by their differences alone.
        _, mean, radius = policy.summary(leader, 0)
        summaries = [policy.summary(int(arm), 0) for arm in others]
        highest = max(other + half for _, other, half in summaries)
        found = min(found, max(0.0, highest - (mean - radius)))
    return found


def _least_tolerance(falls_short: Callable[[float], bool], spread: float) -> float:
    """Return the epsilon at which the evidence against all others suffices, or infinity."""
    most = spread
    while falls_short(most):
        if not 0.0 < most < _MOST_SPREADS * spread:
            return math.inf
        most *= 2.0
    low, high = 0.0, most
    while high - low > _PRECISION * most:
        middle = (low + high) / 2.0
        low, high = (middle, high) if falls_short(middle) else (low, middle)
    return high
