"""UCB and Thompson sampling with every pair of arm and limit as an arm of its own.

Paper 004 (Bengs, Hüllermeier), Appendix E.1: what RCUCB is compared with.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_count, check_positive
from mfhpo.censored.charges import Charge
from mfhpo.censored.draws import Draw, Draws
from mfhpo.censored.gain import GainEstimates
from mfhpo.censored.kernel import FLOOR, LIMIT, PENALTY, Block
from mfhpo.censored.policy import CensoredPolicy
from mfhpo.problem import Pull
from mfhpo.racing.native import compiled

__all__ = ["LimitThompson", "LimitUCB"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class Pairs(NamedTuple):
    """What the loops below know of every pair, arrays of shape (n, P)."""

    first: FloatArray
    second: FloatArray
    active: BoolArray
    limits: FloatArray
    penalties: FloatArray
    low: float  # the least and the largest gain of a pull, scaled
    high: float


class _PairPolicy(CensoredPolicy):
    """Keeps two numbers for every pair, and knows nothing of how pairs hang together."""

    def __init__(
        self,
        n_arms: int,
        limits: Sequence[float] | FloatArray | int,
        *,
        longest: float | None = None,
        cost: Charge | None = None,
        penalty: Charge | None = None,
        reward_range: tuple[float, float] | None = (0.0, 1.0),
        delta: float = 0.05,
        horizon: int | None = None,
        max_failures: int = 3,
    ) -> None:
        self._first: FloatArray = np.zeros((0, 0))
        self._second: FloatArray = np.zeros((0, 0))
        super().__init__(
            n_arms,
            limits,
            longest=longest,
            cost=cost,
            penalty=penalty,
            reward_range=reward_range,
            survival="kaplan-meier",
            delta=delta,
            horizon=horizon,
            max_failures=max_failures,
        )

    @abc.abstractmethod
    def _learn_from(self, number: int, arm: int, limit: float, worths: FloatArray) -> None:
        """Learn from one pull, the worth of which at each limit (m,) lies in [0, 1]."""

    @abc.abstractmethod
    def _loop(self) -> tuple[Any, Any]:
        """The loop of rounds, compiled if it can be, and what it needs besides the pairs."""

    def _range_of_worth(self, estimates: GainEstimates) -> tuple[float, float]:
        """Least and largest scaled gain of a pull."""
        cells = estimates.tallies.cells
        worst = min(float(cells[:, :, FLOOR].min()), -float(cells[:, :, PENALTY].max()))
        return worst, estimates.rule.top

    def _set_points(self, estimates: GainEstimates) -> None:
        shape = estimates.tallies.cells.shape[:2]
        self._first, self._second = np.zeros(shape), np.zeros(shape)
        for number in range(self.pulls):
            self._replay(estimates, number)

    def _take_note(self, arm: int, limit: float) -> None:
        self._replay(self._known(), self.pulls - 1)

    def _replay(self, estimates: GainEstimates, number: int) -> None:
        """Learn from a pull of the history."""
        history = self._history
        arm, limit = history.arms[number], history.limits[number]
        seconds = history.seconds[number]
        cells = estimates.tallies.cells[arm]
        low, high = self._range_of_worth(estimates)
        worths = -cells[:, PENALTY]
        if not math.isinf(seconds):
            reward = np.array([history.rewards[number]])
            gain = estimates.scaled(reward, np.array([seconds]))[0]
            worths = np.where(seconds <= cells[:, LIMIT], gain, worths)
        self._learn_from(number, arm, limit, (worths - low) / (high - low))

    def _grid(self) -> FloatArray:
        return self._known().tallies.cells[0, :, LIMIT]

    def _pairs(self, arms: BoolArray) -> BoolArray:
        """Which pairs are of these arms, shape (n, P)."""
        return np.repeat(arms[:, None], len(self._grid()), axis=1)

    def _pull_of(self, pair: int) -> Pull:
        grid = self._grid()
        arm, point = divmod(pair, len(grid))
        return Pull(arm, 0, float(grid[point]))

    def play(self, draw: Draw, rounds: int) -> None:
        """Play rounds at once (see `CensoredPolicy.play`)."""
        rounds = self._rounds_to_play(rounds)
        estimates = self._known()
        cells = estimates.tallies.cells
        limits, penalties = cells[:, :, LIMIT].copy(), cells[:, :, PENALTY].copy()
        active = self._pairs(self._roster.active)
        scale = self._range_of_worth(estimates)
        pairs = Pairs(self._first, self._second, active, limits, penalties, *scale)
        loop, argument = self._loop()
        draws = Draws(draw, estimates, self.n_arms)
        block = draws.block(rounds)
        played, wanting = 0, self.active.tolist()
        try:
            while played < rounds and active.any():
                for arm in wanting:
                    draws.fill(arm)
                played, *wanting = loop(pairs, block, played, self.pulls, argument)
        finally:
            arms, notes = block.arms[:played], block.notes[:played]
            estimates.record_all(arms, *notes.T)
            self._note_plays(arms, notes)

    def state_dict(self) -> dict[str, Any]:
        """Everything learned so far (see `Policy.state_dict`)."""
        pairs = {"first": self._first.tolist(), "second": self._second.tolist()}
        return super().state_dict() | pairs

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state (see `Policy.load_state_dict`)."""
        super().load_state_dict(state)
        if self._gain is not None:
            shape = self._gain.tallies.cells.shape[:2]
            self._first = np.array(state["first"], dtype=np.float64).reshape(shape)
            self._second = np.array(state["second"], dtype=np.float64).reshape(shape)


class LimitUCB(_PairPolicy):
    """UCB over all pairs of arm and limit: Appendix E.1, Eq. 31.

    Every pair is played once, the rest of the time the one with the largest mean + sqrt(alpha log t
    / (2 T)), where T counts its own plays only, and the gains are scaled to [0, 1].

    Parameters
    ----------
    n_arms, limits
        See `RCUCB`.
    exploration
        alpha, positive.
    **options
        ``longest``, ``cost``, ``penalty``, ``reward_range``, ``delta``, ``horizon`` and
        ``max_failures``, as for `RCUCB`.

    Examples
    --------
    >>> policy = LimitUCB(3, [1.0, 2.0], reward_range=(0, 1))
    >>> policy.ask()
    [Pull(arm=0, fidelity=0, limit=1.0)]
    """

    def __init__(
        self,
        n_arms: int,
        limits: Sequence[float] | FloatArray | int = 10,
        *,
        exploration: float = 1.0,
        **options: Any,
    ) -> None:
        self._exploration = check_positive("exploration", exploration, "; try 1")
        super().__init__(n_arms, limits, **options)

    def _learn_from(self, number: int, arm: int, limit: float, worths: FloatArray) -> None:
        played = self._grid() == limit
        self._first[arm] += played
        self._second[arm] += np.where(played, worths, 0.0)

    def _choose(
        self, extra: FloatArray, all_extra: FloatArray, under_way: IntArray, allowed: BoolArray
    ) -> Pull:
        counts = self._first + under_way
        # Pulls under way count as ones that came out like those before.
        sums = self._second / np.maximum(self._first, 1.0) * counts
        level = self._exploration * math.log(self.pulls + int(all_extra.sum()) + 1)
        return self._pull_of(highest_pair(counts, sums, self._pairs(allowed), level))

    def _loop(self) -> tuple[Any, float]:
        return compiled(play_ucb, take_outcome, highest_pair), self._exploration


class LimitThompson(_PairPolicy):
    """Thompson sampling over all pairs of arm and limit: Appendix E.1, Eq. 32.

    Every pair is played once, the rest of the time the one with the largest draw from its Beta
    posterior. A pull updates all limits up to its own by a trial with the scaled gain for
    probability.

    Parameters
    ----------
    n_arms, limits, **options
        See `LimitUCB`.
    seed
        Seed of the draws.

    Examples
    --------
    >>> policy = LimitThompson(3, [1.0, 2.0], reward_range=(0, 1), seed=0)
    >>> policy.ask(2)
    [Pull(arm=0, fidelity=0, limit=1.0), Pull(arm=0, fidelity=0, limit=2.0)]
    """

    def __init__(
        self,
        n_arms: int,
        limits: Sequence[float] | FloatArray | int = 10,
        *,
        seed: int = 0,
        **options: Any,
    ) -> None:
        self._seed = check_count("seed", seed, 0)
        super().__init__(n_arms, limits, **options)

    def _learn_from(self, number: int, arm: int, limit: float, worths: FloatArray) -> None:
        told = self._grid() <= limit
        draws = np.random.default_rng((self._seed, 0, number)).random(len(worths))
        self._first[arm] += told & (draws < worths)
        self._second[arm] += told & (draws >= worths)

    def _choose(
        self, extra: FloatArray, all_extra: FloatArray, under_way: IntArray, allowed: BoolArray
    ) -> Pull:
        rng = np.random.default_rng((self._seed, 1, self.pulls, int(all_extra.sum())))
        played = (self.plays + under_way).astype(np.float64)
        pair = drawn_pair(self._first, self._second, played, self._pairs(allowed), rng)
        return self._pull_of(pair)

    def _loop(self) -> tuple[Any, tuple[FloatArray, np.random.Generator]]:
        rng = np.random.default_rng((self._seed, 2, self.pulls))
        argument = self.plays.astype(np.float64), rng
        return compiled(play_thompson, take_outcome, drawn_pair), argument


# The loops, which numba can compile.


def highest_pair(counts: FloatArray, sums: FloatArray, active: BoolArray, level: float) -> int:
    """The pair with the largest upper bound, the first that was never played, or -1."""
    best, best_pair = -math.inf, -1
    n_points = int(counts.shape[1])
    for arm in range(counts.shape[0]):
        for point in range(n_points):
            if active[arm, point]:
                count = counts[arm, point]
                if count == 0.0:
                    return arm * n_points + point
                index = sums[arm, point] / count + math.sqrt(0.5 * level / count)
                if index > best:
                    best, best_pair = index, arm * n_points + point
    return best_pair


def drawn_pair(
    successes: FloatArray,
    failures: FloatArray,
    played: FloatArray,
    active: BoolArray,
    rng: np.random.Generator,
) -> int:
    """The pair with the largest draw from its posterior, the first never played, or -1."""
    best, best_pair = -math.inf, -1
    n_points = int(successes.shape[1])
    for arm in range(successes.shape[0]):
        for point in range(n_points):
            if active[arm, point] and played[arm, point] == 0.0:
                return arm * n_points + point
    for arm in range(successes.shape[0]):
        for point in range(n_points):
            if active[arm, point]:
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
        pair = highest_pair(counts, sums, pairs.active, level)
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
    pairs: Pairs, block: Block, played: int, before: int, plays_and_rng: Any
) -> tuple[int, int]:
    """Play `LimitThompson` until all rounds are played, or an arm has no outcome left.

    See `play_ucb`.
    """
    successes, failures = pairs.first, pairs.second
    plays, rng = plays_and_rng
    n_points = successes.shape[1]
    while played < len(block.arms):
        pair = drawn_pair(successes, failures, plays, pairs.active, rng)
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
