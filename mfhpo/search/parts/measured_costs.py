"""What evaluations at each level cost, learned from those that were paid for."""

import math
from collections.abc import Sequence

import numpy as np

from mfhpo.knowledge.arrays import FloatArray

_LEAST = 1e-9  # a coarse clock measures 0


class MeasuredCosts:
    """Learns the costs of levels; those that nothing was paid for are guessed.

    Evaluations from scratch tell the cost of their level, and those that go on from a checkpoint
    the cost of the steps that they add. The mean of each step is taken before steps are added up,
    since the arms that go up may be unlike the others.

    The `guess` says what the levels may cost relative to each other, increasing, and `continues`
    whether evaluations go on from checkpoints, so that costs are sums of steps.
    """

    def __init__(self, guess: Sequence[float], *, continues: bool) -> None:
        self._guess = np.array(guess, dtype=np.float64)
        self.continues = continues
        # Number and sum of what was paid, by the level gone on from (-1 for none) and the level.
        self._paid: dict[tuple[int, int], tuple[int, float]] = {}

    def add(self, start: int, level: int, cost: float) -> None:
        """Learn the cost of an evaluation that went on from the level `start`, -1 for none."""
        count, total = self._paid.get((start, level), (0, 0.0))
        self._paid[start, level] = count + 1, total + cost

    @property
    def any_known(self) -> bool:
        """Whether anything was paid, so that costs are in the right unit."""
        return bool(self._paid)

    def count(self, level: int) -> int:
        """Return how many evaluations at a level were paid for."""
        return sum(count for (_, end), (count, _) in self._paid.items() if end == level)

    def is_unknown(self, level: int) -> bool:
        """Tell whether a level's cost is a mere guess: only a single lower level was paid for."""
        paid = {level for _, level in self._paid}
        return len(paid) == 1 and level > max(paid)

    def costs(self) -> tuple[float, ...]:
        """Return the cost of an evaluation from scratch at each level, increasing.

        Between and below levels that were paid for, the guess is scaled to match them. Above them
        the last scale holds, unless a straight line through the two highest ends lower: with a cost
        of setting up, dear levels cost less than the guess.
        """
        if not self._paid:
            return tuple(self._guess.tolist())
        if self.continues:
            costs = np.cumsum(self._completed(self._steps(), np.diff(self._guess, prepend=0.0)))
        else:
            means = [self._mean(level) for level in range(len(self._guess))]
            costs = self._completed(np.array(means), self._guess)
        costs = np.maximum.accumulate(costs)
        # Levels that cost the same by chance still have to be told apart.
        return tuple((costs * (1.0 + 1e-9 * np.arange(len(costs)))).tolist())

    def _completed(self, known: FloatArray, guess: FloatArray) -> FloatArray:
        """Return known costs, with NaN completed by a guess, both of shape (levels,)."""
        seen = np.flatnonzero(~np.isnan(known))
        places = np.log(self._guess)
        scales = np.interp(places, places[seen], known[seen] / guess[seen])
        completed = np.where(np.isnan(known), scales * guess, known)
        for level in range(seen[-1] + 1, len(guess)):
            completed[level] = min(completed[level], _on_line(known, guess, guess[level]))
        return np.maximum(completed, _LEAST)

    def from_scratch(self, level: int) -> float:
        """Return the cost of an evaluation that begins anew at a level, set up only once."""
        costs = self.costs()
        if not self.continues or not self._paid:
            return costs[level]
        mean = self._mean(level)
        if not math.isnan(mean):
            return max(mean, _LEAST)
        guess = np.diff(self._guess, prepend=0.0)
        return min(costs[level], _on_line(self._steps(), guess, self._guess[level]))

    def _mean(self, level: int, start: int = -1) -> float:
        count, total = self._paid.get((start, level), (0, math.nan))
        return total / max(count, 1)

    def _steps(self) -> FloatArray:
        return np.array([self._mean_of_step(level) for level in range(len(self._guess))])

    def _mean_of_step(self, level: int) -> float:
        """Return the cost of the step to a level, maybe by its share of several; NaN if unknown."""
        mean = self._mean(level, level - 1)
        if not math.isnan(mean):
            return mean
        lower = np.concatenate(([0.0], self._guess))
        shares = [
            (count, total * (lower[level + 1] - lower[level]) / (lower[end + 1] - lower[start + 1]))
            for (start, end), (count, total) in self._paid.items()
            if start < level <= end
        ]
        number = sum(count for count, _ in shares)
        return sum(total for _, total in shares) / number if number else math.nan


def _on_line(known: FloatArray, guess: FloatArray, place: float) -> float:
    """Extrapolate a cost from the two highest known ones, or return infinity."""
    seen = np.flatnonzero(~np.isnan(known))
    if len(seen) < 2:
        return math.inf
    below, top = seen[-2:]
    if not guess[below] < guess[top] < place:
        return math.inf
    slope = max(0.0, (known[top] - known[below]) / (guess[top] - guess[below]))
    return float(known[top] + slope * (place - guess[top]))
