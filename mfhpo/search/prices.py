"""What evaluations cost, by level and by configuration, learned from those that were paid for."""

import math
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.space import Point, SearchSpace
from mfhpo.problem import Pull

# Standard deviations of a logarithm before anything is seen: of what a feature does, of what two do
# together, of an arm's own part, of what all have in common, of a level's own part, and of a single
# evaluation.
_EFFECT, _PAIR, _OWN, _COMMON, _LEVEL, _NOISE = 1.0, 0.5, 0.4, 2.0, 1.0, 0.2
_NEIGHBOURS = 0.95  # correlation of neighbouring levels: less is set-up at the higher one
_FEWEST, _MOST = 3, 100  # payments that are learned from, of these the latest
_DRAWN = 9  # payments, at least, before any configuration is chosen
_MIDDLE = 0.5  # of a number's range
_LEAST = 1e-9  # of a price, as a coarse clock measures 0
BEYOND = 2.0
"""How many times its limit an evaluation is taken to cost that was stopped there."""

# Limits as multiples of what is expected: at least, and where nothing is known of a level.
_LEAST_LIMIT, _LIMIT_AT_FIRST = 2.0, 10.0
# Limit of a configuration drawn at random, as a multiple of the median. On the development tasks a
# value costs least at 2 to 3 if a tenth takes 20 times as long; if none does, 3 costs no more than
# no limit.
_LIMIT_OF_ANY = 3.0
_MARGIN = 1.1  # of a limit beyond the multiple at which the last one ended that it is made for
_ENOUGH = 10  # ends by which it is known how far what is expected may be exceeded

_Payment: TypeAlias = tuple[int, int, int, float, bool]


class MeasuredCosts:
    """Learns the costs of levels; those that nothing was paid for are guessed.

    The `guess` says what levels may cost relative to each other, increasing. Where evaluations go
    on from checkpoints (`continues`), costs are sums of the means of steps.
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
        """True if anything was paid, so that costs are in the right unit."""
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

        The guess is scaled to match what was paid. Above, the last scale holds, unless a straight
        line through the two highest ends lower: with a cost of setting up, dear levels cost less.
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


class Prices:
    """Learns what levels cost (`MeasuredCosts`), and how much dearer some configurations are.

    The logarithm of a payment, less that of the usual cost of its level, is a linear function of
    the configuration's features, of the squares of its numbers and of the products of two features,
    plus parts of the level and of the arm, plus noise (Bayesian linear regression). An evaluation
    that was stopped is taken to cost twice its limit.

    How far payments are from what the others say of them (leave-one-out) tells what a limit is
    worth. Of the evaluations with the limit r, as a multiple of what is expected, the share F(r)
    ends in time, and they take E[min(R, r)] in the mean (both by Kaplan and Meier, since some were
    stopped). If the end of one is worth w, the best limit has the largest w F(r) - E[min(R, r)].
    """

    def __init__(self, guess: Sequence[float], *, continues: bool) -> None:
        self.usual = MeasuredCosts(guess, continues=continues)
        # Arm, levels gone on from and come to, cost, and whether it was stopped.
        self._paid: list[_Payment] = []
        apart = np.abs(np.subtract.outer(np.arange(len(guess)), np.arange(len(guess))))
        self._alike = _NEIGHBOURS**apart
        # What is added to a logarithm, by level: for all, for each column of the basis, for arms.
        self._common: FloatArray = np.zeros(len(guess))
        self._effects: FloatArray | None = None
        self._pairs: list[FloatArray] = []  # by level, for the product of each two features
        self._own: dict[int, FloatArray] = {}
        self._costs: FloatArray = np.array(self.usual.costs())
        self._learned = (0, -1)  # payments, and version of the points
        # Of what was paid lately: the multiple of what the others say of it, and whether it ended.
        self._multiples: FloatArray = np.zeros(0)
        self._ended: BoolArray = np.zeros(0, dtype=np.bool_)
        self._stopped: dict[tuple[int, int], float] = {}  # the largest limit, by arm and level
        self._numbers: BoolArray = np.zeros(0, dtype=np.bool_)

    def add(self, arm: int, start: int, level: int, cost: float, stopped: bool = False) -> None:
        """Note an evaluation's cost from level `start`, -1 for none; a limit if `stopped`."""
        self._paid.append((arm, start, level, cost, stopped))
        if stopped:
            self._stopped[arm, level] = max(cost, self._stopped.get((arm, level), 0.0))
        else:
            self.usual.add(start, level, cost)

    def learn(self, space: SearchSpace, points: Mapping[int, Point], version: int) -> None:
        """Learn from what was paid for arms that are known; `version` changes with their points."""
        if self._learned == (now := (len(self._paid), version)):
            return
        self._learned = now
        self._costs = np.array(self.usual.costs())
        known = [payment for payment in self._paid if payment[0] in points][-_MOST:]
        self._effects = None
        self._multiples, self._ended = np.zeros(0), np.zeros(0, dtype=np.bool_)
        if len(known) < _FEWEST or not space.parameters or not self.usual.any_known:
            return
        arms, which = np.unique([arm for arm, *_ in known], return_inverse=True)
        levels = np.array([level for _, _, level, *_ in known])
        costs = np.array([max(cost, _LEAST) for *_, cost, _ in known])
        self._ended = np.array([not stopped for *_, stopped in known])
        beyond = np.where(self._ended, 0.0, np.log(BEYOND))
        anew = list(map(self.usual.from_scratch, range(len(self._costs))))
        usual = [
            anew[end] if start < 0 else self._costs[end] - self._costs[start]
            for _, start, end, *_ in known
        ]
        logs = np.log(costs) + beyond - np.log(usual)
        features = space.features([points[arm] for arm in arms.tolist()])[which]
        basis = _basis(features, space.numbers)
        off = features - _MIDDLE
        covariance = _EFFECT**2 * basis @ basis.T + _PAIR**2 * (off @ off.T) ** 2
        covariance += _OWN**2 * (which[:, None] == which)
        covariance *= self._alike[np.ix_(levels, levels)]
        covariance += _COMMON**2 + _LEVEL**2 * (levels[:, None] == levels)
        covariance[np.diag_indices_from(covariance)] += _NOISE**2
        inverse = cho_solve(cho_factor(covariance, lower=True), np.eye(len(logs)))
        weights = inverse @ logs
        self._multiples = np.exp(weights / np.diag(inverse) - beyond)
        by_level = weights[:, None] * self._alike[levels]
        at_level = np.eye(len(self._alike))[levels]
        self._common = _COMMON**2 * weights.sum() + _LEVEL**2 * weights @ at_level
        self._effects = _EFFECT**2 * basis.T @ by_level
        self._pairs = [_PAIR**2 * (off.T * weight) @ off for weight in by_level.T]
        own = _OWN**2 * np.eye(len(arms))[which].T @ by_level
        self._own = dict(zip(arms.tolist(), own, strict=True))
        self._numbers = space.numbers

    def dearness(
        self,
        features: FloatArray,
        start: int | IntArray,
        end: int | IntArray,
        arms: Sequence[int] = (),
    ) -> FloatArray:
        """Return how many usual costs it takes to bring configurations from `start` to `end`, (n,).

        `features` have shape (n, d); `arms` are those that were begun.
        """
        if self._effects is None:
            return np.ones(len(features))
        logs: FloatArray = _basis(features, self._numbers) @ self._effects + self._common
        off = features - _MIDDLE
        logs += np.stack([((off @ pairs) * off).sum(axis=1) for pairs in self._pairs], axis=1)
        for row, arm in enumerate(arms):
            logs[row] += self._own.get(arm, 0.0)
        costs = self._costs
        if not self.usual.continues:  # a higher level is not cheaper
            own = np.maximum.accumulate(np.exp(logs) * costs, axis=1)
            return np.asarray(own[np.arange(len(features)), end] / costs[end])
        level = np.arange(len(costs))
        taken = (level > np.asarray(start)[..., None]) & (level <= np.asarray(end)[..., None])
        steps = np.diff(costs, prepend=0.0) * taken
        return np.asarray((np.exp(logs) * steps).sum(axis=1) / steps.sum(axis=-1))

    @property
    def longest_stopped(self) -> float:
        """The largest cost at which anything was stopped."""
        return max(self._stopped.values(), default=0.0)

    def limit(self, pull: Pull, expected: float, worth: float | None) -> float:
        """Return the cost at which an evaluation is to be stopped.

        `worth` is what its end is worth, as a multiple of its `expected` cost. None stops only
        evaluations that hang.
        """
        ended = self._multiples[self._ended]
        multiple = _LIMIT_AT_FIRST
        if worth is not None and ended.size and self.usual.count(pull.fidelity) >= _FEWEST:
            multiple = self._best_multiple(worth)
            if ended.size < _ENOUGH:  # what has ended so far is to show what is usual
                multiple = max(multiple, BEYOND * float(ended.max()))
        stopped_at = self._stopped.get((pull.arm, pull.fidelity), 0.0)
        return max(multiple * expected, BEYOND * stopped_at)

    def limit_of_any(self, level: int) -> float:
        """Return the `limit` of a configuration drawn at random; infinite while nothing was paid.

        Another one would tell as much. The first draws show usual costs, since later ones are
        chosen to be cheap.
        """
        here = (
            BEYOND * cost if stopped else cost
            for _, start, end, cost, stopped in self._paid
            if (start, end) == (-1, level)
        )
        costs = list(islice(here, _DRAWN))
        return _LIMIT_OF_ANY * float(np.median(costs)) if costs else np.inf

    def _best_multiple(self, worth: float) -> float:
        """Return the multiple of the expected cost that gains most as a limit."""
        order = np.lexsort((~self._ended, self._multiples))
        multiples, ended = self._multiples[order], self._ended[order]
        left = np.cumprod(1.0 - ended / np.arange(len(ended), 0, -1.0))
        taken = np.cumsum(np.diff(multiples, prepend=0.0) * np.append(1.0, left[:-1]))
        gains = worth * (1.0 - left) - taken
        least = int(np.searchsorted(multiples, _LEAST_LIMIT, side="right")) - 1
        at_least = -_LEAST_LIMIT  # where nothing ended before
        if least >= 0:
            at_least = gains[least] - left[least] * (_LEAST_LIMIT - multiples[least])
        larger = gains[least + 1 :]
        if not larger.size or larger.max() <= at_least:
            return _LEAST_LIMIT
        return float(_MARGIN * multiples[least + 1 + np.argmax(larger)])


def _basis(features: FloatArray, numbers: BoolArray) -> FloatArray:
    """Return the features, and squares of numbers: both ends of a range may be dear."""
    return np.hstack([features, 2.0 * (features[:, numbers] - _MIDDLE) ** 2])


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
