"""Estimates of what an arm gains under a time limit, from pulls that may have been stopped.

Paper 004 (Bengs, Hüllermeier), Section 3.2: the expected gain by Eq. 8, the probability of running
beyond a limit by the paper's count (Eq. 9) or by Kaplan and Meier.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np

from mfhpo._validation import check_choice, check_numbers, shown
from mfhpo.censored import upper_bounds as pairs
from mfhpo.censored.options import Charge, Linear, check_charge
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.statistics import SurvivalPoint

# Share of the rewards' range that the largest limit costs when no cost is declared.
_DEFAULT_COST = 0.1

_RULE = pairs.Rule()

Survival = Literal["kaplan-meier", "count"]


class GainEstimates:
    """What is known about the penalized expected gain of every arm at every limit.

    nu(i, tau) = E[(R - c(C)) 1{C <= tau}] + (low - lambda(tau)) P(C > tau), in the unit of the
    reward R, for an arm whose pull takes C seconds: a pull that is stopped is worth the lowest
    reward, `low`, minus the penalty (Eq. 2 for rewards in [0, 1]). Limits increase, shape (m,); for
    other arguments see `mfhpo.censored.options.LimitOptions` and `CensoredPolicy`.

    Intervals of all pairs hold together, at all times, but with probability `delta`. Each arm has
    an equal share of it, and so have its limits, unless `parts` tells how many of the arm's share
    there are for each of them.
    """

    def __init__(
        self,
        n_arms: int,
        limits: Sequence[float] | FloatArray,
        *,
        cost: Charge | None,
        penalty: Charge | None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        survival: Survival = "kaplan-meier",
        rule: pairs.Rule = _RULE,
        delta: float = 0.05,
        parts: Callable[[int], Sequence[float]] | None = None,
    ) -> None:
        given = np.asarray(limits, dtype=np.float64)
        check_choice("survival", survival, get_args(Survival))
        self._low, high = check_range(reward_range)
        self._span = high - self._low
        longest = float(given[-1])
        self._cost = Linear(_DEFAULT_COST * self._span / longest) if cost is None else cost
        self._penalty = self._cost if penalty is None else penalty
        check_charge("cost", self._cost, np.array([longest]))
        check_charge("penalty", self._penalty, given)
        top = 1.0 - float(self._cost(np.zeros(1))[0]) / self._span
        self.rule = rule._replace(counted=survival == "count", top=top)
        self._delta, self._parts = delta, parts
        shape = (n_arms, len(given))
        self.tallies = pairs.Tallies(
            np.zeros((*shape, pairs.COLUMNS)), np.zeros(n_arms, dtype=np.int64), np.zeros(n_arms)
        )
        self.kept: dict[int, tuple[FloatArray, FloatArray]] = {}  # intervals, until the next pull
        self.latest = -1, -1  # arm and point that were played last, if there is such a point
        for arm in range(n_arms):
            self.set_limits(arm, given)

    def learn(
        self, arms: IntArray, limits: FloatArray, rewards: FloatArray, seconds: FloatArray
    ) -> None:
        """Learn from pulls, arrays of shape (N,), the last one played last.

        Limits are infinite for none, and seconds where a pull was stopped.
        """
        stopped = np.isinf(seconds)
        gains = np.zeros(len(arms))
        gains[~stopped] = self.scaled(rewards[~stopped], seconds[~stopped])
        for arm in np.unique(arms).tolist():
            own = arms == arm
            self.kept.pop(arm, None)
            pairs.record(self.tallies, self.rule, arm, limits[own], gains[own], seconds[own])
        if len(arms):
            at = np.flatnonzero(self.limits(arms[-1]) == limits[-1])
            self.latest = int(arms[-1]), int(at[-1]) if at.size else -1

    def set_limits(self, arm: int, limits: FloatArray) -> None:
        """Give an arm these limits, increasing, and forget what was recorded of it."""
        size, width = len(limits), self.tallies.cells.shape[1]
        if size > width:
            more = max(size, 2 * width) - width
            cells = np.pad(self.tallies.cells, ((0, 0), (0, more), (0, 0)))
            self.tallies = self.tallies._replace(cells=cells)
        cells = self.tallies.cells[arm]
        cells[:] = 0.0
        cells[:, pairs.SURVIVAL] = 1.0
        cells[:size, pairs.LIMIT] = limits
        cells[:size, pairs.PENALTY] = self._penalty(limits) / self._span
        cells[:size, pairs.FLOOR] = -self._cost(limits) / self._span
        self.kept.pop(arm, None)
        self.tallies.totals[arm] = 0.0
        self.tallies.points[arm] = size

    def limits(self, arm: int) -> FloatArray:
        """Return the arm's limits in seconds, shape (m,)."""
        return self._column(arm, pairs.LIMIT)

    def counts(self, arm: int) -> IntArray:
        """Return how many pulls say something about each limit of an arm, N(i, tau), shape (m,)."""
        return self._column(arm, pairs.COUNT).astype(np.int64)

    def gains(self, arm: int) -> FloatArray:
        """Return the estimated gain at each limit of an arm (Eq. 10), NaN where unknown; (m,)."""
        scaled = pairs.estimated_gains(self.tallies)[arm, : self.tallies.points[arm]]
        return self._low + self._span * scaled

    def survival(self, arm: int) -> FloatArray:
        """Return the estimated probability of running beyond each limit of an arm, shape (m,)."""
        return self._column(arm, pairs.SURVIVAL)

    def bounds(self, arm: int, deltas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds on the gain at each limit of an arm, each with its own delta, (m,).

        They hold at all times. If short pulls are recorded sooner, they lean towards these.
        """
        points = np.arange(len(deltas))
        levels = _levels_at_all_times(deltas, self.tallies.cells[arm, points, pairs.COUNT])
        lows, highs = pairs.bounds_on_gain(self.tallies, self.rule, arm, points, levels)
        return self._low + self._span * lows, self._low + self._span * highs

    def survival_bounds(self, arm: int, deltas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds on P(C > tau), valid at all times, each with its own delta, (m,)."""
        cells = self.tallies.cells[arm, : len(deltas)]
        lows, highs = np.zeros(len(deltas)), np.ones(len(deltas))
        seen = cells[:, pairs.COUNT] > 0.0
        counts, beyond = cells[seen, pairs.COUNT], cells[seen, pairs.EXCEEDED]
        levels = _levels_at_all_times(deltas[seen], counts) / counts
        weights = np.stack([counts - beyond, beyond], axis=1)
        values = np.tile([0.0, 1.0], (len(counts), 1))
        highs[seen] = pairs.highest_mean(weights, values, counts, highs[seen], levels)
        lows[seen] = -pairs.highest_mean(weights, -values, counts, lows[seen], levels)
        return lows, highs

    def intervals(self, arm: int) -> tuple[FloatArray, FloatArray]:
        """Return the bounds on an arm's gains that hold together with all others, (m,)."""
        if arm not in self.kept:
            self.kept[arm] = self.bounds(arm, self._deltas(arm))
        return self.kept[arm]

    def surest(self, arm: int) -> int:
        """Return the index of the arm's limit with the best lower bound."""
        return int(np.argmax(self.intervals(arm)[0]))

    def believed(self, arm: int) -> tuple[float, tuple[float, float]]:
        """Return the estimated gain at the arm's surest limit, within its interval, and this."""
        point = self.surest(arm)
        low, high = (float(bounds[point]) for bounds in self.intervals(arm))
        return min(max(float(self.gains(arm)[point]), low), high), (low, high)

    def best_arm(self, arms: IntArray) -> int | None:
        """Return the arm with the best lower bound; None if nothing is known about any."""
        pulled: list[int] = [arm for arm in arms.tolist() if self.counts(arm).any()]
        return max(pulled, key=lambda arm: self.intervals(arm)[0].max(), default=None)

    def curve(self, arm: int) -> tuple[SurvivalPoint, ...]:
        """Return how probably a pull of an arm runs beyond each of its limits."""
        lows, highs = self.survival_bounds(arm, self._deltas(arm))
        survival = np.clip(self.survival(arm), lows, highs)
        columns = self.limits(arm), survival, lows, highs
        return tuple(SurvivalPoint(*row) for row in np.stack(columns, axis=1).tolist())

    def scaled(self, rewards: FloatArray, seconds: FloatArray) -> FloatArray:
        """Return rewards minus costs, in units of the rewards' range; shape (N,)."""
        inside = np.clip(rewards, self._low, self._low + self._span)
        return (inside - self._low - self._cost(seconds)) / self._span

    def _deltas(self, arm: int) -> FloatArray:
        n_arms, n_points = self.tallies.cells.shape[0], len(self.limits(arm))
        parts = [n_points] * n_points if self._parts is None else self._parts(arm)
        return np.asarray(self._delta / (n_arms * np.array(parts, dtype=np.float64)))

    def _column(self, arm: int, column: int) -> FloatArray:
        return self.tallies.cells[arm, : self.tallies.points[arm], column].copy()


def check_range(reward_range: tuple[float, float]) -> tuple[float, float]:
    """Return the least and the largest reward, or raise unless they are finite and increase."""
    bounds = check_numbers(
        "reward_range", reward_range, "the least and the largest reward, such as (0, 1)"
    )
    if len(bounds) != 2 or not -math.inf < bounds[0] < bounds[1] < math.inf:
        raise ValueError(
            f"reward_range must be two finite numbers, the smaller one first, got "
            f"{shown(reward_range)}."
        )
    return bounds[0], bounds[1]


def _levels_at_all_times(deltas: FloatArray, counts: FloatArray) -> FloatArray:
    """Return levels of `highest_mean`, times the counts, for bounds that hold for all counts."""
    return np.asarray(np.log(2.0 / deltas) + np.log(counts + 1.0) + 1.0)
