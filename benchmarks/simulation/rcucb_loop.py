"""Rounds of RCUCB in one loop, which numba can compile, by the decisions of the product."""

import inspect
import math
from typing import NamedTuple

import numpy as np

from mfhpo.censored import kernel
from mfhpo.censored.kernel import (
    LIMIT,
    Ceilings,
    Rule,
    Tallies,
    choose,
    forget,
    is_refinable,
    record,
)
from mfhpo.knowledge.arrays import FloatArray, IntArray

# Why the loop ended: all rounds are played, the next outcome of an arm is needed, or the pair that
# was played is known well enough to be refined.
DONE, DRAWS, REFINE = 0, 1, 2


class Block(NamedTuple):
    """Outcomes that were drawn ahead, and notes of the plays that they are for."""

    gains: FloatArray  # the arms' next scaled gains, (n, size)
    outcomes: FloatArray  # the rewards and seconds that these are made of, (n, size, 2)
    used: IntArray  # how many of them were used, (n,)
    filled: IntArray  # how many there are, (n,)
    arms: IntArray  # of each play, (rounds,)
    notes: FloatArray  # its limit, reward and seconds, NaN and infinite if stopped, (rounds, 3)


def play_rounds(
    tallies: Tallies, rule: Rule, ceilings: Ceilings, block: Block, played: int, before: int
) -> tuple[int, int, int]:
    """Play rounds until all are played, or something is needed first.

    `played` plays of this block were made already, `before` earlier ones. Returns why the loop
    ended, the plays of this block, and the arm that this is about, or -1.
    """
    extra = np.zeros(tallies.cells.shape[:2])
    all_extra = np.zeros(len(tallies.points))
    while played < len(block.arms):
        arm, point = choose(tallies, rule, ceilings, extra, all_extra, before + played + 1)
        if arm < 0:
            return DONE, played, -1
        place = block.used[arm]
        if place == block.filled[arm]:
            return DRAWS, played, arm
        limit = tallies.cells[arm, point, LIMIT]
        gain = block.gains[arm, place]
        reward = block.outcomes[arm, place, 0]
        consumption = block.outcomes[arm, place, 1]
        block.used[arm] += 1
        if consumption > limit:
            gain = 0.0
            reward = math.nan
            consumption = math.inf
        record(tallies, rule, arm, limit, gain, consumption)
        forget(tallies, ceilings, arm, limit)
        block.arms[played] = arm
        block.notes[played, 0] = limit
        block.notes[played, 1] = reward
        block.notes[played, 2] = consumption
        played += 1
        if rule.smoothness > 0.0 and is_refinable(tallies, rule, ceilings, arm, point):
            return REFINE, played, arm
    return DONE, played, -1


HELPERS = tuple(function for _, function in inspect.getmembers(kernel, inspect.isfunction))
"""What the loop calls, for the compiler."""
