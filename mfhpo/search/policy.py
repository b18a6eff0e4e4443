"""What every search knows and decides alike: arms, their values at levels, the first steps."""

import abc
import math
from bisect import insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mfhpo._validation import (
    check_costs,
    check_count,
    check_flag,
    check_index,
    check_instance,
    check_seed,
    hook,
)
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.space import Point, SearchSpace
from mfhpo.problem import Observation, Pull
from mfhpo.search.cheap_failures import CheapFailures
from mfhpo.search.prices import Prices

REDUCTION = 3  # one arm in so many goes up
FEWEST, _MOST = 9, 27  # first arms
# At every level, because a single value at the target does not say how far the levels agree.
_FIRST_EVERYWHERE = 2
_MAX_FAILURES = 3
# Once so many arms have failed for good, and none that failed had a value at the same level later,
# one failure is enough.
_ENOUGH_LEFT = 2
_STREAM = 2  # of random numbers, apart from others that are drawn from a seed and a number


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate(Pull):
    """An evaluation at the target for a shortlist's certificate: from scratch, with a new seed.

    Parameters
    ----------
    shortlist
        The arms that are compared.
    """

    shortlist: tuple[int, ...] = ()


class SearchPolicy(abc.ABC):
    """Decides whether to begin another configuration or to evaluate one at a higher level.

    Arms are numbered by whoever asks, in the order in which they are begun. If the arms are given
    (`give`), no others are begun.

    Parameters
    ----------
    costs
        Cost of an evaluation from scratch at each level, increasing; the last one is the target.
    continues
        Whether an evaluation goes on from the arm's cheaper one, so that only the difference of
        the costs is paid.
    initial
        Number of arms that are drawn at random before anything is concluded from their values.
        None: as many as one evaluation at the target pays for at the lowest level, from 9 to 27.
        A third of them goes up, and so on: the best, and where prices differ the cheapest as well.
    seed
        Of what is drawn.
    """

    def __init__(
        self,
        costs: Sequence[float],
        *,
        continues: bool = False,
        initial: int | None = None,
        seed: int = 0,
    ) -> None:
        self.costs: tuple[float, ...] = check_costs(costs)
        self.continues = check_flag("continues", continues)
        self._initial = None if initial is None else check_count("initial", initial, 2)
        # What all of the first arms, and all of the search, may take of the budget.
        self.most_of_first, self.allowance = math.inf, math.inf
        self.counts_evaluations = False  # instead of costs; cheap levels then save nothing
        self.prices: Prices | None = None  # of configurations, where these are measured and count
        # How many times more the last step gains for its cost than what would be done in its place.
        self.worth = 1.0
        # Values of the new arm that was asked for last; None: whoever asks draws them.
        self.point: Point | None = None
        self.affordable = math.inf  # what bringing an arm to the target may cost, if measured
        self._space = SearchSpace({})
        self._seed = check_seed(seed)
        self._points: dict[int, Point] = {}
        self._values: list[dict[int, list[float]]] = [{} for _ in costs]
        self._levels: dict[int, int] = {}  # the highest with a value
        self.cheap_failures = CheapFailures(len(self.costs))
        self._failures: Counter[int] = Counter()  # in a row, at an arm's present level
        self._recovered = False  # whether any arm had a value after a failure at the same level
        self._stops: Counter[int] = Counter()  # at a limit, since an arm's last value
        self._out: set[int] = set()
        self._merged: set[int] = set()
        self._gone: set[int] = set()  # no more evaluations; their values count
        self._given: tuple[int, ...] = ()  # in the order in which they are taken at random
        # Kept up to date, so that no suggestion looks through all arms: those in their order that
        # have a value at the target and did not leave; those of the history that nobody has
        # described.
        self._finished: list[int] = []
        self._unknown: set[int] = set()
        # Arm, level and value, or None where the arm left for its failures.
        self._history: list[tuple[int, int, float | None]] = []
        self._told = self._changes = 0
        self._corrections = 0  # what was said of arms that had values already

    @property
    def space(self) -> SearchSpace:
        """The parameters as far as they are known; set it when more become known."""
        return self._space

    @space.setter
    def space(self, space: SearchSpace) -> None:
        self._space = space
        self._changes += 1

    @property
    def n_first(self) -> int:
        """Number of arms drawn at random before anything is concluded from their values."""
        if self._initial is not None:
            return self._initial
        affordable = round(self.price_from(-1, self.target) / self.price_from(-1, self.lowest))
        most = _MOST if self.prices is None else FEWEST
        for n in range(min(max(affordable, FEWEST), most), 2, -1):
            counts = self.counts_of_first(n).items()
            price = sum(count * self.price_from(level - 1, level) for level, count in counts)
            if price <= self.most_of_first:
                return n
        return 2

    def counts_of_first(self, n: int) -> dict[int, int]:
        """Return how many of the first `n` arms are evaluated at each level."""
        least = min(_FIRST_EVERYWHERE, math.ceil(n / REDUCTION))
        counts = {self.lowest: n}
        for level in range(self.lowest + 1, self.target + 1):
            counts[level] = max(least, math.ceil(counts[level - 1] / REDUCTION))
        return counts

    @property
    def target(self) -> int:
        """Index of the target level."""
        return len(self.costs) - 1

    @property
    def lowest(self) -> int:
        """Index of the lowest level at which arms are evaluated; it rises where most fail."""
        return self.target if self.counts_evaluations else self.cheap_failures.lowest

    @property
    def n_given(self) -> int:
        """Number of arms that were given, 0 if the search begins arms of its own."""
        return len(self._given)

    @property
    def n_candidates(self) -> int:
        """Number of arms that were given, repeats of others not counted."""
        return len(self._given) - len(self._merged.intersection(self._given))

    def give(self, points: Sequence[Point]) -> None:
        """Say that the arms 0, 1, ... are these configurations, and that no others are begun."""
        for arm, point in enumerate(points):
            self.describe(arm, point)
        order = np.random.default_rng([self._seed, _STREAM]).permutation(len(points))
        self._given = tuple(order.tolist())

    def describe(self, arm: int, point: Point) -> None:
        """Say which configuration an arm is, without the parameters that do not apply to it."""
        if self._points.get(arm) == point:
            return
        if self.level_of(arm) >= 0:
            self._corrections += 1
        self._points[arm] = point
        self._unknown.discard(arm)
        self._changes += 1

    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from an evaluation; any order, any number of times.

        Where costs are measured, an arm that was stopped at a limit leaves the third time. Where
        they are declared, or no limit is large enough (an infinite one), it leaves at once.
        """
        check_instance("pull", pull, Pull, "a mfhpo.Pull, as it was asked for")
        check_count("arm", pull.arm, 0)
        check_index("fidelity", pull.fidelity, len(self.costs))
        check_instance("observation", observation, Observation, "a mfhpo.Observation")
        self._told += 1
        self._changes += 1
        if observation.has_value and observation.value is not None:
            had_failed = self._failures.pop(pull.arm, 0) > 0
            if self.level_of(pull.arm) < 0:
                had_failed = self.cheap_failures.recover(pull.arm, pull.fidelity)
            self._recovered |= had_failed
            self._stops.pop(pull.arm, None)
            self._learn(pull.arm, pull.fidelity, float(observation.value))
            self.cheap_failures.rise([len(values) for values in self._values])
        elif observation.censored_at is None:
            self._learn_failure(pull.arm, pull.fidelity)
        else:
            self._learn_stop(pull.arm, pull.fidelity, observation.censored_at)

    def _learn(self, arm: int, level: int, value: float) -> None:
        is_new = arm not in self._values[level]
        if level == self.target and is_new and arm not in self._unfit:
            insort(self._finished, arm)
        self._values[level].setdefault(arm, []).append(value)
        self._levels[arm] = max(level, self.level_of(arm))
        self._remember(arm, level, value)

    def _learn_failure(self, arm: int, level: int) -> None:
        self._failures[arm] += 1
        n_left = len(self._out | self.cheap_failures.given_up)
        for_good = n_left >= _ENOUGH_LEFT and not self._recovered
        had_value = self.level_of(arm) >= 0
        if not had_value:
            self.cheap_failures.add(arm, level)
            for_good |= any(arm in self.cheap_failures.at(below) for below in range(level))
            self.cheap_failures.rise([len(values) for values in self._values])
        if arm in self._out or self._failures[arm] < (1 if for_good else _MAX_FAILURES):
            return
        if had_value:
            self._leave(arm, self._out, level)
        else:
            self._fail_for_good(arm, level)

    def _learn_stop(self, arm: int, level: int, limit: float) -> None:
        self._stops[arm] += 1
        # Else that it takes long is no fault, and is known to the prices.
        is_fault = self.prices is None or math.isinf(limit)
        if arm not in self._out and self._stops[arm] >= (1 if is_fault else _MAX_FAILURES):
            self._leave(arm, self._out, level if is_fault else None)

    def _leave(self, arm: int, group: set[int], failed_at: int | None = None) -> None:
        group.add(arm)
        self._changes += 1
        if arm in self._finished:
            self._finished.remove(arm)
        if failed_at is not None:
            self._remember(arm, failed_at, None)

    def _fail_for_good(self, arm: int, level: int) -> None:
        """Let an arm without a value go on above a level, or leave (see `CheapFailures`)."""
        del self._failures[arm]
        failures = self.cheap_failures
        failures.give_up(arm, level)
        if level == self.target or failures.condemns(level):
            self._leave(arm, self._out, level)
        for below in range(level) if level == self.target else ():
            if failures.condemns(below):  # and did not before, maybe
                for other in sorted(failures.given_up.intersection(failures.at(below)) - self._out):
                    self._leave(other, self._out, below)

    def rule_out(self, arm: int) -> None:
        """Say that an arm's mean at the target is -inf: it leaves, and has not failed."""
        self._leave(arm, self._out)

    def merge(self, arm: int) -> None:
        """Say that an arm turned out to be the same as an earlier one, which has its values."""
        self._leave(arm, self._merged)

    def drop(self, arm: int) -> None:
        """Say that an arm below the target can be evaluated no more; its values still count."""
        if self.level_of(arm) < self.target:
            self._gone.add(arm)
            self._changes += 1

    def is_open(self, arm: int) -> bool:
        """Return whether an arm has not come to the target, and has not left."""
        return arm not in self._unfit and self.level_of(arm) < self.target

    @abc.abstractmethod
    def ask(self, begun: int, pending: Sequence[Pull] = ()) -> Pull | None:
        """Return what to evaluate next, maybe the new arm `begun`; None if no given one is left."""

    def leader(self) -> int | None:
        """Return the arm to recommend now: the best one at the highest level with enough values."""
        likely = self.likely_best()
        if likely:
            return likely[0]
        many, unfit = len(self._values[self.lowest]) > self.n_first, self._unfit
        for level in range(self.target, -1, -1):
            arms = [arm for arm in self._values[level] if arm not in unfit]
            too_few = many and self.lowest < level < self.target and len(arms) < FEWEST
            if arms and not too_few:
                return max(arms, key=lambda arm: (self.mean(arm, level), -arm))
        return None

    def contenders(self, most: int) -> list[int]:
        """Return finished arms that may be the best, the leader first: at most `most`."""
        finished = self.finished_arms()
        by_values = sorted(finished, key=lambda arm: (-self.mean(arm, self.target), arm))
        return (self.likely_best() or by_values)[:most]

    @hook
    def likely_best(self) -> list[int]:
        """Return finished arms that may be the best by a model, the best first; none without it."""
        return []

    @hook
    def chance(self, arm: int, epsilon: float, fresh: Mapping[int, Sequence[float]]) -> float:
        """Return how likely a finished arm is within epsilon of the best, NaN without a model.

        `fresh` has more target values by arm.
        """
        return math.nan

    def mean(self, arm: int, fidelity: int) -> float:
        """Return the mean of an arm's values at a level; NaN without any."""
        return float(np.mean(self._values[fidelity].get(arm, [math.nan])))

    def count(self, arm: int, fidelity: int) -> int:
        """Return the number of an arm's values at a level."""
        return len(self._values[fidelity].get(arm, ()))

    def finished_arms(self) -> list[int]:
        """Return the arms with a value at the target, in their order, without those that left."""
        return list(self._finished)

    def level_of(self, arm: int) -> int:
        """Return the highest level at which an arm has a value, or -1."""
        return self._levels.get(arm, -1)

    def cost_from(self, arm_level: int, fidelity: int) -> float:
        """Return the cost of an evaluation after a level, -1 for a new arm."""
        done = self.costs[arm_level] if self.continues and arm_level >= 0 else 0.0
        return self.costs[fidelity] - done

    def price_from(self, arm_level: int, fidelity: int) -> float:
        """Return `cost_from`, or 1 where evaluations are counted, to weigh steps."""
        return 1.0 if self.counts_evaluations else self.cost_from(arm_level, fidelity)

    def dearness(
        self,
        features: FloatArray,
        start: int | IntArray,
        end: int | IntArray,
        arms: Sequence[int] = (),
    ) -> FloatArray:
        """Return how many usual costs it takes to reach a level (see `Prices`); else 1."""
        if self.prices is None:
            return np.ones(len(features))
        self.prices.learn(self.space, self._points, self._changes)
        return self.prices.dearness(features, start, end, arms)

    def _remember(self, arm: int, level: int, value: float | None) -> None:
        self._history.append((arm, level, value))
        if arm not in self._points:
            self._unknown.add(arm)

    @property
    def _unfit(self) -> set[int]:
        return self._out | self._merged

    @property
    def _closed(self) -> set[int]:
        """The arms that are not asked for."""
        return self._unfit | self._gone
