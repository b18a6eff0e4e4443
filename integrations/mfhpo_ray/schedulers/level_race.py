"""Which run goes to which level next, by a policy that chooses arms and levels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mfhpo import Observation, Pull
from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo_ray.experiment.open_pulls import MOST_PASSED_OVER
from mfhpo_ray.schedulers.level_order import Arrived, LevelOrder, Place
from mfhpo_ray.schedulers.runs import Run, Runs

__all__ = ["LevelRace"]

IntArray = npt.NDArray[np.int64]

# How often the policy is asked for something else when there is no trial for what it wants.
_MOST_CHOICES = 4


class Order(NamedTuple):
    """A run, and the level that it is sent to."""

    run: Run
    level: int


class LevelRace:
    """A race over runs that pause at levels; values are told in the order of `LevelOrder`."""

    def __init__(self, policy: BestArmPolicy, runs: Runs, n_arms: int, n_levels: int) -> None:
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
        # By the names of their trials, which number the last step of a run had.
        self._steps: dict[str, int] = {}
        self._n_steps = 0
        for run in runs:
            self._note_step(run)

    @property
    def nothing_is_left(self) -> bool:
        """Whether all trials of all arms in the race are over."""
        return not any(self._runs.of(arm) for arm in self.active)

    def enter(self, run: Run) -> None:
        """Let a run take part that Ray starts itself, on its way to the first level."""
        self._note_step(run)
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
        """The level that a run is sent to which has just come to one; None if it is to pause."""
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
                self._note_step(arrived.run)

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
            self._note_step(run)

    def sweep(self, busy: Collection[Run]) -> list[Run]:
        """The runs to stop, of arms that have left the race: those under way, and held back.

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
        """What the policy wants next, and the run that it falls to, maybe the one `at_rest`."""
        under_way = [Pull(run.arm, run.granted) for run in busy if run.granted is not None]
        under_way += self.in_order.held
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
            run = self._furthest_below(wanted.arm, wanted.fidelity, at_rest)
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
        """The arm seen least often, where no trials are left for what the policy asks."""
        coming = self._seen.copy()
        for pull in under_way:
            coming[pull.arm, pull.fidelity] += 1
        for send_to in range(level, self._n_levels):
            order = np.argsort(coming[self._arms, send_to], kind="stable")
            for arm in self._arms[order].tolist():
                if self.in_order.is_full(Pull(arm, send_to), n_busy):
                    continue
                run = self._furthest_below(arm, send_to, at_rest)
                if run is not None:
                    return Order(run, send_to)
        return None

    def _furthest_below(self, arm: int, level: int, at_rest: Run | None) -> Run | None:
        """Of an arm's runs that could go to a level, the one that has come furthest, and first."""
        waiting = [
            run
            for run in self._runs.of(arm)
            if run.reached < level and (run.waits or run is at_rest)
        ]
        if not waiting:
            return None
        return min(waiting, key=lambda run: (-run.reached, self._steps[run.trial.trial_id]))

    def _note_step(self, run: Run) -> None:
        self._n_steps += 1
        self._steps[run.trial.trial_id] = self._n_steps
