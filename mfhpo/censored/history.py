"""The pulls of a race with time limits, in the order in which they were told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray


class History:
    """Arms, limits (infinite for none), rewards and seconds of all pulls.

    A pull that was stopped has a reward of NaN and infinite seconds.
    """

    def __init__(self) -> None:
        self.arms: list[int] = []
        self.limits: list[float] = []
        self.rewards: list[float] = []
        self.seconds: list[float] = []
        self.n_censored = 0
        self.lowest, self.highest = math.inf, -math.inf  # rewards

    def __len__(self) -> int:
        return len(self.arms)

    def add_all(self, arms: IntArray, notes: FloatArray) -> None:
        """Add pulls: arms, shape (N,); limit, reward and seconds of each, shape (N, 3)."""
        limits, rewards, seconds = notes.T
        self.arms.extend(arms.tolist())
        self.limits.extend(limits.tolist())
        self.rewards.extend(rewards.tolist())
        self.seconds.extend(seconds.tolist())
        self.n_censored += int(np.isinf(seconds).sum())
        seen = rewards[~np.isnan(rewards)]
        if seen.size:
            self.lowest = min(self.lowest, float(seen.min()))
            self.highest = max(self.highest, float(seen.max()))

    def arrays(self, arm: int | None = None) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Return arms, limits, rewards and seconds, of one arm or of all, each of shape (N,)."""
        arms = np.array(self.arms, dtype=np.int64)
        chosen = slice(None) if arm is None else arms == arm
        floats = (np.array(values) for values in (self.limits, self.rewards, self.seconds))
        limits, rewards, seconds = (values[chosen] for values in floats)
        return arms[chosen], limits, rewards, seconds

    def state_dict(self) -> dict[str, Any]:
        """Return the pulls as plain JSON values; None stands for NaN and infinity."""
        return {
            "arms": list(self.arms),
            "limits": [limit if math.isfinite(limit) else None for limit in self.limits],
            "rewards": [None if math.isnan(reward) else reward for reward in self.rewards],
            "seconds": [taken if math.isfinite(taken) else None for taken in self.seconds],
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> History:
        """Return the history of the saved pulls."""
        history = cls()
        missing = {"limits": math.inf, "rewards": math.nan, "seconds": math.inf}
        columns = [
            [instead if value is None else float(value) for value in state[name]]
            for name, instead in missing.items()
        ]
        history.add_all(np.array(state["arms"], dtype=np.int64), np.array(columns).T)
        return history
