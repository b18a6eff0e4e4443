"""Which two arms LUCB explores, and at which fidelity: the decisions, as plain functions.

Paper 002: Algorithms 1, 2 and 4, Remarks A.1 and A.2. The functions keep to what numba can compile.
"""

import math
from typing import NamedTuple

import numpy as np

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray

# How fidelities are chosen: EXPLORE-A, -B, -C, A and B together (Remark A.1), the target only.
BY_INDEX, BY_SWEEP, BY_RADIUS, INDEX_AND_SWEEP, TARGET_ONLY = 0, 1, 2, 3, 4

# What `committed` holds for an arm without a fidelity of its own, or whose sweeps have ended.
NOT_COMMITTED, ONLY_INDEX = -1, -2

# The 3 of Algorithm 2, Line 10: (1 + C) / (1 - C) of Remark A.2, where C is 1/2.
_FACTOR = 3.0

# Remark A.1: sweeps end once so large a share of so many pulls by the index is at one fidelity.
_CONVERGED_SHARE = 0.9
_CONVERGED_PULLS = 200

# A fidelity is left at this share of the radius at which it costs what the target needs to
# resolve its bias.
_DOUBTFUL_SHARE = 0.25


class Rules(NamedTuple):
    """What the decisions depend on besides the statistics; M is the number of fidelities."""

    explore: int  # how fidelities are chosen, one of the constants above
    bounds: FloatArray  # bias bounds xi_m, shape (M,)
    roots: FloatArray  # square roots of the costs, shape (M,)
    usable: BoolArray  # fidelities that cost less than every one with a larger index, shape (M,)
    scales: FloatArray  # twice the noise scale, shape (M,); infinite where unknown
    best_at_most: float  # assumed bound on the best mean; NaN: to be estimated
    second_at_least: float  # assumed bound on the second-best mean; NaN: to be estimated
    logarithm: float  # log(L / delta) with L = 4 K M
    epsilon: float  # tolerance
    safeguard: bool  # whether fidelities that cannot separate the leaders are left


class Cells(NamedTuple):
    """What is known about every arm at every fidelity, all of shape (K, M)."""

    counts: IntArray  # number of pulls, those under way included
    seen: IntArray  # number of values
    means: FloatArray  # means of the values, 0 where there are none
    radii: FloatArray  # confidence radii at `counts`, infinite without values


class Duel(NamedTuple):
    """The arms l and u with the two largest upper bounds, and what they are explored by."""

    rules: Rules
    cells: Cells
    lows: FloatArray  # bounds on target means, shape (K,); -inf for arms that left
    highs: FloatArray
    arms: tuple[int, int]  # l and u
    committed: IntArray  # which fidelity an arm is committed to, shape (K,); written to


def target_bounds(
    cells: Cells, bounds: FloatArray, active: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on target means (Eq. 4 and 5), shape (K,); -inf for arms that left."""
    half = cells.radii + bounds
    lows, highs = (cells.means - half).max(axis=1), (cells.means + half).min(axis=1)
    return np.where(active, lows, -np.inf), np.where(active, highs, -np.inf)


def _highest(highs: FloatArray, counts: IntArray) -> int:
    """Return the arm with the largest bound; ties go to the fewest pulls, then the first."""
    candidates = np.flatnonzero(highs == highs.max())
    if len(candidates) == 1:
        return int(candidates[0])
    return int(candidates[np.argmin(counts[candidates].sum(axis=1))])


def top_two(highs: FloatArray, counts: IntArray) -> tuple[int, int]:
    """Return arms l and u with the two largest upper bounds (Algorithm 1, Line 4)."""
    leader = _highest(highs, counts)
    others = highs.copy()
    others[leader] = -np.inf
    return leader, _highest(others, counts)


def out_of_the_race(
    lows: FloatArray, highs: FloatArray, active: BoolArray
) -> tuple[int, BoolArray]:
    """Return the arm with the largest lower bound, and which active arms are below it, (K,)."""
    best = int(np.argmax(lows))
    gone = active & (highs < lows[best])
    gone[best] = False
    return best, gone


def usable_fidelities(costs: FloatArray) -> BoolArray:
    """Return which fidelities cost less than every one with a larger index, shape (M,)."""
    least_above = np.append(np.minimum.accumulate(costs[:0:-1])[::-1], np.inf)
    return np.asarray(costs < least_above)


def _assumed_means(duel: Duel) -> tuple[float, float]:
    """Return bounds on the two best means, declared or the race's (Section 3.2.2)."""
    upper, lower = duel.rules.best_at_most, duel.rules.second_at_least
    if math.isnan(upper):
        upper = float(duel.highs.max())
    if math.isnan(lower):
        others = duel.lows.copy()
        others[np.argmax(others)] = -np.inf
        lower = float(others.max())
    return upper, lower


def _gap(duel: Duel, arm: int, m: int, means: tuple[float, float]) -> float:
    """Return the estimated gap of an arm at a fidelity, by its role (Section 3.2.2)."""
    mean, bound = float(duel.cells.means[arm, m]), float(duel.rules.bounds[m])
    return mean - bound - means[1] if arm == duel.arms[0] else means[0] - mean - bound


def _by_index(duel: Duel, arm: int) -> int:
    """Return the fidelity with the largest f-UCB (EXPLORE-A).

        f-UCB_m = gap_m / sqrt(lambda_m) + 2 sigma_m sqrt(2 log(N) / (lambda_m N_m))

    Without values at m, the gap is the largest that the bias bounds allow. While a first value is
    under way, other fidelities come first.
    """
    rules, cells, means = duel.rules, duel.cells, _assumed_means(duel)
    logarithm = 2.0 * math.log(max(cells.counts[arm].sum(), 1))
    leads = arm == duel.arms[0]
    most = duel.highs[arm] - means[1] if leads else means[0] - duel.lows[arm]
    best, largest, fewest = 0, -math.inf, cells.counts[arm].max() + 1
    for m in range(len(rules.bounds)):
        if not rules.usable[m]:
            continue
        count = cells.counts[arm, m]
        index = most / rules.roots[m]
        if cells.seen[arm, m] and math.isfinite(rules.scales[m]):
            index = _gap(duel, arm, m, means) / rules.roots[m]
            index += rules.scales[m] * math.sqrt(logarithm / count) / rules.roots[m]
        elif count and not cells.seen[arm, m]:
            index = -math.inf
        if index > largest or (index == largest == -math.inf and count < fewest):
            best, largest, fewest = m, index, count
    return best


def choose_fidelity(duel: Duel, arm: int) -> int:
    """Return the fidelity that the exploration favours for an arm (Algorithms 2 and 4)."""
    rules, cells, committed = duel.rules, duel.cells, duel.committed[arm]
    last = len(rules.bounds) - 1
    if committed >= 0:
        return int(committed)
    if rules.explore == TARGET_ONLY:
        return last
    if rules.explore == BY_RADIUS:
        # The cheapest fidelity with a radius of its bias bound or more (EXPLORE-C).
        for m in range(last):
            if rules.usable[m] and cells.radii[arm, m] >= rules.bounds[m]:
                return m
        return last
    sweeps = rules.explore == BY_SWEEP
    counts = cells.counts[arm][rules.usable]
    if rules.explore == INDEX_AND_SWEEP and committed == NOT_COMMITTED:
        # Half of the pulls are those of the sweeps that are complete, or the next sweep's.
        sweeps = 2 * len(counts) * counts.min() < counts.sum()
    if sweeps:
        return int(np.flatnonzero(rules.usable)[np.argmin(counts)])
    return _by_index(duel, arm)


def commit(duel: Duel) -> None:
    """Commit l and u to fidelities, where it is time to.

    EXPLORE-B commits to the fidelity with the largest gap_m / sqrt(lambda_m) once that is

        >= 3 max_m(2 sigma_m / sqrt(lambda_m)) sqrt(log(L / delta) / N)

    with N the number of complete sweeps (Algorithm 2, Line 10; Remark A.2). A and B together also
    end the sweeps once the index has converged (Remark A.1).
    """
    explore = duel.rules.explore
    if explore in (BY_SWEEP, INDEX_AND_SWEEP):
        for arm in duel.arms:
            if duel.committed[arm] == NOT_COMMITTED:
                duel.committed[arm] = _after_sweeps(duel, arm)


def _after_sweeps(duel: Duel, arm: int) -> int:
    rules, means = duel.rules, _assumed_means(duel)
    seen = duel.cells.seen[arm][rules.usable]
    sweeps = seen.min()
    if sweeps > 0:
        best, largest, widest = 0, -math.inf, 0.0
        for m in range(len(rules.bounds)):
            if not rules.usable[m]:
                continue
            share = _gap(duel, arm, m, means) / rules.roots[m]
            if share > largest:
                best, largest = m, share
            widest = max(widest, rules.scales[m] / rules.roots[m])
        needed = _FACTOR * widest * math.sqrt(rules.logarithm / sweeps)
        if math.isfinite(largest) and largest >= needed:
            return best
    if rules.explore == INDEX_AND_SWEEP:
        by_index = seen.sum() - len(seen) * sweeps
        most = seen.max() - sweeps
        if by_index >= _CONVERGED_PULLS and most >= _CONVERGED_SHARE * by_index:
            return ONLY_INDEX
    return NOT_COMMITTED


def _left_in_doubt(duel: Duel, arm: int, m: int) -> int:
    """Return the first fidelity from `m` on that costs at most 16 times what the target would."""
    rules, last = duel.rules, len(duel.rules.bounds) - 1
    while m < last:
        if rules.usable[m]:
            lowest = _DOUBTFUL_SHARE * rules.bounds[m] * rules.roots[m] / rules.roots[last]
            if duel.cells.radii[arm, m] > lowest:
                break
        m += 1
    return m


def _guarded(duel: Duel, m: int, n: int) -> tuple[int, int]:
    """Return fidelities for l and u that may separate them, from the favoured ones upwards.

    Means at m and n are within their radii, so LCB_l reaches at most mean_lm + radius - xi_m, and
    UCB_u at least mean_un - radius + xi_n. If that is not enough, the cheaper one gives way.
    """
    rules, cells, (leader, rival) = duel.rules, duel.cells, duel.arms
    m, n = _left_in_doubt(duel, leader, m), _left_in_doubt(duel, rival, n)
    while min(m, n) < len(rules.bounds) - 1:
        reach = cells.means[leader, m] + cells.radii[leader, m] - rules.bounds[m]
        fall = cells.means[rival, n] - cells.radii[rival, n] + rules.bounds[n]
        if max(reach, duel.lows[leader]) > min(fall, duel.highs[rival]) - rules.epsilon:
            break
        cheaper = min(m, n)
        if m == cheaper:
            m = _left_in_doubt(duel, leader, m + 1)
        if n == cheaper:
            n = _left_in_doubt(duel, rival, n + 1)
    return m, n


def steer(duel: Duel) -> tuple[int, int]:
    """Return fidelities at which to explore l and u."""
    rules, (leader, rival) = duel.rules, duel.arms
    m, n = choose_fidelity(duel, leader), choose_fidelity(duel, rival)
    if not rules.safeguard or rules.explore in (BY_RADIUS, TARGET_ONLY):
        return m, n
    least = min(duel.committed[leader], duel.committed[rival])
    sweeps = rules.explore == BY_SWEEP and least == NOT_COMMITTED
    return (m, n) if sweeps else _guarded(duel, m, n)


def explored(duel: Duel, explorations: int) -> tuple[int, int]:
    """Return the next pull: l and u take turns by M-ths of explorations; unseen arms first."""
    (leader, rival), counts = duel.arms, duel.cells.counts
    m, n = steer(duel)
    # By index, not by role: pulling l may make it u, and it would be pulled twice.
    second = explorations // len(duel.rules.bounds) % 2 == 1
    leads = (leader > rival) == second
    of_leader, of_rival = counts[leader].sum(), counts[rival].sum()
    if (of_leader == 0) != (of_rival == 0):
        leads = of_leader == 0
    return (leader, m) if leads else (rival, n)


def weight_of_a_pull(rules: Rules, committed: int) -> int:
    """Return a pull's M-ths of an exploration: all M, but one in a sweep."""
    sweeps = rules.explore == BY_SWEEP and committed == NOT_COMMITTED
    return 1 if sweeps else len(rules.bounds)
