"""Estimates of what an arm gains under a time limit, from pulls that may have been stopped.

Paper 004 (Bengs, Hüllermeier), Section 3.2: the expected gain by Eq. 8, the probability of running
beyond a limit by the paper's count (Eq. 9) or by Kaplan and Meier.
"""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from mfhpo._validation import check_choice, check_numbers, shown
from mfhpo.censored.charges import Charge, check_charge
from mfhpo.censored.kernel import (
    BINS,
    COLUMNS,
    COUNT,
    EXCEEDED,
    FLOOR,
    HELPERS,
    LIMIT,
    PENALTY,
    SURVIVAL,
    Ceilings,
    Rule,
    Tallies,
    bounds_on_gain,
    estimated_gain,
    highest_mean,
    record,
    record_all,
)
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.racing.native import compiled

Survival = Literal["kaplan-meier", "count"]

# From so many pulls times limits on, learning from them is left to the compiled loop.
_MANY = 50_000


class GainEstimates:
    """What is known of the penalized expected gain of every arm at every limit.

    nu(i, tau) = E[(R - c(C)) 1{C <= tau}] + (low - lambda(tau)) P(C > tau), in the unit of the
    reward R, for an arm whose pull takes C seconds: a pull that is stopped is worth the lowest
    reward, `low`, minus the penalty. With rewards in [0, 1] that is Eq. 2 of Bengs and
    Hüllermeier (2023).

    Parameters
    ----------
    n_arms, limits
        Number of arms n, and the limits in seconds, strictly increasing, shape (m,).
    cost, penalty
        What is charged for the seconds of a pull that ends in time, and for the limit of one that
        does not; in the unit of the reward.
    reward_range
        Least and largest reward. Rewards outside are taken for the nearest one inside.
    survival
        How P(C > tau) is estimated, see `mfhpo.censored.options.LimitOptions`.
    rule
        The rule that the estimates serve, as far as it is not about the scale.

    Raises
    ------
    ValueError, TypeError
        For charges, a range or a kind of survival that are none.
    """

    def __init__(
        self,
        n_arms: int,
        limits: Sequence[float] | FloatArray,
        *,
        cost: Charge,
        penalty: Charge,
        reward_range: tuple[float, float] = (0.0, 1.0),
        survival: Survival = "kaplan-meier",
        rule: Rule | None = None,
    ) -> None:
        given = np.asarray(limits, dtype=np.float64)
        check_choice("survival", survival, get_args(Survival))
        self._low, high = check_range(reward_range)
        self._span = high - self._low
        self._cost = cost
        self._penalty = penalty
        longest = float(given[-1])
        check_charge("cost", cost, np.array([longest]))
        check_charge("penalty", penalty, given)
        top = 1.0 - float(cost(np.zeros(1))[0]) / self._span
        base = rule or Rule(0, False, 1.0, 0.0, 1.0, 0.0)
        self.rule = base._replace(counted=survival == "count", top=top)
        shape = (n_arms, len(given))
        self.tallies = Tallies(
            np.zeros((*shape, COLUMNS)), np.zeros(n_arms, dtype=np.int64), np.zeros(n_arms)
        )
        self.ceilings = _new_ceilings(*shape)
        for arm in range(n_arms):
            self.set_limits(arm, given)

    def record(self, arm: int, limit: float, reward: float, seconds: float) -> None:
        """Learn from one pull; infinite seconds if it was stopped.

        `limit` is that under which it ran, infinite for none, chosen without knowing the outcome.
        """
        gain = 0.0
        if not math.isinf(seconds):
            gain = float(self.scaled(np.array([reward]), np.array([seconds]))[0])
        record(self.tallies, self.rule, arm, limit, gain, seconds)

    def record_all(
        self, arms: IntArray, limits: FloatArray, rewards: FloatArray, seconds: FloatArray
    ) -> None:
        """Learn from many pulls, arrays of shape (N,); infinite seconds where one was stopped."""
        stopped = np.isinf(seconds)
        gains = np.zeros(len(arms))
        gains[~stopped] = self.scaled(rewards[~stopped], seconds[~stopped])
        many = len(arms) * self.tallies.cells.shape[1] >= _MANY
        run = compiled(record_all, *HELPERS) if many else record_all
        run(self.tallies, self.rule, arms, limits, gains, seconds)

    def set_limits(self, arm: int, limits: FloatArray) -> None:
        """Give an arm these limits, increasing, and forget what was recorded of it."""
        size = len(limits)
        if size > self.tallies.cells.shape[1]:
            self._widen(max(size, 2 * self.tallies.cells.shape[1]))
        cells = self.tallies.cells[arm]
        cells[:] = 0.0
        cells[:, SURVIVAL] = 1.0
        cells[:size, LIMIT] = limits
        cells[:size, PENALTY] = self._penalty(limits) / self._span
        cells[:size, FLOOR] = -self._cost(limits) / self._span
        self.tallies.totals[arm] = 0.0
        self.tallies.points[arm] = size
        self.ceilings.stale[arm] = True
        self.ceilings.roots[arm] = math.inf

    def limits(self, arm: int) -> FloatArray:
        """The arm's limits in seconds, shape (m,)."""
        return self._column(arm, LIMIT)

    def counts(self, arm: int) -> IntArray:
        """Pulls of the arm that tell of each of its limits, N(i, tau), shape (m,)."""
        return self._column(arm, COUNT).astype(np.int64)

    def pulled(self, arms: IntArray) -> IntArray:
        """Those of some arms of which pulls tell anything, shape (n,)."""
        return np.asarray(arms[self.tallies.cells[arms, :, COUNT].any(axis=1)])

    def gains(self, arm: int) -> FloatArray:
        """Estimated gain at each of the arm's limits (Eq. 10), NaN where nothing is known; (m,)."""
        points = range(self.tallies.points[arm])
        scaled = [estimated_gain(self.tallies, arm, point) for point in points]
        return self._low + self._span * np.array(scaled)

    def survival(self, arm: int) -> FloatArray:
        """Estimated probability of running beyond each of the arm's limits, shape (m,)."""
        return self._column(arm, SURVIVAL)

    def bounds(self, arm: int, point: int, delta: float) -> tuple[float, float]:
        """Bounds on the gain at one limit, valid at all times with probability 1 - delta.

        By empirical likelihood from the pulls at a limit of at least this one (see
        `bounds_on_gain`). If pulls that end sooner are recorded sooner, the bounds lean towards
        these.
        """
        level = _level_at_all_times(delta, float(self.tallies.cells[arm, point, COUNT]))
        low, high = bounds_on_gain(self.tallies, self.rule, arm, point, level)
        return float(self._low + self._span * low), float(self._low + self._span * high)

    def survival_bounds(self, arm: int, point: int, delta: float) -> tuple[float, float]:
        """Bounds on P(C > tau), valid at all times with probability 1 - delta."""
        count = float(self.tallies.cells[arm, point, COUNT])
        if count == 0.0:
            return 0.0, 1.0
        beyond = float(self.tallies.cells[arm, point, EXCEEDED])
        level = _level_at_all_times(delta, count) / count
        values = np.array([0.0, 1.0])
        weights = np.array([count - beyond, beyond])
        high, _ = highest_mean(weights, values, count, 1.0, level, math.inf)
        low, _ = highest_mean(weights, -values, count, 0.0, level, math.inf)
        return float(-low), float(high)

    def scaled(self, rewards: FloatArray, seconds: FloatArray) -> FloatArray:
        """Rewards minus costs, where the range of the rewards has length 1; shape (N,)."""
        inside = np.clip(rewards, self._low, self._low + self._span)
        return (inside - self._low - self._cost(seconds)) / self._span

    def _column(self, arm: int, column: int) -> FloatArray:
        return self.tallies.cells[arm, : self.tallies.points[arm], column].copy()

    def _widen(self, size: int) -> None:
        n_arms, before = self.tallies.cells.shape[:2]
        cells, ceilings = np.zeros((n_arms, size, COLUMNS)), _new_ceilings(n_arms, size)
        cells[:, :before] = self.tallies.cells
        ceilings.latest[1:] = self.ceilings.latest[1:]
        self.tallies, self.ceilings = self.tallies._replace(cells=cells), ceilings


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


def _level_at_all_times(delta: float, count: float) -> float:
    """The level of `highest_mean`, times the count, at which both bounds hold for all counts."""
    return math.log(2.0 / delta) + math.log(count + 1.0) + 1.0


def _new_ceilings(n_arms: int, size: int) -> Ceilings:
    return Ceilings(
        values=np.full((n_arms, size), math.inf),
        tops=np.full(n_arms, math.inf),
        stale=np.ones(n_arms, dtype=np.bool_),
        roots=np.full((n_arms, size), math.inf),
        latest=np.array([0, -1, -1]),
        weights=np.zeros(BINS + 1),
        spots=np.zeros(BINS + 1),
    )
