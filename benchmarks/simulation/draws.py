"""Outcomes that are drawn ahead for a block of rounds."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from benchmarks.simulation.rcucb_loop import Block
from mfhpo.censored.gain import GainEstimates
from mfhpo.knowledge.arrays import FloatArray, IntArray

# Outcomes of an arm, if it ran without a limit: rewards and seconds, each of the given size.
Draw: TypeAlias = Callable[[int, int], tuple[FloatArray, FloatArray]]

# Outcomes that are drawn at once for one arm.
_FEWEST, _MOST = 16, 1024


class Draws:
    """The arms' next outcomes, as `draw` gives them, scaled by the estimates."""

    def __init__(self, draw: Draw, estimates: GainEstimates, n_arms: int) -> None:
        self._draw = draw
        self._estimates = estimates
        self._gains: FloatArray = np.zeros((n_arms, _MOST))
        self._outcomes: FloatArray = np.zeros((n_arms, _MOST, 2))
        self._used: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._filled: IntArray = np.zeros(n_arms, dtype=np.int64)

    def block(self, rounds: int) -> Block:
        """Return what the loop needs to play so many rounds."""
        arms, notes = np.zeros(rounds, dtype=np.int64), np.zeros((rounds, 3))
        return Block(self._gains, self._outcomes, self._used, self._filled, arms, notes)

    def fill(self, arm: int) -> None:
        """Draw an arm's next outcomes: twice as many as the last time, within limits."""
        size = int(np.clip(2 * self._filled[arm], _FEWEST, _MOST))
        rewards, seconds = (np.asarray(part, dtype=np.float64) for part in self._draw(arm, size))
        if rewards.shape != (size,) or seconds.shape != (size,):
            raise ValueError(
                f"draw must return {size} rewards and {size} seconds for size={size}, got shapes "
                f"{rewards.shape} and {seconds.shape}."
            )
        if not (np.isfinite(rewards).all() and np.isfinite(seconds).all() and seconds.min() >= 0):
            raise ValueError(
                f"draw must return finite rewards, and finite seconds of at least 0; for arm {arm} "
                f"it did not."
            )
        self._gains[arm, :size] = self._estimates.scaled(rewards, seconds)
        self._outcomes[arm, :size, 0] = rewards
        self._outcomes[arm, :size, 1] = seconds
        self._used[arm], self._filled[arm] = 0, size
