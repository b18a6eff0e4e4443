"""The base of policies in blocks: the order within a block, failures, and void blocks."""

import math
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np

from mfhpo._validation import check_instance
from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.identification.likelihood.blocks import BLOCK_CONDITIONS, Blocks
from mfhpo.knowledge.arrays import IntArray
from mfhpo.problem import Observation, Problem, Pull

_STREAM = 1  # of random numbers, apart from others that are drawn from a seed and a number


class BlockPolicy(BestArmPolicy):
    """A race whose arms are compared in blocks, which share their replicate: a split or a seed.

    The order in which arms are evaluated in a block is random and depends on the seed. Every second
    block takes the reverse of the one before. So a bonus for the first evaluation, such as a
    cache that the others find filled or empty, favours nobody.

    A replicate may be bad for everybody. An arm that fails in a block where nobody has a value is
    not evaluated there again before another one has a value. If all arms that are compared have
    failed there, the block is void: it takes no part from then on, whatever comes later.

    An arm that fails in a block where another has a value is evaluated there once more. After a
    second failure it has no value there for good, and is compared in the other blocks. To
    `mfhpo.racing.failures`, both are one failure: a replicate is no worse for being tried twice.

    Failures in void blocks make no arm leave, unless the void blocks alone are too many by
    `mfhpo.racing.failures`: then the objective fails, and the race must end.
    """

    _in_blocks = True
    _expects_spread = False  # coarse scores are often equal on a few replicates

    def __init__(self, problem: Problem, **options: Any) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        self._blocks = Blocks(problem.n_arms)
        super().__init__(problem, **options)

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation (see `Policy.tell`).

        In blocks, what counts is the first value of an arm in each, at the target; none in a void
        block or beyond `most_blocks`. A ValueError says that the pull has no block.
        """
        check_instance("observation", observation, Observation, "a mfhpo.Observation")
        self._check(pull)
        if self._in_blocks and (not isinstance(pull.block, Integral) or pull.block < 0):
            raise ValueError(
                f"block must be at least 0, got {pull.block!r}: tell the pull as asked."
            )
        self._paid_for(pull.fidelity, observation)  # raises before anything is noted
        arm, value, target = int(pull.arm), observation.value, self.problem.target
        block = pull.block if self._in_blocks else None
        block = self._blocks.first_open(arm) if block is None else block
        counts = pull.fidelity == target and self._exists(block)
        if value is None or not observation.has_value:
            if counts and self._in_blocks:
                self._blocks.fail(arm, block)
        elif not (counts and self._blocks.add(arm, block, float(value))) and (
            self._in_blocks or pull.fidelity == target
        ):
            self._pay(pull.fidelity, observation)
            return
        super().tell(pull, observation)
        failing = self._roster.active & self._blocks.failed.any(axis=1)
        for each in np.flatnonzero(failing).tolist():
            self._leave_if_failing(each, target)

    def _take_note_of_failure(self) -> None:
        self._judge(self.problem.target)

    def _counted_failures(self, arm: int) -> IntArray:
        counted = super()._counted_failures(arm).copy()
        if self._in_blocks:
            counted[self.problem.target] = max(self._blocks.failures_of(arm))
        return counted

    def _first_in_turn(self, arms: IntArray, block: int) -> int:
        return int(arms[np.argmin(_turns(self.seed, self.problem.n_arms, block)[arms])])

    def _exists(self, block: int) -> bool:
        return self.most_blocks is None or block < self.most_blocks

    @property
    def _most_values(self) -> float:
        """How many values an arm may have."""
        most = math.inf if self.most_blocks is None else self.most_blocks
        return most - int(self._blocks.void[: self.most_blocks].sum())

    def _lost_leader(self, winner: int) -> int | None:
        if not self._in_blocks:
            return super()._lost_leader(winner)
        return self._blocks.lost_leader(self._roster, self._failures, winner)

    def _conditions(self) -> tuple[str, ...]:
        return BLOCK_CONDITIONS if self._in_blocks else super()._conditions()


@lru_cache(maxsize=512)
def _turns(seed: int, n_arms: int, block: int) -> IntArray:
    """Return each arm's turn in a block, shape (K,); reversed in every second one."""
    turns = np.random.default_rng([seed, block // 2, _STREAM]).permutation(n_arms)
    if block % 2:
        turns = n_arms - 1 - turns
    turns.setflags(write=False)
    return turns
