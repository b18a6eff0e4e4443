"""Plays of elimination for reward, fast: in blocks of rounds."""

import math

import numpy as np

from benchmarks.simulation.sums import RunningSums, capital_of, take_sums
from mfhpo.knowledge.arrays import IntArray
from mfhpo.regret import MFElimination


def play(policy: MFElimination, running_sums: RunningSums, capital: float | None = None) -> None:
    """Play until the next play would exceed the capital: the same as ask and tell, but fast.

    See `benchmarks.simulation.mf_ucb.play`; the budget sets when exploring ends.
    """
    limit = capital_of(policy, capital)
    target = policy.problem.target
    while (arms := policy.active).size:
        explores = policy.rule.explores(policy.known)
        explores &= policy.known.spending.of(target) <= policy.budget - policy.cost
        fidelity = target if explores else policy.rule.played
        most = _affordable(policy, fidelity, limit)
        if most < 1:
            return
        counts = policy.known.evidence.counts[arms, fidelity]
        if explores:
            totals = _filled(counts, policy.rule.needed, most)
        else:
            first = int(policy.known.evidence.counts[:, fidelity].sum())
            turns = (first + np.arange(min(most, len(arms)))) % len(arms)
            totals = counts + most // len(arms)
            totals[turns[: most % len(arms)]] += 1
        _tell_block(policy, running_sums, arms, fidelity, totals)
        policy.course.judge(target)


def _affordable(policy: MFElimination, fidelity: int, limit: float) -> int:
    """Number of plays until the limit, or until the assumed budget is spent."""
    cost = policy.known.spending.of(fidelity)
    most = math.floor((limit - policy.cost) / cost)
    if math.isinf(policy.budget):
        most = min(most, math.ceil((policy.rule.assumed - policy.cost) / cost))
    return most


def _tell_block(
    policy: MFElimination,
    running_sums: RunningSums,
    arms: IntArray,
    fidelity: int,
    totals: IntArray,
) -> None:
    """Draw values until the arms have as many as in `totals`, shape (n,)."""
    counts = policy.known.evidence.counts[arms, fidelity]
    sums = policy.known.evidence.sums[arms, fidelity]
    for count, total in sorted(set(zip(counts.tolist(), totals.tolist(), strict=True))):
        if total > count:
            rows = np.flatnonzero((counts == count) & (totals == total))
            wanted = np.array([total])
            sums[rows] = running_sums(arms[rows], fidelity, count, sums[rows], wanted)[:, 0]
    take_sums(policy, arms, fidelity, totals, sums)


def _filled(counts: IntArray, needed: int, most: int) -> IntArray:
    """Counts after `most` more values at most, each for an arm with the fewest, up to `needed`."""
    totals = np.maximum(counts, needed)
    if int((totals - counts).sum()) <= most:
        return totals
    low, high = int(counts.min()), needed
    while high - low > 1:
        middle = (low + high) // 2
        if int(np.maximum(middle - counts, 0).sum()) <= most:
            low = middle
        else:
            high = middle
    totals = np.maximum(counts, low)
    rest = most - int((totals - counts).sum())
    totals[np.flatnonzero(totals == low)[:rest]] += 1
    return totals
