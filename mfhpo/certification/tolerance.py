"""The tolerance that holds for a race's leader, as far as it goes."""

import math

from mfhpo.identification.block_elimination import BlockElimination
from mfhpo.identification.group_sequential import GroupSequential
from mfhpo.identification.likelihood.likelihood_ratio import LikelihoodRatioPolicy
from mfhpo.knowledge.noise import Bounded
from mfhpo.racing.race import RacingPolicy

# To which share of the interval's width the tolerance is worked out.
_PRECISION = 1e-4

# The tolerance is looked for up to so many times the values' spread.
_MOST_SPREADS = 1e6


def tolerance(policy: RacingPolicy, leader: int) -> float:
    """Return the smallest epsilon by which no candidate is better than the leader.

    It is valid whenever the policy's certificate is, because their event does not depend on
    epsilon.
    """
    others = policy.active[policy.active != leader]
    if not others.size:
        return 0.0
    if isinstance(policy, GroupSequential):
        return policy.behind
    found = math.inf
    if isinstance(policy, (BlockElimination, LikelihoodRatioPolicy)):
        found = _least_tolerance(policy, leader)
        # Its intervals are another event, but for bounded values, and sure without any noise.
        if not (isinstance(policy.problem.noise, Bounded) or policy.spread == 0.0):
            return found
    if not isinstance(policy, BlockElimination):
        # In blocks, arms are compared by their differences alone.
        _, mean, radius = policy.summary(leader, 0)
        summaries = [policy.summary(int(arm), 0) for arm in others]
        highest = max(other + half for _, other, half in summaries)
        found = min(found, max(0.0, highest - (mean - radius)))
    return found


def _least_tolerance(policy: BlockElimination | LikelihoodRatioPolicy, leader: int) -> float:
    """Return the epsilon at which the evidence against all others suffices, or infinity."""
    most = spread = policy.spread
    while policy.falls_short(leader, most) > 0.0:
        if not 0.0 < most < _MOST_SPREADS * spread:
            return math.inf
        most *= 2.0
    low, high = 0.0, most
    while high - low > _PRECISION * most:
        middle = (low + high) / 2.0
        falls_short = policy.falls_short(leader, middle) > 0.0
        low, high = (middle, high) if falls_short else (low, middle)
    return high
