"""Bounds on how far a race's leader is ahead of others, or may be behind."""

import math
from collections.abc import Callable

import numpy as np

from mfhpo.identification.group_sequential import GroupSequential
from mfhpo.identification.likelihood.blocks import Blocks
from mfhpo.knowledge.arrays import IntArray
from mfhpo.knowledge.noise import Bounded
from mfhpo.racing.race import Race

# To which share of the interval's width the tolerance is worked out.
_PRECISION = 1e-4

# The tolerance is looked for up to so many times the values' spread.
_MOST_SPREADS = 1e6


def tolerance(policy: Race, leader: int) -> float:
    """Return the smallest epsilon by which no candidate is better than the leader.

    It is valid whenever the certificate is, because their event does not depend on epsilon.
    """
    others = policy.active[policy.active != leader]
    if not others.size:
        return 0.0
    if isinstance(policy, GroupSequential):
        return policy.rule.behind(policy.known)
    return max(0.0, _least_tolerance(policy, leader, others, 0.0))


def lead(policy: Race, arm: int, other: int) -> float:
    """Return the least by which an arm is better than another one; negative if it may be worse.

    For one `other`, all such bounds hold together with the probability of the certificate.
    """
    if isinstance(policy, GroupSequential):
        return policy.rule.lead(policy.known, arm, other)
    ahead = seen_lead(policy, arm, other)
    if math.isnan(ahead):
        return -math.inf
    return -_least_tolerance(policy, arm, np.array([other]), -ahead)


def seen_lead(policy: Race, arm: int, other: int) -> float:
    """Return by how much an arm's mean is better, at the highest level both share; NaN for none."""
    intake, both = policy.known.needs.intake, np.array([arm, other])
    if isinstance(intake, Blocks):
        differences = intake.values[arm] - intake.values[other]
        shared = differences[~np.isnan(differences)]
        return float(shared.mean()) if shared.size else math.nan
    evidence = policy.known.evidence
    levels = np.flatnonzero((evidence.counts[both] > 0).all(axis=0))
    if not levels.size:
        return math.nan
    own, others = evidence.means(both)[:, levels[-1]].tolist()
    return float(own - others)


def _least_tolerance(policy: Race, leader: int, others: IntArray, least: float) -> float:
    """Return the epsilon, from `least` on, by which none of the others is better than a leader."""
    known, found = policy.known, math.inf
    if (falls_short := known.needs.falls_short) is not None:
        spread = float(np.nan_to_num(known.evidence.noise_scales()[-1]))
        found = _first_epsilon(
            lambda epsilon: falls_short(known, leader, others, epsilon) > 0.0, spread, least
        )
        # Its intervals are another event, but for bounded values, and sure without any noise.
        if not (isinstance(policy.problem.noise, Bounded) or spread == 0.0):
            return found
    # In blocks, arms are compared by their differences alone.
    if known.needs.intake is None and known.bias is not None:
        found = min(found, -float(known.evidence.leads(leader, others, known.bias).min()))
    return found


def _first_epsilon(falls_short: Callable[[float], bool], spread: float, least: float) -> float:
    """Return the epsilon from `least` on at which the evidence suffices, or infinity."""
    most = spread
    while falls_short(least + most):
        if not 0.0 < most < _MOST_SPREADS * spread:
            return math.inf
        most *= 2.0
    low, high = 0.0, most
    while high - low > _PRECISION * most:
        middle = (low + high) / 2.0
        low, high = (middle, high) if falls_short(least + middle) else (low, middle)
    return least + high
