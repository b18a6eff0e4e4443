"""A view of the model: the arms that it knows, and others that may be evaluated."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from mfhpo.knowledge.arrays import FloatArray
from mfhpo.search.model.acquisition import expected_improvement
from mfhpo.search.model.process import LevelProcess

# Equally likely outcomes of a step, in standard deviations, the best first.
_OUTCOMES = -ndtri((np.arange(50) + 0.5) / 50)


@dataclass(frozen=True)
class View:
    """The model after some observations, and the arms that it knows: not all, if there are many."""

    process: LevelProcess
    features: FloatArray
    arms: list[int]
    means: FloatArray
    spreads: FloatArray
    best: float

    def improvement(self, means: FloatArray, spreads: FloatArray) -> FloatArray:
        """Return the possible gain at the target, less what noise hides."""
        return expected_improvement(means, spreads, self.best, self.process.target_noise)

    def best_level(self, features: FloatArray, lowest: int, costs: FloatArray) -> int:
        """Return the level, from the lowest on, that gains most for its cost.

        Many such arms are evaluated there, and only the best at the target. `costs` are by level.
        """
        top = len(costs) - 1
        levels = np.arange(lowest, top)
        repeated = np.repeat(features, len(levels), axis=0)
        mean, moved, left = self.process.learnt_at(repeated, levels)
        means = mean[:, None] + moved[:, None] * _OUTCOMES
        spreads = np.repeat(left[:, None], len(_OUTCOMES), axis=1)
        improvements = self.improvement(means, spreads)
        share = np.arange(1, len(_OUTCOMES) + 1) / len(_OUTCOMES)
        gains = np.cumsum(improvements, axis=1) / len(_OUTCOMES)
        rates = (gains / (costs[levels, None] + share * costs[-1])).max(axis=1)
        now, spread = self.process.at_target(features)
        at_once = float(self.improvement(now, spread)[0]) / costs[-1]
        return int(levels[np.argmax(rates)]) if rates.max() > at_once else top
