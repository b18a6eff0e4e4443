"""Which run goes to which level next: what an experiment wants, by the trials that wait."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from ray.tune.experiment import Trial

from mfhpo.experiment import Assignment, Done
from mfhpo.experiment.kinds.race import RaceRunner
from mfhpo.knowledge.arrays import IntArray
from mfhpo.problem import LARGEST
from mfhpo_ray.experiment.checkpoints import loses_nothing_by_a_pause
from mfhpo_ray.schedulers.claims import Claims, Course, ValueOf
from mfhpo_ray.schedulers.levels import Meter
from mfhpo_ray.schedulers.promotion import Promotion
from mfhpo_ray.schedulers.runs import Run, Runs


class LevelRace(Course):
    """Runs that pause at levels, and go on as an experiment assigns levels to configurations.

    Parameters
    ----------
    claims, runs, value_of
        See `Course`; the experiment may be of any kind.
    meter
        Knows the levels, and how far runs have come.
    n_arms
        Number of configurations in the race, some of which may be suggested later.
    promotion
        Adds trials of arms that have come to the last level, to evaluate them again. None: there
        are no others than those that were given or suggested.

    Attributes
    ----------
    active
        The arms in the race.
    """

    def __init__(
        self,
        claims: Claims,
        runs: Runs,
        value_of: ValueOf,
        meter: Meter,
        n_arms: int,
        promotion: Promotion | None = None,
    ) -> None:
        super().__init__(claims, runs, value_of)
        self.active = set(range(n_arms))
        self._meter = meter
        self._n_arms = n_arms
        self._promotion = promotion
        self._n_levels = n_levels = len(meter.levels)
        self._arms: IntArray = np.arange(n_arms)  # the active ones, in order
        self._ladder = Ladder(n_arms, n_levels)
        for run in runs:
            if run.arm < n_arms:
                self._ladder.put(run)

    def is_out(self, arm: int) -> bool:
        """Return whether an arm has left the race."""
        return arm not in self.active

    def next(self) -> Run | None:
        """Send a run where the experiment wants one next; None if none can go."""
        found = self._choose(None)
        return None if found is None else self._send(*found)

    def send_first(self, run: Run) -> None:
        """Send a run to the first level, which a search algorithm has suggested."""
        self._send(run, 0)

    def take(self, run: Run, result: Mapping[str, Any]) -> bool:
        """Take a result in; return whether the run has come to its level.

        Where results are far apart, the levels that it jumps over have the same value.
        """
        self._meter.note(run, result)
        value = self._value_of(result)
        if value is None or run.shown < self._meter.levels[run.level]:
            return False
        self._tell(run, value, self._meter.stage(run))
        if self._promotion is not None and run.reached < self._n_levels - 1:
            resumes = loses_nothing_by_a_pause(run.trial, result)
            self._claims.note_resumption(resumes, self._promotion.budget(resumes))
        return True

    def goes_on(self, run: Run, result: Mapping[str, Any]) -> bool:
        """Send a run at rest to a level, if it is what the experiment wants; else it is to pause.

        It only goes on when its value counts: else the quick ones would be the first at the next
        level, too.
        """
        found = None if self._is_held(run) else self._choose(run)
        if found is None or found[0] is not run:
            return False
        self._send(*found)
        return True

    def take_last(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in the last result of a trial: there will be no other value of it, at any level."""
        self._meter.note(run, result)
        self._meter.warn_if_short(run)
        value = self._value_of(result)
        self._tell(run, math.nan if value is None else value, self._n_levels - 1)

    def cost_of(self, run: Run) -> float:
        """Return what a run has cost since that was asked for last."""
        return self._meter.pay(run)

    def to_stop(self) -> list[Run]:
        """Return the runs to stop of arms that have left the race: under way, or held back.

        Those that wait do so until the end: an arm that is put back needs them.
        """
        runner = self._claims.experiment.runner
        if not isinstance(runner, RaceRunner):
            return []  # a search lets nobody go
        arms = runner.policy.active
        if np.array_equal(arms, self._arms):
            return []
        left = self.active.difference(arms.tolist())
        self._arms, self.active = arms, set(arms.tolist())
        runs = (run for arm in sorted(left) for run in self._runs.of(arm))
        return [run for run in runs if run.begun is not None or self._is_held(run)]

    def has_more(self) -> bool:
        """Return whether a trial was added, or is waiting, now that all are over."""
        return self._promotion is not None and self._choose(None) is not None

    def _send(self, run: Run, to: Assignment | int) -> Run:
        work = None if isinstance(to, int) else to
        level = to if isinstance(to, int) else to.level
        self._ladder.put(run)
        self._claims.send(run, range(level, self._n_levels), work)
        return run

    def _tell(self, run: Run, value: float, last: int) -> None:
        """Tell the value of a run at its level and the next ones, up to the last."""
        first = run.level
        last = max(first, last) if abs(value) <= LARGEST else first
        for level in range(first, last + 1):
            self._claims.end(run, value, level=level, last=level == last)
        self._ladder.put(run)

    def _choose(self, at_rest: Run | None) -> tuple[Run, Assignment] | None:
        """Return what is wanted next and the run for it, maybe the one `at_rest`."""
        found: list[Run | None] = []
        absent: list[int] = []

        def is_available(configuration: Mapping[str, Any], level: int) -> bool:
            arm = self._runs.arm(configuration)
            run = self._furthest_below(arm, level, at_rest)
            is_there = run is not None or self._may_add(arm, level)
            if is_there:
                found.append(run)
            else:
                absent.append(level)
            return is_there

        experiment = self._claims.experiment
        work = experiment.next(available=is_available)
        if isinstance(work, Assignment):
            run = found[-1]
            if run is None and self._promotion is not None and at_rest is None:
                run = self._promotion.add(self._runs.arm(work.configuration))
                self._ladder.put(run)
            return None if run is None else (run, work)
        if not absent and self._runs.n_arms < self._n_arms:
            absent.append(0)  # for an arm that was not suggested yet
        if isinstance(work, Done) or not absent:
            return None
        return self._substitute(absent[0], at_rest)

    def _substitute(self, first: int, at_rest: Run | None) -> tuple[Run, Assignment] | None:
        """Return the arm seen least often, where no trials are left for what is wanted."""
        experiment = self._claims.experiment
        runner = experiment.runner
        if not isinstance(runner, RaceRunner) or runner.policy.winner is not None:
            return None  # a winner is evaluated more often, and others cannot help with that
        coming = runner.policy.counts
        for pull in experiment.ledger.pending():
            coming[pull.arm, pull.fidelity] += 1
        full = experiment.ledger.full
        for level in range(first, self._n_levels):
            arms = self._ladder.with_runs_below(runner.policy.active, level)
            for arm in arms[np.argsort(coming[arms, level], kind="stable")].tolist():
                if (arm, level, runner.purpose) in full:
                    continue
                run = self._furthest_below(arm, level, at_rest)
                if run is not None:
                    work = experiment.next(fixed=(runner.configurations[arm], level))
                    return (run, work) if isinstance(work, Assignment) else None
        return None

    def _may_add(self, arm: int, level: int) -> bool:
        """Return whether an arm that has come to the last level is to be evaluated again."""
        if self._promotion is None or not self._promotion.repeats or level < self._n_levels - 1:
            return False
        return any(run.arm == arm and run.reached == level for run in self._runs)

    def _furthest_below(self, arm: int, level: int, at_rest: Run | None) -> Run | None:
        """Return the run below a level that has the least left to pay."""
        for run in self._ladder.below(arm, level):
            is_free = run.waits and run.begun is None and not self._is_held(run)
            if run is at_rest or is_free:
                return run
        return None

    def _is_held(self, run: Run) -> bool:
        """Return whether a run's last value waits for those of runs sent there before it."""
        return (run.claim, run.reached) in self._claims.experiment.ledger.held


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
        following = run.reached + 1
        if self._following.get(run.trial.trial_id) == following:
            return
        self._take_off(run)
        if following < self._n_levels:
            self._following[run.trial.trial_id] = following
            self._rungs[run.arm, following][run.trial.trial_id] = run
            self._numbers[run.arm, following] += 1

    def with_runs_below(self, arms: IntArray, level: int) -> IntArray:
        """Return the arms that may have a run `below` a level, shape (n,)."""
        chosen: IntArray = arms[self._numbers[arms, : level + 1].any(axis=1)]
        return chosen

    def below(self, arm: int, level: int) -> Iterator[Run]:
        """Yield an arm's runs below a level that are not over, the furthest first."""
        for following in range(level, -1, -1):
            for run in list(self._rungs[arm, following].values()):
                if run.doomed or run.trial.status in (Trial.TERMINATED, Trial.ERROR):
                    self._take_off(run)
                else:
                    yield run

    def _take_off(self, run: Run) -> None:
        following = self._following.pop(run.trial.trial_id, None)
        if following is not None:
            del self._rungs[run.arm, following][run.trial.trial_id]
            self._numbers[run.arm, following] -= 1
