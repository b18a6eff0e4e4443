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

# Remark A.1: an arm's sweeps end once so large a share of so many pulls by the index is at one
# fidelity.
_CONVERGED_SHARE = 0.9
_CONVERGED_PULLS = 200

# A fidelity is left at this share of the radius at which it costs what the target needs to
# resolve its bias; see `lowest_radius`.
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


# The two arms.


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
    others = highs.copy()
    first = int(np.argmax(others))
    others[first] = -np.inf
    second = int(np.argmax(others))
    others[second] = -np.inf
    if highs[first] > highs[second] > others.max():
        return first, second
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


# The fidelity.


def usable_fidelities(costs: FloatArray) -> BoolArray:
    """Return which fidelities cost less than every one with a larger index, shape (M,)."""
    least_above = np.append(np.minimum.accumulate(costs[:0:-1])[::-1], np.inf)
    return np.asarray(costs < least_above)


def assumed_means(rules: Rules, lows: FloatArray, highs: FloatArray) -> tuple[float, float]:
    """Return bounds on the two best means, declared or the race's (Section 3.2.2)."""
    upper, lower = rules.best_at_most, rules.second_at_least
    if math.isnan(upper):
        upper = float(highs.max())
    if math.isnan(lower):
        others = lows.copy()
        others[np.argmax(lows)] = -np.inf
        lower = float(others.max())
    return upper, lower


def _gap(
    rules: Rules, cells: Cells, arm: int, m: int, leads: bool, means: tuple[float, float]
) -> float:
    """Return the estimated gap of an arm at a fidelity, by its role (Section 3.2.2)."""
    if leads:
        return float(cells.means[arm, m]) - float(rules.bounds[m]) - means[1]
    return means[0] - float(cells.means[arm, m]) - float(rules.bounds[m])


def _by_index(
    rules: Rules,
    cells: Cells,
    arm: int,
    leads: bool,
    means: tuple[float, float],
    low: float,
    high: float,
) -> int:
    """Return the fidelity with the largest f-UCB (EXPLORE-A).

        f-UCB_m = gap_m / sqrt(lambda_m) + 2 sigma_m sqrt(2 log(N) / (lambda_m N_m))

    Without values at m, the gap is the largest that the bias bounds allow. While a first value is
    under way, other fidelities come first.
    """
    logarithm = 2.0 * math.log(max(cells.counts[arm].sum(), 1))
    most = high - means[1] if leads else means[0] - low
    best, largest, fewest = 0, -math.inf, cells.counts[arm].max() + 1
    for m in range(len(rules.bounds)):
        if not rules.usable[m]:
            continue
        count = cells.counts[arm, m]
        index = most / rules.roots[m]
        if cells.seen[arm, m] and math.isfinite(rules.scales[m]):
            index = _gap(rules, cells, arm, m, leads, means) / rules.roots[m]
            index += rules.scales[m] * math.sqrt(logarithm / count) / rules.roots[m]
        elif count and not cells.seen[arm, m]:
            index = -math.inf
        if index > largest or (index == largest == -math.inf and count < fewest):
            best, largest, fewest = m, index, count
    return best


def _by_radius(rules: Rules, cells: Cells, arm: int) -> int:
    """Return the cheapest fidelity with a radius of its bias bound or more (EXPLORE-C)."""
    for m in range(len(rules.bounds) - 1):
        if rules.usable[m] and cells.radii[arm, m] >= rules.bounds[m]:
            return m
    return len(rules.bounds) - 1


def choose_fidelity(
    rules: Rules,
    cells: Cells,
    arm: int,
    leads: bool,
    committed: int,
    means: tuple[float, float],
    low: float,
    high: float,
) -> int:
    """Return the fidelity that the exploration favours for an arm (Algorithms 2 and 4)."""
    if committed >= 0:
        return committed
    if rules.explore == TARGET_ONLY:
        return len(rules.bounds) - 1
    if rules.explore == BY_RADIUS:
        return _by_radius(rules, cells, arm)
    sweeps = rules.explore == BY_SWEEP
    counts = cells.counts[arm][rules.usable]
    if rules.explore == INDEX_AND_SWEEP and committed == NOT_COMMITTED:
        # Half of the pulls are those of the sweeps that are complete, or the next sweep's.
        sweeps = 2 * len(counts) * counts.min() < counts.sum()
    if sweeps:
        return int(np.flatnonzero(rules.usable)[np.argmin(counts)])
    return _by_index(rules, cells, arm, leads, means, low, high)


def commit(
    rules: Rules, cells: Cells, arm: int, leads: bool, committed: int, means: tuple[float, float]
) -> int:
    """Commit an arm to a fidelity, if it is time; return its fidelity.

    EXPLORE-B commits to the fidelity with the largest gap_m / sqrt(lambda_m) once that is

        >= 3 max_m(2 sigma_m / sqrt(lambda_m)) sqrt(log(L / delta) / N)

    with N the number of complete sweeps (Algorithm 2, Line 10; Remark A.2). With equal sigma the
    maximum is at the cheapest fidelity, as in the paper. A and B together also end the sweeps once
    the index has converged (Remark A.1).
    """
    explore = rules.explore
    if committed != NOT_COMMITTED or (explore != BY_SWEEP and explore != INDEX_AND_SWEEP):
        return committed
    seen = cells.seen[arm][rules.usable]
    sweeps = seen.min()
    if sweeps > 0:
        best, largest, widest = 0, -math.inf, 0.0
        for m in range(len(rules.bounds)):
            if not rules.usable[m]:
                continue
            share = _gap(rules, cells, arm, m, leads, means) / rules.roots[m]
            if share > largest:
                best, largest = m, share
            widest = max(widest, rules.scales[m] / rules.roots[m])
        needed = _FACTOR * widest * math.sqrt(rules.logarithm / sweeps)
        if math.isfinite(largest) and largest >= needed:
            return best
    if explore == INDEX_AND_SWEEP:
        by_index = seen.sum() - len(seen) * sweeps
        most = seen.max() - sweeps
        if by_index >= _CONVERGED_PULLS and most >= _CONVERGED_SHARE * by_index:
            return ONLY_INDEX
    return NOT_COMMITTED


def commit_both(
    rules: Rules,
    cells: Cells,
    lows: FloatArray,
    highs: FloatArray,
    arms: tuple[int, int],
    committed: IntArray,
) -> None:
    """Commit l and u to fidelities, where it is time to."""
    means = assumed_means(rules, lows, highs)
    for arm in arms:
        committed[arm] = commit(rules, cells, arm, arm == arms[0], committed[arm], means)


# The safeguard.


def lowest_radius(rules: Rules, m: int) -> float:
    """Return the radius at which a cheap fidelity is left, at 16 times the target's cost."""
    last = len(rules.bounds) - 1
    return float(_DOUBTFUL_SHARE * rules.bounds[m] * rules.roots[m] / rules.roots[last])


def _left_in_doubt(rules: Rules, cells: Cells, arm: int, m: int, exhausted: BoolArray) -> int:
    """Return the first fidelity from `m` on that is worth its cost; note those before it."""
    while m < len(rules.bounds) - 1:
        if rules.usable[m]:
            if cells.radii[arm, m] > lowest_radius(rules, m):
                break
            exhausted[m] = True
        m += 1
    return m


def _guarded(
    rules: Rules,
    cells: Cells,
    arms: tuple[int, int],
    favoured: tuple[int, int],
    lows: FloatArray,
    highs: FloatArray,
    exhausted: BoolArray,
) -> tuple[int, int]:
    """Return fidelities for l and u that may separate them, from the favoured ones upwards.

    Means at m and m' are within their radii, so LCB_l reaches at most mean_lm + radius - xi_m, and
    UCB_u at least mean_um' - radius + xi_m', unless they are better now. If that is not enough, the
    cheaper of the two fidelities gives way to the next one.
    """
    last = len(rules.bounds) - 1
    leader, rival = arms
    m = _left_in_doubt(rules, cells, leader, favoured[0], exhausted)
    n = _left_in_doubt(rules, cells, rival, favoured[1], exhausted)
    while min(m, n) < last:
        reach = cells.means[leader, m] + cells.radii[leader, m] - rules.bounds[m]
        fall = cells.means[rival, n] - cells.radii[rival, n] + rules.bounds[n]
        if max(reach, lows[leader]) > min(fall, highs[rival]) - rules.epsilon:
            break
        cheaper = min(m, n)
        exhausted[cheaper] = True
        if m == cheaper:
            m = _left_in_doubt(rules, cells, leader, m + 1, exhausted)
        if n == cheaper:
            n = _left_in_doubt(rules, cells, rival, n + 1, exhausted)
    return m, n


def steer(
    rules: Rules,
    cells: Cells,
    lows: FloatArray,
    highs: FloatArray,
    arms: tuple[int, int],
    committed: IntArray,
    exhausted: BoolArray,
) -> tuple[int, int]:
    """Return fidelities at which to explore l and u; note those that the safeguard leaves."""
    leader, rival = arms
    means = assumed_means(rules, lows, highs)
    own, other = committed[leader], committed[rival]
    m = choose_fidelity(rules, cells, leader, True, own, means, lows[leader], highs[leader])
    n = choose_fidelity(rules, cells, rival, False, other, means, lows[rival], highs[rival])
    if not rules.safeguard or rules.explore == BY_RADIUS or rules.explore == TARGET_ONLY:
        return m, n
    if rules.explore == BY_SWEEP and (own == NOT_COMMITTED or other == NOT_COMMITTED):
        return m, n
    return _guarded(rules, cells, arms, (m, n), lows, highs, exhausted)


def explored(
    rules: Rules,
    cells: Cells,
    lows: FloatArray,
    highs: FloatArray,
    arms: tuple[int, int],
    committed: IntArray,
    exhausted: BoolArray,
    explorations: int,
) -> tuple[int, int]:
    """Return the next pull: l and u take turns; an arm without pulls comes first.

    `explorations` counts M-ths of explorations, with those under way (`weight_of_a_pull`).
    Fidelities that the safeguard leaves are noted in `exhausted`.
    """
    m, n = steer(rules, cells, lows, highs, arms, committed, exhausted)
    # By index, not by role: pulling l may make it u, and it would be pulled twice.
    second = explorations // len(rules.bounds) % 2 == 1
    leads = (arms[0] > arms[1]) == second
    if cells.counts[arms[0] if leads else arms[1]].sum() > 0:
        other = arms[1] if leads else arms[0]
        if cells.counts[other].sum() == 0:
            leads = not leads
    return (arms[0], m) if leads else (arms[1], n)


def weight_of_a_pull(rules: Rules, committed: int) -> int:
    """Return a pull's M-ths of an exploration: all M, but one in a sweep."""
    sweeps = rules.explore == BY_SWEEP and committed == NOT_COMMITTED
    return 1 if sweeps else len(rules.bounds)
