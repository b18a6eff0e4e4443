"""Whole rounds at once: the elimination rule along a block of pulls, for simulations."""

from dataclasses import dataclass

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray


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
