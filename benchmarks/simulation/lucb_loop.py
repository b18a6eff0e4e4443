"""A whole race of LUCB in one loop, which numba can compile, by the decisions of the product."""

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mfhpo.identification import explore
from mfhpo.identification.explore import (
    TARGET_ONLY,
    Cells,
    Duel,
    Rules,
    commit,
    explored,
    out_of_the_race,
    top_two,
    weight_of_a_pull,
)
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray

# What the time in the published radius counts; 0 stands for another radius.
PULLS, ROUNDS = 1, 2


class Played(NamedTuple):
    """A race under way, for `run_race`; every array is written to."""

    cells: Cells  # what is known; `counts` and `seen` are one array
    active: BoolArray  # arms in the race, shape (K,)
    by: IntArray  # by which arm the others were eliminated, shape (K,)
    committed: IntArray  # commitments of EXPLORE-B, shape (K,)
    clock: IntArray  # pulls, and M-ths of explorations so far, shape (2,)
    widths: FloatArray  # radii by count, shape (M, N); of the published radius without `growth`
    tape: FloatArray  # sums of the first ``start + 1``, ``start + 2``, ... values, shape (K, M, B)
    start: IntArray  # number of values before the tape, shape (K, M)
    ready: IntArray  # number of values on the tape, shape (K, M)


def _target_bounds_of(cells: Cells, bounds: FloatArray, arm: int) -> tuple[float, float]:
    """Bounds on the target mean of one arm; quicker than `target_bounds` once it is compiled."""
    low, high = -math.inf, math.inf
    for m in range(len(bounds)):
        half = cells.radii[arm, m] + bounds[m]
        low = max(low, cells.means[arm, m] - half)
        high = min(high, cells.means[arm, m] + half)
    return low, high


def unseen(rules: Rules, counts: IntArray, active: BoolArray) -> tuple[int, int]:
    """The first usable (arm, fidelity) without a pull, cheapest first; (-1, -1) if none."""
    first = len(rules.bounds) - 1 if rules.explore == TARGET_ONLY else 0
    for m in range(first, len(rules.bounds)):
        missing = np.flatnonzero(active & (counts[:, m] == 0))
        if rules.usable[m] and missing.size:
            return int(missing[0]), m
    return -1, -1


# The published radius.


def growth(level: float, time: float) -> float:
    """sqrt(log(4 t^4 / level)): with level = delta / (K M) that is sqrt(log(L t^4 / delta))."""
    return math.sqrt(math.log(4.0 / level) + 4.0 * math.log(max(time, 1.0)))


def time_of(rules: Rules, schedule: int, pulls: int, explorations: int) -> float:
    """The t of the published radius; a round is two explorations."""
    if schedule == PULLS:
        return float(pulls)
    return explorations / (2.0 * len(rules.bounds))


# The whole race.


def run_race(
    rules: Rules, race: Played, schedule: int, level: float, most: float
) -> tuple[int, int]:
    """Run a race until it is over, or until a value or a radius is missing.

    Returns the pull whose value is missing. At the end (or after `most` pulls) that is -1 and the
    certified arm, or -1 without one. `level` is the error probability of one cell, which the
    published radius needs.
    """
    cells = race.cells
    counts, radii = cells.counts, cells.radii
    lows, highs = np.full(len(counts), -np.inf), np.full(len(counts), -np.inf)
    for k in range(len(counts)):
        if race.active[k]:
            lows[k], highs[k] = _target_bounds_of(cells, rules.bounds, k)
    while True:
        if schedule:
            grown = growth(level, time_of(rules, schedule, race.clock[0], race.clock[1]))
            for k in range(len(counts)):
                if race.active[k]:
                    for m in range(counts.shape[1]):
                        radii[k, m] = race.widths[m, counts[k, m]] * grown
                    lows[k], highs[k] = _target_bounds_of(cells, rules.bounds, k)
        best, gone = out_of_the_race(lows, highs, race.active)
        if gone.any():
            race.active[gone], race.by[gone] = False, best
            lows[gone] = highs[gone] = -np.inf
        if race.active.sum() < 2:
            return -1, -1
        leader, rival = top_two(highs, counts)
        if lows[leader] >= highs[rival] - rules.epsilon:  # Algorithm 1, Line 3
            return -1, leader
        arms = leader, rival
        duel = Duel(rules, cells, lows, highs, arms, race.committed)
        commit(duel)
        arm, m = -1, -1
        if schedule and counts.min() == 0:
            arm, m = unseen(rules, counts, race.active)
        if arm < 0:
            arm, m = explored(duel, race.clock[1])
        count = counts[arm, m] + 1
        at = count - race.start[arm, m]
        if at > race.ready[arm, m] or count >= race.widths.shape[1]:
            return arm, m
        if race.clock[0] >= most:
            return -1, -1
        race.clock[0] += 1
        race.clock[1] += weight_of_a_pull(rules, race.committed[arm])
        counts[arm, m] = count
        cells.means[arm, m] = race.tape[arm, m, at - 1] / count
        if not schedule:
            radii[arm, m] = race.widths[m, count]
            lows[arm], highs[arm] = _target_bounds_of(cells, rules.bounds, arm)


HELPERS: tuple[Callable[..., Any], ...] = (
    _target_bounds_of,
    unseen,
    growth,
    time_of,
    *(function for _, function in inspect.getmembers(explore, inspect.isfunction)),
)
"""What `run_race` calls, for the compiler."""
