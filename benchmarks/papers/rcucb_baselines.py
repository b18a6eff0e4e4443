"""UCB and Thompson sampling with every pair of arm and limit as an arm of its own.

Paper 004 (Bengs, Hüllermeier), Appendix E.1: what RCUCB is compared with. Gains are scaled to
[0, 1], and every pair is played once first.
"""

import abc
import math
from typing import Any, NamedTuple

import numpy as np

from benchmarks.simulation.compiled import compiled
from benchmarks.simulation.draws import Draw, Draws
from benchmarks.simulation.rcucb_loop import Block
from mfhpo.censored import Charge
from mfhpo.censored.gain import GainEstimates
from mfhpo.censored.limits import History
from mfhpo.censored.upper_bounds import FLOOR, LIMIT, PENALTY
from mfhpo.knowledge.arrays import FloatArray


class Pairs(NamedTuple):
    """What the loops below know of every pair, arrays of shape (n, m)."""

    first: FloatArray  # UCB: plays; Thompson: successes
    second: FloatArray  # UCB: sum of the scaled gains; Thompson: failures
    plays: FloatArray
    limits: FloatArray
    penalties: FloatArray
    low: float  # the least and the largest gain of a pull, scaled
    high: float


class _PairPolicy(abc.ABC):
    """Plays rounds with rewards in [0, 1]."""

    def __init__(self, n_arms: int, limits: FloatArray, cost: Charge, penalty: Charge) -> None:
        self._estimates = GainEstimates(n_arms, limits, cost=cost, penalty=penalty)
        self.history = History()
        cells = self._estimates.tallies.cells
        worst = min(float(cells[:, :, FLOOR].min()), -float(cells[:, :, PENALTY].max()))
        first, second, plays = np.zeros((3, *cells.shape[:2]))
        limits, penalties = cells[:, :, LIMIT].copy(), cells[:, :, PENALTY].copy()
        self.pairs = Pairs(first, second, plays, limits, penalties, worst, self._estimates.rule.top)

    @abc.abstractmethod
    def _loop(self) -> tuple[Any, Any]:
        """The loop of rounds, compiled if it can be, and what it needs besides the pairs."""

    def play(self, draw: Draw, rounds: int) -> None:
        """Play rounds; see `benchmarks.simulation.rcucb.play`."""
        loop, argument = self._loop()
        n_arms = len(self.pairs.first)
        draws = Draws(draw, self._estimates, n_arms)
        block = draws.block(rounds)
        played, wanting = 0, list(range(n_arms))
        while played < rounds:
            for arm in wanting:
                draws.fill(arm)
            played, *wanting = loop(self.pairs, block, played, self.pulls, argument)
        self.history.add_all(block.arms, block.notes)

    @property
    def pulls(self) -> int:
        """Number of rounds."""
        return len(self.history)

    @property
    def n_censored(self) -> int:
        """Number of rounds in which the arm was stopped."""
        return self.history.n_censored


class LimitUCB(_PairPolicy):
    """The pair with the largest mean + sqrt(alpha log t / (2 T)), T being its own plays (Eq. 31).

    Parameters
    ----------
    n_arms, limits, cost, penalty
        See `mfhpo.censored.RCUCB`.
    exploration
        alpha.
    """

    def __init__(
        self,
        n_arms: int,
        limits: FloatArray,
        *,
        cost: Charge,
        penalty: Charge,
        exploration: float = 1.0,
    ) -> None:
        super().__init__(n_arms, limits, cost, penalty)
        self._exploration = exploration

    def _loop(self) -> tuple[Any, float]:
        return compiled(play_ucb, take_outcome, highest_pair), self._exploration


class LimitThompson(_PairPolicy):
    """The pair with the largest draw from its Beta posterior (Eq. 32).

    A pull updates all limits up to its own by a trial with the scaled gain for probability.

    Parameters
    ----------
    n_arms, limits, cost, penalty
        See `mfhpo.censored.RCUCB`.
    seed
        Seed of the draws.
    """

    def __init__(
        self,
        n_arms: int,
        limits: FloatArray,
        *,
        cost: Charge,
        penalty: Charge,
        seed: int = 0,
    ) -> None:
        super().__init__(n_arms, limits, cost, penalty)
        self._seed = seed

    def _loop(self) -> tuple[Any, np.random.Generator]:
        rng = np.random.default_rng((self._seed, 2, self.pulls))
        return compiled(play_thompson, take_outcome, drawn_pair), rng


# The loops, which numba can compile.


def highest_pair(counts: FloatArray, sums: FloatArray, level: float) -> int:
    """The pair with the largest upper bound, or the first that was never played."""
    best, best_pair = -math.inf, -1
    n_points = int(counts.shape[1])
    for arm in range(counts.shape[0]):
        for point in range(n_points):
            count = counts[arm, point]
            if count == 0.0:
                return arm * n_points + point
            index = sums[arm, point] / count + math.sqrt(0.5 * level / count)
            if index > best:
                best, best_pair = index, arm * n_points + point
    return best_pair


def drawn_pair(
    successes: FloatArray, failures: FloatArray, plays: FloatArray, rng: np.random.Generator
) -> int:
    """The pair with the largest draw from its posterior, or the first that was never played."""
    best, best_pair = -math.inf, -1
    n_points = int(successes.shape[1])
    for arm in range(successes.shape[0]):
        for point in range(n_points):
            if plays[arm, point] == 0.0:
                return arm * n_points + point
    for arm in range(successes.shape[0]):
        for point in range(n_points):
            draw = rng.beta(1.0 + successes[arm, point], 1.0 + failures[arm, point])
            if draw > best:
                best, best_pair = draw, arm * n_points + point
    return best_pair


def take_outcome(block: Block, arm: int, limit: float, played: int) -> float:
    """Note the arm's next outcome under a limit, and return its gain."""
    place = block.used[arm]
    block.used[arm] += 1
    block.arms[played] = arm
    block.notes[played, 0] = limit
    block.notes[played, 1] = block.outcomes[arm, place, 0]
    block.notes[played, 2] = block.outcomes[arm, place, 1]
    if block.notes[played, 2] > limit:
        block.notes[played, 1] = math.nan
        block.notes[played, 2] = math.inf
    return float(block.gains[arm, place])


def play_ucb(
    pairs: Pairs, block: Block, played: int, before: int, exploration: float
) -> tuple[int, int]:
    """Play `LimitUCB` until all rounds are played, or an arm has no outcome left.

    Every arm has an outcome left at the beginning. `played` plays of this block were made already,
    `before` earlier ones. Returns the plays of this block, and the arm (or -1).
    """
    counts, sums = pairs.first, pairs.second
    n_points = counts.shape[1]
    while played < len(block.arms):
        level = exploration * math.log(before + played + 1)
        pair = highest_pair(counts, sums, level)
        arm, point = pair // n_points, pair % n_points
        limit = pairs.limits[arm, point]
        gain = take_outcome(block, arm, limit, played)
        if block.notes[played, 2] > limit:
            gain = -pairs.penalties[arm, point]
        counts[arm, point] += 1.0
        sums[arm, point] += (gain - pairs.low) / (pairs.high - pairs.low)
        played += 1
        if block.used[arm] == block.filled[arm]:
            return played, arm
    return played, -1


def play_thompson(
    pairs: Pairs, block: Block, played: int, before: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Play `LimitThompson`; see `play_ucb`."""
    successes, failures, plays = pairs.first, pairs.second, pairs.plays
    n_points = successes.shape[1]
    while played < len(block.arms):
        pair = drawn_pair(successes, failures, plays, rng)
        arm, point = pair // n_points, pair % n_points
        gain = take_outcome(block, arm, pairs.limits[arm, point], played)
        for told in range(point + 1):
            ended = block.notes[played, 2] <= pairs.limits[arm, told]
            worth = gain if ended else -pairs.penalties[arm, told]
            if rng.random() < (worth - pairs.low) / (pairs.high - pairs.low):
                successes[arm, told] += 1.0
            else:
                failures[arm, told] += 1.0
        plays[arm, point] += 1.0
        played += 1
        if block.used[arm] == block.filled[arm]:
            return played, arm
    return played, -1
