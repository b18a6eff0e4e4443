"""Limits of each arm that are split where it is played: the grid of z-RCUCB.

Paper 004 (Bengs, Hüllermeier), Section 4 and Algorithm 1.
"""

import numpy as np

from mfhpo._validation import MOST_ARMS, MOST_LEVELS, check_count, check_positive
from mfhpo.censored.gain import GainEstimates
from mfhpo.censored.history import History
from mfhpo.censored.upper_bounds import is_refinable

# Rounds that are planned for at first where no horizon is declared.
_FIRST_HORIZON = 64


def planned_rounds(horizon: int | None, pulls: int) -> int:
    """Return the horizon, which is doubled whenever it is reached if none is declared."""
    return horizon or max(_FIRST_HORIZON, 1 << pulls.bit_length())


class Refinement:
    """The limits of each arm, increasing, at first the longest one alone (`points`)."""

    def __init__(self, n_arms: int, longest: float, splits: int, smoothness: float) -> None:
        self._splits = check_count("splits", splits, 2, MOST_LEVELS)
        longest = check_positive("longest", longest)
        self.smoothness = check_positive("smoothness", smoothness, "; try 1") / longest
        n_arms = check_count("n_arms", n_arms, 1, MOST_ARMS)
        self.points = [np.array([longest]) for _ in range(n_arms)]

    def begin(self, estimates: GainEstimates) -> None:
        """Give arms their limits, before the estimates learn."""
        for arm, limits in enumerate(self.points):
            estimates.set_limits(arm, limits)

    def refine(self, estimates: GainEstimates, history: History) -> None:
        """Split the interval that was played last, if its gain is known well enough (Eq. 14)."""
        arm, point = estimates.latest
        if point >= 0 and is_refinable(estimates.tallies, estimates.rule, arm, point):
            self.split(estimates, history)

    def split(self, estimates: GainEstimates, history: History) -> None:
        """Split the interval that was played last; all earlier pulls tell about the new limits."""
        arm, point = estimates.latest
        limits = self.points[arm]
        below = limits[point - 1] if point else 0.0
        parts = np.linspace(below, limits[point], self._splits + 1)[1:-1]
        self.points[arm] = np.union1d(limits, parts)
        estimates.set_limits(arm, self.points[arm])
        estimates.learn(*history.arrays(arm))

    def parts(self, arm: int) -> list[float]:
        """Return how many parts of an arm's share of delta there are for each of its limits.

        Points are found by looking at the data, among countably many places: a level of m^d places
        gets a share of 1 / ((d + 1) (d + 2)).
        """
        longest = float(self.points[arm][-1])
        parts = []
        for limit in self.points[arm].tolist():
            depth, place = 0, limit / longest
            while abs(place - round(place)) > 1e-9 and depth < 60:
                place *= self._splits
                depth += 1
            parts.append(float(self._splits) ** depth * (depth + 1) * (depth + 2))
        return parts
