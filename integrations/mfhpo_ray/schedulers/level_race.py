"""Which run goes to which level next, by a policy that chooses arms and levels."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from ray.tune.experiment import Trial

from mfhpo import Observation, Pull
from mfhpo.knowledge.arrays import IntArray
from mfhpo.racing.race import Race
from mfhpo_ray.experiment.open_pulls import MOST_PASSED_OVER, is_spent
from mfhpo_ray.schedulers.level_order import Arrived, LevelOrder, Place
from mfhpo_ray.schedulers.runs import Run, Runs

# How often the policy is asked for something else when there is no trial for what it wants.
_MOST_CHOICES = 4


class Order(NamedTuple):
    """A run, and the level that it is sent to."""

    run: Run
    level: int


class LevelRace:
    """A race over runs that pause at levels; values are told in the order of `LevelOrder`."""

    def __init__(self, policy: Race, runs: Runs, n_arms: int, n_levels: int) -> None:
        self.policy = policy
        # Which runs are on their way, and what waits for them.
        self.in_order = LevelOrder()
        # The arms in the race.
        self.active = set(range(n_arms))
        self._runs = runs
        self._n_levels = n_levels
        self._arms: IntArray = np.arange(n_arms)  # the active ones, in order
        # How often each arm has shown a value at each level.
        self._seen: IntArray = np.zeros((n_arms, n_levels), dtype=np.int64)
        self._ladder = Ladder(n_arms, n_levels)
        for run in runs:
            if run.arm < n_arms:
                self._ladder.put(run)

    @property
    def nothing_is_left(self) -> bool:
        """Whether all trials of all arms in the race are over."""
        return not any(self._runs.of(arm) for arm in self.active)

    def enter(self, run: Run) -> None:
        """Let a run take part that Ray starts itself, on its way to the first level."""
        self._ladder.put(run)
        self.in_order.send(run, 0)

    def choose(self, busy: Collection[Run]) -> Order | None:
        """Send a run to a level, as the policy wants next; None if none can go."""
        again = self.in_order.next_to_be_sent_again()
        if again is not None:
            return Order(*again)
        order = self._order(busy, None)
        if order is not None:
            self.in_order.send(*order)
        return order

    def go_on(self, run: Run, busy: Collection[Run]) -> int | None:
        """Return the level to which a run at rest goes on; None if it is to pause."""
        # A run goes on when its value counts: else the quick ones would be the first at the next
        # level, too.
        order = None if run.held else self._order(busy, run)
        if order is None or order.run is not run:
            return None
        self.in_order.send(*order)
        return order.level

    def take_in(self, released: Iterable[Arrived]) -> None:
        """Tell the policy of what has come to levels, whose turn it is now."""
        for arrived in released:
            self._tell(arrived.pull, arrived.observation)
            if arrived.run is not None:
                self._ladder.put(arrived.run)

    def recover(
        self,
        arrivals: Sequence[tuple[int, Place, Arrived]],
        alive: Mapping[str, Run],
        restored: Iterable[Run],
    ) -> None:
        """Take in what was written before a restart of the `restored` runs."""
        for arrived in self.in_order.restore(arrivals, alive):
            self._tell(arrived.pull, arrived.observation)
        for run in restored:
            self._ladder.put(run)

    def sweep(self, busy: Collection[Run]) -> list[Run]:
        """Return the runs to stop of arms that have left the race: under way, or held back.

        Those that wait do so until the end: an arm that is put back needs them.
        """
        arms = self.policy.active
        if np.array_equal(arms, self._arms):
            return []
        left = self.active.difference(arms.tolist())
        self._arms, self.active = arms, set(arms.tolist())
        held_back = [run for arm in left for run in self.in_order.cut(arm)]
        sent = [run for run in busy if run.granted is not None and run.arm not in self.active]
        return held_back + sent

    def _tell(self, pull: Pull, observation: Observation) -> None:
        self.policy.tell(pull, observation)
        self._seen[pull.arm, pull.fidelity] += observation.has_value

    def _order(self, busy: Collection[Run], at_rest: Run | None) -> Order | None:
        """Return what the policy wants next and the run for it, maybe the one `at_rest`."""
        held = self.in_order.held
        if held and is_spent(self.policy, self.in_order.held_cost):
            return None
        under_way = [Pull(run.arm, run.granted) for run in busy if run.granted is not None]
        under_way += held
        absent: list[Pull] = []
        passed_over: list[Pull] = []
        while len(absent) < _MOST_CHOICES:
            pulls = self.policy.ask(1, [*under_way, *passed_over, *absent])
            if not pulls:
                return None
            wanted = pulls[0]
            if self.in_order.is_full(Pull(wanted.arm, wanted.fidelity), len(busy)):
                if passed_over.count(wanted) >= MOST_PASSED_OVER:
                    break
                passed_over.append(wanted)
                continue
            # The run that has come furthest has the least left to pay.
            run = self._ladder.furthest_below(wanted.arm, wanted.fidelity, at_rest)
            if run is not None:
                return Order(run, wanted.fidelity)
            if wanted in absent:
                break  # it would ask for nothing else
            absent.append(wanted)
        if not absent or self.policy.winner is not None:
            return None  # a winner is evaluated more often, and others cannot help with that
        return self._substitute(absent[0].fidelity, under_way, len(busy), at_rest)

    def _substitute(
        self, level: int, under_way: Sequence[Pull], n_busy: int, at_rest: Run | None
    ) -> Order | None:
        """Choose the arm seen least often, where no trials are left for what the policy asks."""
        coming = self._seen.copy()
        for pull in under_way:
            coming[pull.arm, pull.fidelity] += 1
        for send_to in range(level, self._n_levels):
            arms = self._ladder.with_runs_below(self._arms, send_to)
            for arm in arms[np.argsort(coming[arms, send_to], kind="stable")].tolist():
                if self.in_order.is_full(Pull(arm, send_to), n_busy):
                    continue
                run = self._ladder.furthest_below(arm, send_to, at_rest)
                if run is not None:
                    return Order(run, send_to)
        return None


class Ladder:
    """Where the runs of each arm stand, so that none has to be searched for."""

    def __init__(self, n_arms: int, n_levels: int) -> None:
        self._n_levels = n_levels
        # Which level is next for a run, by the name of its trial.
        self._following: dict[str, int] = {}
        # For an arm and the level that is next, the runs in the order in which they came there.
        self._rungs: defaultdict[tuple[int, int], dict[str, Run]] = defaultdict(dict)
        # How many these are; among them are runs under way, and some that are over.
        self._numbers: IntArray = np.zeros((n_arms, n_levels), dtype=np.int64)

    def put(self, run: Run) -> None:
        """Note where a run stands; to be called again whenever it has come further."""
        self._take_off(run)
        following = run.reached + 1
        if following < self._n_levels:
            self._following[run.trial.trial_id] = following
            self._rungs[run.arm, following][run.trial.trial_id] = run
            self._numbers[run.arm, following] += 1

    def with_runs_below(self, arms: IntArray, level: int) -> IntArray:
        """Return the arms that may have a run for `furthest_below`, shape (n,)."""
        chosen: IntArray = arms[self._numbers[arms, : level + 1].any(axis=1)]
        return chosen

    def furthest_below(self, arm: int, level: int, at_rest: Run | None) -> Run | None:
        """Return the furthest of an arm's waiting runs below a level, and the one `at_rest`."""
        for following in range(level, -1, -1):
            found = None
            over = []
            for run in self._rungs[arm, following].values():
                if run.waits or run is at_rest:
                    found = run
                    break
                # Those that are under way stay; there are no more of them than slots.
                if run.doomed or run.trial.status in (Trial.TERMINATED, Trial.ERROR):
                    over.append(run)
            for run in over:
                self._take_off(run)
            if found is not None:
                return found
        return None

    def _take_off(self, run: Run) -> None:
        following = self._following.pop(run.trial.trial_id, None)
        if following is not None:
            del self._rungs[run.arm, following][run.trial.trial_id]
            self._numbers[run.arm, following] -= 1
