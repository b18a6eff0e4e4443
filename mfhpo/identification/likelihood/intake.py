"""What rules in blocks are given: values by block, the order within one, failures, void blocks."""

import math
from collections.abc import Iterator
from functools import lru_cache
from numbers import Integral

import numpy as np

from mfhpo.identification.likelihood.blocks import Blocks
from mfhpo.knowledge.arrays import IntArray
from mfhpo.problem import Observation, Pull
from mfhpo.racing.rule import Known

_STREAM = 1  # of random numbers, apart from others that are drawn from a seed and a number


class BlockIntake:
    """Keeps the values of a race whose arms are compared in blocks, which share their replicate.

    A replicate may be bad for everybody. An arm that fails in a block where nobody has a value is
    not evaluated there again before another one has a value. If all arms that are compared have
    failed there, the block is void: it takes no part from then on, whatever comes later.

    An arm that fails in a block where another has a value is evaluated there once more. After a
    second failure it has no value there for good, and is compared in the other blocks. To
    `mfhpo.racing.parts.failures`, both are one failure: a replicate is no worse for being tried
    twice.

    Failures in void blocks make no arm leave, unless the void blocks alone are too many by
    `mfhpo.racing.parts.failures`: then the objective fails, and the race must end.

    Parameters
    ----------
    n_arms
        Number of arms.
    in_blocks
        Whether pulls carry a block; else an arm's n-th value is kept as if in the n-th one.
    in_order
        Whether the race learns values by block, without a gap: what takes long may be poor.
    """

    def __init__(self, n_arms: int, in_blocks: bool = True, in_order: bool = False) -> None:
        self.blocks = Blocks(n_arms)
        self.in_blocks = in_blocks
        self.in_order = in_order

    def accept(self, known: Known, pull: Pull, observation: Observation) -> bool:
        """Note an evaluation (see `Intake.accept`); the first value in each block counts."""
        if self.in_blocks and (not isinstance(pull.block, Integral) or pull.block < 0):
            raise ValueError(
                f"block must be at least 0, got {pull.block!r}: tell the pull as asked."
            )
        arm, value = int(pull.arm), observation.value
        at_target = pull.fidelity == known.problem.target
        block = pull.block if self.in_blocks else None
        block = self.blocks.first_open(arm) if block is None else block
        counts = at_target and exists(known, block)
        if value is None or not observation.has_value:
            if counts and self.in_blocks:
                self.blocks.fail(arm, block)
            return True
        is_new = counts and self.blocks.add(arm, block, float(value))
        return is_new or not (self.in_blocks or at_target)

    def due(self, known: Known, arm: int) -> Iterator[float]:
        """Yield the values that follow those that the race knows (see `Intake.due`)."""
        counts = known.evidence.counts
        while True:
            value = self.blocks.value_after(arm, int(counts[arm, known.problem.target]))
            if value is None:
                return
            yield value

    def failures(self, arm: int) -> int:
        """Return how many failures may make an arm leave (see `Intake.failures`)."""
        return max(self.blocks.failures_of(arm))

    def n_values(self) -> IntArray:
        """Return how many values each arm gave, shape (K,)."""
        return self.blocks.n_values

    def failing(self, known: Known) -> list[int]:
        """Return the arms that are in the race and failed in some block."""
        found: list[int] = np.flatnonzero(
            known.roster.active & self.blocks.failed.any(axis=1)
        ).tolist()
        return found

    def lost_leader(self, known: Known, failures: IntArray, winner: int) -> int | None:
        """Return an arm that left for failures, and was or would be the best."""
        return self.blocks.lost_leader(known.roster, failures, winner)

    def most_values(self, known: Known) -> float:
        """Return how many values an arm may have."""
        most = math.inf if known.most_blocks is None else known.most_blocks
        return most - int(self.blocks.void[: known.most_blocks].sum())


def exists(known: Known, block: int) -> bool:
    """Tell whether there is a replicate for a block."""
    return known.most_blocks is None or block < known.most_blocks


def first_in_turn(known: Known, arms: IntArray, block: int) -> int:
    """Return the arm whose turn is first in a block.

    The order in which arms are evaluated in a block is random and depends on the seed. Every second
    block takes the reverse of the one before. So a bonus for the first evaluation, such as a cache
    that the others find filled or empty, favours nobody.
    """
    turns = _turns(known.seed, known.problem.n_arms, block)
    return int(arms[np.argmin(turns[arms])])


@lru_cache(maxsize=512)
def _turns(seed: int, n_arms: int, block: int) -> IntArray:
    """Return each arm's turn in a block, shape (K,); reversed in every second one."""
    turns = np.random.default_rng([seed, block // 2, _STREAM]).permutation(n_arms)
    if block % 2:
        turns = n_arms - 1 - turns
    turns.setflags(write=False)
    return turns
