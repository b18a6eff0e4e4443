"""Whole rounds of elimination at once: the rule along a block of pulls."""

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.sums import needs_values, radius_after, take_sums
from mfhpo.identification.elimination import LevelByLevel
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.racing.race import Race


@dataclass(frozen=True)
class Rounds:
    """What to simulate next: the fidelity, and the remaining arms, shape (n,).

    Each of them already has `done` pulls there, with `sums` of their values, shape (n,); the phase
    ends after `until` pulls of each, or with the race where that is None.
    """

    fidelity: int
    arms: IntArray
    done: int
    sums: FloatArray
    until: int | None


def plan_rounds(policy: Race) -> Rounds:
    """Return what to pull next when all remaining arms are pulled the same number of times.

    A ValueError says that the rules need each value, there is a budget, or arms were pulled
    unequally: then use `ask` and `tell`.
    """
    arms, evidence, rule = policy.active, policy.known.evidence, rule_of(policy)
    if needs_values(policy):
        raise ValueError(
            "rounds need declared bias, costs, epsilon and noise, and a radius that does not "
            "depend on the values; use ask and tell."
        )
    if math.isfinite(policy.budget):
        raise ValueError(f"rounds need budget=None, got {policy.budget:g}; use ask and tell.")
    winner = policy.winner
    if winner is not None:
        fidelity, arms = policy.problem.target, np.array([winner])
        done = int(evidence.counts[winner, fidelity])
        return Rounds(
            fidelity,
            arms,
            done,
            evidence.sums[arms, fidelity],
            max(policy.known.measure, done + 1),
        )
    fidelity, _ = rule.phase(policy.known, evidence.counts)
    counts = evidence.counts[arms, fidelity]
    if counts.min() != counts.max():
        raise ValueError("rounds need equal counts of all remaining arms; use ask and tell.")
    sums = evidence.sums[arms, fidelity]
    return Rounds(fidelity, arms, int(counts[0]), sums, _phase_length(policy, fidelity))


def rule_of(policy: Race) -> LevelByLevel:
    """Return the rule of a race that eliminates level by level."""
    assert isinstance(policy.rule, LevelByLevel)
    return policy.rule


def _phase_length(policy: Race, fidelity: int) -> int | None:
    """Pulls after which every arm is known well enough there; None at the last fidelity."""
    rule = rule_of(policy)
    if fidelity == rule.fidelities[-1]:
        return None
    length = float(policy.known.evidence.pulls_until(fidelity, rule.alpha[fidelity] / 4.0))
    return int(length) if math.isfinite(length) else None


def tell_rounds(policy: Race, totals: IntArray, sums: FloatArray) -> None:
    """Tell several rounds at once; the same as telling them one by one, but fast.

    `totals` are the pulls of each remaining arm after each round, shape (T,), increasing; steps of
    more than one check the rule less often, which keeps it valid. `sums` are those of the first
    ``totals[t]`` values of each arm of `plan_rounds`, shape (n, T). Columns after the end of the
    race are ignored.
    """
    plan = plan_rounds(policy)
    fidelity, arms = plan.fidelity, plan.arms
    half = radius_after(policy, totals, fidelity)
    margin = float(rule_of(policy).margins[fidelity])
    means = sums / totals
    if len(arms) > 1:
        exits, by, excess, end = first_eliminations(means, half, margin, policy.epsilon)
    else:
        exits = by = np.array([-1])
        excess, end = np.zeros(1), len(totals) - 1
    last = np.where(exits >= 0, exits, end)
    take_sums(policy, arms, fidelity, totals[last], sums[np.arange(len(arms)), last])
    gone = exits >= 0
    policy.known.roster.eliminate(arms[gone], arms[by[gone]], fidelity, excess[gone])
    policy.course.audit_bias(fidelity)
    policy.course.judge(fidelity)


def first_eliminations(
    means: FloatArray, half: FloatArray, margin: float, epsilon: float
) -> tuple[IntArray, IntArray, FloatArray, int]:
    """When each arm of a block of rounds is eliminated, and where the block ends.

    The outcome equals that of applying the rule after every round to the arms that are left.
    `means` has shape (n, T) with n >= 2, `half` shape (T,). Returns, for each arm, the round at
    which it is eliminated (-1 if it is not), by which arm, and by how much that arm's lower bound
    exceeded its upper bound; and the last round used: T - 1, or the one at which the race ended.
    """
    n_arms, n_rounds = means.shape
    exits = np.full(n_arms, -1, dtype=np.int64)
    by = np.full(n_arms, -1, dtype=np.int64)
    excess = np.zeros(n_arms)
    alive = np.arange(n_arms)
    start = 0
    while True:
        block = means[alive, start:] if len(alive) < n_arms or start else means
        width = half[start:]
        columns = np.arange(block.shape[1])
        leader = block.argmax(axis=0)
        best = block[leader, columns]
        out = block <= best - (margin + 2.0 * width)
        out[leader, columns] = False
        first = np.where(out.any(axis=1), out.argmax(axis=1), len(columns))
        # Someone who left earlier may lead later: what follows must be judged without them.
        gone_leader = first[leader] < columns
        limit = int(gone_leader.argmax()) if gone_leader.any() else len(columns)
        stop = None
        if epsilon > 0.0:
            stop = _first_stop(block, first, leader, best - 2.0 * width + epsilon - margin, limit)
            if stop is not None:
                limit = stop + 1
        leaving = first < limit
        at = first[leaving]
        exits[alive[leaving]] = start + at
        by[alive[leaving]] = alive[leader[at]]
        excess[alive[leaving]] = best[at] - 2.0 * width[at] - block[leaving, at]
        alive = alive[~leaving]
        if stop is not None:
            return exits, by, excess, start + stop
        if len(alive) == 1:
            return exits, by, excess, int(exits.max())
        if start + limit == n_rounds:
            return exits, by, excess, n_rounds - 1
        start += limit


def _first_stop(
    block: FloatArray, first: IntArray, leader: IntArray, reach: FloatArray, limit: int
) -> int | None:
    """First of the first `limit` columns where no remaining arm but the leader exceeds reach."""
    columns = np.arange(limit)
    others = np.where(first[:, None] <= columns, -np.inf, block[:, :limit])
    others[leader[:limit], columns] = -np.inf
    reached = others.max(axis=0) <= reach[:limit]
    return int(reached.argmax()) if reached.any() else None
