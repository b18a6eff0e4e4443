"""Many values of an arm at once, given their sum: what a race learns from them, without spreads."""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mfhpo._validation import check_count
from mfhpo.identification.gradient import Gradient
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.problem import Pull, check_pull
from mfhpo.racing.race import Race

# Arms (n,), fidelity, number of their values so far, sums of these (n,), and the numbers of values
# at which the sums are wanted (T,); gives the sums, shape (n, T). See `Instance.running_sums`.
RunningSums: TypeAlias = Callable[[IntArray, int, int, FloatArray, IntArray], FloatArray]


def needs_values(policy: Race) -> bool:
    """Return whether the rules of a race need each value, and not only counts and sums."""
    evidence = policy.known.evidence
    return (
        policy.piloting
        or policy.problem.costs is None
        or evidence.noise.is_estimated
        or evidence.noise.widened
        or any(one.needs_squares or one.needs_prediction_errors for one in evidence._radii)
    )


def tell_sum(policy: Race, pull: Pull, count: int, total: float) -> None:
    """Tell `count` values of one pull at once, given their sum; the rules are checked once.

    A ValueError says that the rules need each value: then tell them one by one.
    """
    check_pull(pull, policy.problem)
    check_count("count", count, 1)
    if needs_values(policy):
        raise ValueError(
            "sums need declared bias, costs, epsilon and noise, and a radius that does not depend "
            "on the values; tell the values one by one."
        )
    arm = np.array([pull.arm])
    counts = policy.known.evidence.counts[arm, pull.fidelity] + count
    sums = policy.known.evidence.sums[arm, pull.fidelity] + total
    if isinstance(policy.rule, Gradient):
        policy.rule.told_at_once = count
    take_sums(policy, arm, pull.fidelity, counts, sums)
    policy.known.told += 1
    policy.known.needs.note(policy.known, pull.arm)
    policy.course.audit_bias(pull.fidelity)
    policy.course.judge(pull.fidelity)
    if isinstance(policy.rule, Gradient):
        policy.rule.told_at_once = 1


def take_sums(
    policy: Race, arms: IntArray, fidelity: int, counts: IntArray, sums: FloatArray
) -> None:
    """Replace counts and sums of some arms at a fidelity, and pay for what is new."""
    evidence = policy.known.evidence
    if policy.certifies:
        # Sums do not show the spread that a declared scale is compared with.
        policy.known.waits = False
        evidence.noise._audits = []
    pulled = int((counts - evidence.counts[arms, fidelity]).sum())
    evidence._statistics.counts[arms, fidelity] = counts
    evidence._statistics.sums[arms, fidelity] = sums
    paid = pulled * policy.known.spending.of(fidelity)
    policy.known.pulls += pulled
    policy.known.spending.paid += paid
    policy.known.spending.sums[fidelity] += paid
    policy.known.spending.counts[fidelity] += pulled


def radius_after(policy: Race, counts: IntArray, fidelity: int) -> FloatArray:
    """The radius after so many values, where it depends on nothing else; any shape."""
    return policy.known.evidence._radii[fidelity](counts, policy.known.evidence.noise.level)


def capital_of(policy: Race, capital: float | None) -> float:
    """Return what may be spent, or raise where a block of plays is not the same as asking."""
    if needs_values(policy):
        raise ValueError(
            "blocks of plays need declared bias, costs and noise (SubGaussian or Bounded); use ask "
            "and tell."
        )
    limit = policy.budget if capital is None else min(policy.budget, float(capital))
    if not limit < math.inf:
        raise ValueError("capital must be finite where the policy has no budget.")
    return limit
