"""Figures of what was observed: of every (arm, fidelity) pair, and of durations."""

import math
from typing import NamedTuple

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray

# A value this share of its size from the mean of the earlier ones is equal to it: the rest is
# rounding.
_ROUNDING = 1e-12


class PullStatistics:
    """Counts, sums and spreads of what was observed, one cell per (arm, fidelity): shape (K, M).

    `squares` and `cubes` sum powers of the deviations from the cell's mean, `prediction_errors`
    squared deviations from the mean of earlier values, or from `first_guess`. `repeats` counts
    values equal to the one before in their cell, as only discrete ones are. Of the others, `moves`
    is the number and `moved` the sum of squared differences, by fidelity.
    """

    def __init__(self, n_arms: int, n_fidelities: int, first_guess: float = 0.0) -> None:
        shape = (n_arms, n_fidelities)
        self._first_guess = first_guess
        self.counts: IntArray = np.zeros(shape, dtype=np.int64)
        self.sums, self.squares, self.cubes = (np.zeros(shape) for _ in range(3))
        self.prediction_errors: FloatArray = np.zeros(shape)
        self.lows: FloatArray = np.full(shape, np.inf)
        self.highs: FloatArray = np.full(shape, -np.inf)
        self.latest: FloatArray = np.full(shape, np.nan)
        self.repeats: IntArray = np.zeros(shape, dtype=np.int64)
        self.moves: IntArray = np.zeros(n_fidelities, dtype=np.int64)
        self.moved: FloatArray = np.zeros(n_fidelities)

    def add(self, arm: int, fidelity: int, value: float) -> float:
        """Add a value; return by how much the cell's `squares` grew."""
        cell = (arm, fidelity)
        count = int(self.counts[cell])
        earlier = self.sums[cell] / count if count else self._first_guess
        if count and abs(value - earlier) <= _ROUNDING * abs(value):
            earlier = value
        self.counts[cell] = count + 1
        self.sums[cell] += value
        self.prediction_errors[cell] += (value - earlier) ** 2
        growth = (value - earlier) ** 2 * count / (count + 1)
        if count:
            # By how much the mean moves (Pébay 2008, Eq. 1.1).
            step = (value - earlier) / (count + 1)
            self.cubes[cell] += step * (growth * (count - 1) - 3.0 * self.squares[cell])
        self.squares[cell] += growth
        self.lows[cell] = min(self.lows[cell], value)
        self.highs[cell] = max(self.highs[cell], value)
        latest = float(self.latest[cell])
        if abs(value - latest) <= _ROUNDING * abs(value):
            self.repeats[cell] += 1
        elif not math.isnan(latest):
            self.moves[fidelity] += 1
            self.moved[fidelity] += (value - latest) ** 2
        self.latest[cell] = value
        return float(growth)


class SurvivalPoint(NamedTuple):
    """The probability that a pull runs beyond a limit, with bounds.

    Parameters
    ----------
    limit
        The limit in seconds.
    probability
        The estimate; one outside the bounds is moved into them.
    low, high
        Bounds, valid at all times with probability 1 - delta for all arms and limits together, if
        the limits are declared.
    """

    limit: float
    probability: float
    low: float
    high: float
