"""The inner loop of MF-UCB: plays among a few candidates, exactly as among all arms.

Written in plain Python that numba can compile. Plain Python is given lists, which it reads faster
than arrays; numba is given arrays. Both make the same plays.
"""

import math
from typing import Any

# Why the loop ended: the candidates are to be chosen anew, the next value of a cell is needed, or
# the next play exceeds the capital.
STALE, DRAWS, SPENT = 0, 1, 2


def play_candidates(
    arms: Any,
    counts: Any,
    sums: Any,
    centres: Any,
    slopes: Any,
    ceilings: Any,
    zeta: Any,
    widths: Any,
    gamma: Any,
    costs: Any,
    values: Any,
    used: Any,
    filled: Any,
    order: Any,
    played: int,
    pulls: int,
    cost: float,
    capital: float,
    horizon: int,
    excluded: float,
) -> tuple[int, int, int, float, int]:
    """Play MF-UCB among candidates while one of them is surely the best.

    It is Algorithm 1 of Kandasamy et al. (2016). The upper bound of candidate j at time t is the
    smallest ``centres + slopes sqrt(log t)`` over the fidelities (Eq. 3). Its value at the horizon
    is a ceiling for all times until then: a candidate is looked at only if its ceiling exceeds the
    best bound so far, and an arm outside the candidates cannot be the best while the best bound
    exceeds the largest of their ceilings.

    Parameters
    ----------
    arms
        The candidates, increasing, shape (q,).
    counts, sums, centres, slopes
        Per candidate and fidelity, shape (q M,): number and sum of the values, mean plus zeta
        (infinite without a value), and width over the root of the count (0 without a play).
    ceilings
        Upper bounds of the candidates at the horizon, shape (q,).
    zeta, widths, gamma, costs
        Bias bounds, sigma sqrt(2 rho), thresholds (Eq. 4; infinite where a fidelity is never
        played) and costs, shape (M,).
    values, used, filled
        What the next plays of a cell make of its sum, shape (K M, n); how many of them were used,
        and how many there are, shape (K M,). These are arrays, also for plain Python.
    order, played
        Array that notes the cells in the order of their plays, and how many it has.
    pulls, cost, capital
        Number of plays and cost so far, of all arms; no play may exceed the capital.
    horizon, excluded
        Last time t at which the ceilings hold, and the largest ceiling of the other arms.

    Returns
    -------
    tuple
        Why the loop ended, the cell to be played next (-1 unless known), pulls, cost and played.
    """
    n_fidelities = len(costs)
    target = n_fidelities - 1
    last_root = math.sqrt(math.log(horizon))
    chosen = 0
    while pulls < horizon and played < len(order):
        root = math.sqrt(math.log(pulls + 1))
        best = -math.inf
        # The arm played last is still among the best: seen first, it spares a look at most others.
        latest = chosen
        for turn in range(-1, len(arms)):
            candidate = latest if turn < 0 else turn
            if ceilings[candidate] >= best:
                first = candidate * n_fidelities
                bound = centres[first] + slopes[first] * root
                for cell in range(first + 1, first + n_fidelities):
                    other = centres[cell] + slopes[cell] * root
                    if other < bound:
                        bound = other
                if bound > best or (bound == best and candidate < chosen):
                    best = bound
                    chosen = candidate
        if best <= excluded:
            return STALE, -1, pulls, cost, played

        first = chosen * n_fidelities
        fidelity = 0
        while fidelity < target:
            cell = first + fidelity
            unsure = counts[cell] == 0 or slopes[cell] * root >= gamma[fidelity]
            if unsure and gamma[fidelity] < math.inf:
                break
            fidelity += 1

        place = arms[chosen] * n_fidelities + fidelity
        if costs[fidelity] > capital - cost:
            return SPENT, place, pulls, cost, played
        if used[place] == filled[place]:
            return DRAWS, place, pulls, cost, played

        cell = first + fidelity
        sums[cell] = float(values[place, used[place]])
        used[place] += 1
        counts[cell] += 1
        centres[cell] = sums[cell] / counts[cell] + zeta[fidelity]
        slopes[cell] = widths[fidelity] / math.sqrt(counts[cell])
        ceilings[chosen] = centres[first] + slopes[first] * last_root
        for cell in range(first + 1, first + n_fidelities):
            other = centres[cell] + slopes[cell] * last_root
            if other < ceilings[chosen]:
                ceilings[chosen] = other
        order[played] = place
        played += 1
        pulls += 1
        cost += costs[fidelity]
    return STALE, -1, pulls, cost, played
