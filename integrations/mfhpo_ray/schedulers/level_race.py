"""The levels of trials, how far each has come, and which goes to which level next."""

import math
import warnings
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from ray.tune.result import DONE, TIME_TOTAL_S

from mfhpo._validation import check_count, check_number, check_numbers, shown
from mfhpo.experiment import Assignment, Begun, Done, Ended, Event, Experiment, Found, Lost
from mfhpo.identification.curves.curves import check_reduction_factor, check_steps
from mfhpo.identification.curves.declared_bounds import Bound
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.problem import Observation
from mfhpo.racing.race import Race
from mfhpo.search import BudgetedSearch
from mfhpo_ray.experiment.journal import DRIVER, EventLog
from mfhpo_ray.experiment.processes import loses_nothing_by_a_pause, saved_metrics
from mfhpo_ray.experiment.results import value_in
from mfhpo_ray.schedulers.promotion import Promotion
from mfhpo_ray.schedulers.runs import AGAIN, Run, Runs

Choice: TypeAlias = tuple[Run, Assignment]

_MAX_T = 100  # where nobody says when a trial is complete: as in Tune's own schedulers
_RESUMPTION = "resumption"


def levels_of(
    max_t: int | None, own: dict[str, Any], bias: Mapping[float, Bound] | None = None
) -> tuple[float, ...]:
    """Take options out of a scheduler's own; return levels: given, of bounds, or geometric."""
    names = ("levels", "grace_period", "reduction_factor")
    levels, grace_period, reduction_factor = given = tuple(own.pop(name) for name in names)
    needs_max_t = bias is not None and max_t is None
    if needs_max_t or (levels is not None and (bias is not None or max_t is not None)):
        raise ValueError(
            f"give either max_t, the time at which a trial is complete, or levels; with "
            f"bias={{level: bound}} max_t, got max_t={shown(max_t)} and levels={shown(levels)}."
        )
    beside = "levels" if bias is None else "bias={level: bound}"
    for name, value in zip(names[1:], given[1:], strict=True):
        if value is not None and not (levels is None and bias is None):
            raise ValueError(f"{name}={shown(value)} has no part beside {beside}; leave it out.")
    if levels is not None:
        return tuple(check_numbers("levels", levels, "a list of numbers or None"))
    last = check_count("max_t", _MAX_T if max_t is None else max_t, 1)
    if bias is not None:
        if max(bias) >= last:
            raise ValueError(f"levels of bias must be below max_t={last}, got {max(bias):g}.")
        return (*bias, last)
    first = 1 if grace_period is None else check_count("grace_period", grace_period, 1, last)
    factor = 3.0 if reduction_factor is None else check_reduction_factor(reduction_factor)
    return check_steps(last, factor, first)


class Meter:
    """Follows runs by their results over levels, and charges for increments."""

    def __init__(self, fidelity: Fidelity) -> None:
        self.levels = tuple(fidelity.levels or ())
        self._name = fidelity.name
        self._has_warned = False
        self._costs = fidelity.costs_of(self.levels)  # None where they are measured

    def note(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in how far a run has come, and where it set out if this is its first result."""
        if self._name not in result:
            raise ValueError(
                f"time_attr={self._name!r} is not in a trial's result, which has {sorted(result)}; "
                f"report it, or name one of these."
            )
        time = check_number(self._name, result[self._name])
        if run.began_at is None:
            saved = saved_metrics(run.trial)
            began_at = float(saved.get(self._name, 0.0))
            if began_at > time or (began_at == time and not result.get(DONE)):
                began_at, saved = 0.0, {}  # it began anew though it has a checkpoint
            run.began_at, run.began_with = began_at, float(saved.get(TIME_TOTAL_S, 0.0))
        run.shown, run.seconds = time, float(result.get(TIME_TOTAL_S, 0.0))

    def stage(self, run: Run) -> int:
        """Return the index of the last level that a run has come to; -1 before the first."""
        return bisect_right(self.levels, run.shown) - 1

    def warn_if_short(self, run: Run) -> None:
        """Warn, once, of a trial that has ended before the level that it was sent to."""
        level = self.levels[run.level]
        if run.shown >= level or self._has_warned:
            return
        self._has_warned = True
        warnings.warn(
            f"trial {run.trial.trial_id} ended at {self._name}={run.shown:g}, before the level "
            f"{level!r}: its last value counts as the one there, and so will others. Give "
            f"max_t={run.shown:g}, or levels that trials reach.",
            stacklevel=2,
        )

    def pay(self, run: Run) -> float:
        """Return what a run has cost as far as it has reported; it is paid then."""
        if run.began_at is None:
            return 0.0
        times, seconds = (run.began_at, run.shown), run.seconds - run.began_with
        run.began_at, run.began_with = run.shown, run.seconds
        if self._costs is None:
            return max(0.0, seconds)
        # Linear between the levels.
        paid, cost = np.interp(times, (0.0, *self.levels), (0.0, *self._costs))
        return max(0.0, float(cost - paid))


class LevelRace:
    """Runs that pause at levels, and go on as an experiment assigns levels to configurations.

    Some of its `n_arms` configurations may be suggested later.
    """

    keeps_those_out = True  # an arm that is put back needs its trials that wait

    def __init__(
        self,
        log: EventLog,
        runs: Runs,
        metric: str,
        meter: Meter,
        n_arms: int,
        promotion: Promotion | None = None,
    ) -> None:
        self.log, self._runs, self._metric, self._meter = log, runs, metric, meter
        self._n_arms, self._promotion = n_arms, promotion
        self._last = len(meter.levels) - 1
        self._has_warned = False  # of trials that somebody has stopped
        self._found: list[dict[str, Any]] = []
        self._arms: dict[int, int] = {}  # those of the runs, by the experiment's
        self._knows_resumption = False
        for event in self.experiment.events:  # before a restart
            self._note(event)

    @property
    def experiment(self) -> Experiment:
        """The experiment, to be read."""
        return self.log.experiment

    @property
    def out(self) -> set[int]:
        """The arms that have left the race; a search lets nobody go."""
        policy = self.experiment.runner.policy
        if isinstance(policy, BudgetedSearch):
            return set()
        return set(range(self._n_arms)).difference(policy.active.tolist())

    def to_stop(self) -> list[Run]:
        """Return the runs of arms that have left, but for those that wait and are kept."""
        left = [run for arm in sorted(self.out) for run in self._runs.of(arm)]
        if not self.keeps_those_out:
            return left
        held = self.experiment.ledger.held
        return [run for run in left if run.begun is not None or (run.claim, run.reached) in held]

    def next(self) -> Run | None:
        """Send the run that is to be started or resumed, and return it; None for none."""
        if (chosen := self._choose()) is None:
            return None
        self._send(*chosen)
        return chosen[0]

    def send_first(self, run: Run) -> None:
        """Send a new run that was suggested, and that Ray starts itself, to the first level."""
        self._send(run)

    def take(self, run: Run, result: Mapping[str, Any]) -> bool:
        """Take a result in; return whether the run has come to where it was sent."""
        self._meter.note(run, result)
        stage, value = self._meter.stage(run), value_in(result, self._metric)
        if value is None or stage < run.level:
            return False
        self._tell(run, value, stage)
        promotion, is_last = self._promotion, run.reached == self._last
        if promotion is not None and not (is_last or self._knows_resumption):
            resumes = loses_nothing_by_a_pause(run.trial, result)  # the plan depends on it
            order, budget = self.experiment.order, promotion.budget(resumes)
            self._record(Found(id=_RESUMPTION, order=order, resumes=resumes, budget=budget))
        return True

    def goes_on(self, run: Run, result: Mapping[str, Any]) -> bool:
        """Send a run at rest to a level, if it is what the experiment wants; else it pauses."""
        # Before its value counts, the quick ones would be the first at the next level, too.
        is_held = (run.claim, run.reached) in self.experiment.ledger.held
        chosen = None if is_held else self._choose(run)
        if chosen is None or chosen[0] is not run:
            return False
        self._send(*chosen)
        return True

    def take_last(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in the last result of a trial: there will be no other value of it, at any level."""
        self._meter.note(run, result)
        self._meter.warn_if_short(run)
        value = value_in(result, self._metric)
        self._tell(run, math.nan if value is None else value, self._last)

    def take_cut(self, run: Run, result: Mapping[str, Any], who: str) -> None:
        """Take in the last result of a trial that somebody has stopped: for levels it came to."""
        self._meter.note(run, result)
        last, value = self._meter.stage(run), value_in(result, self._metric)
        if run.begun is not None and last >= run.level and value is not None:
            self._tell(run, value, last)
            return
        self.lose(run, f"{who} stopped trials", is_cut=True)
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{who} has stopped trial {run.trial.trial_id} before its end: it is paid, and "
                f"gives neither a value nor a failure there. Drop it: the scheduler stops what is "
                f"not worth going on, and limit=... what hangs.",
                stacklevel=2,
            )

    def cost_of(self, run: Run) -> float:
        """Return what a run has cost since that was asked for last."""
        return self._meter.pay(run)

    # What is told.

    def end(self, run: Run, value: float | None, **how: Any) -> None:
        """Tell what a run has shown, at the level where it was sent to; None: it failed."""
        if "cost" not in how:
            how["cost"] = self.cost_of(run)
        how.setdefault("level", run.level)
        self._record(Ended(id=run.claim, order=self.experiment.order, value=value, **how))

    def lose(self, run: Run, why: str = AGAIN, **how: bool) -> None:
        """Tell that a run does not come to where it was sent, without its arm's fault."""
        if run.begun is not None:
            order, cost = self.experiment.order, self.cost_of(run)
            self._record(Lost(id=run.claim, order=order, why=why, cost=cost, **how))

    def find(self, **found: Any) -> None:
        """Tell what was found out; it is not stored, as it may be different after a restart."""
        if found not in self._found:
            self._found.append(found)
            id = f"{DRIVER}_{len(self._found)}"  # of two with one id, only the later holds
            self.experiment.apply(Found(id=id, order=self.experiment.order, **found))

    def settle(self, out: set[int]) -> None:
        """Give up the claims of runs that Ray will not go on with; others are sent again."""
        for id in self.experiment.open:
            run = self._run_of(id)
            if run is not None and not run.trial.is_finished():
                run.is_sent = False
            else:
                is_withdrawn = self.experiment.ledger.open[id].pull.arm in out
                why, order = "the driver has died", self.experiment.order
                self._record(Lost(id=id, order=order, why=why, is_withdrawn=is_withdrawn))

    def send_again(self) -> Run | None:
        """Send a run again that failed on its way, or was on it when the driver died."""
        lost = [run for run in self._runs if run.begun is not None and run.waits]
        first = min(lost, key=lambda run: self.experiment.claim(run.claim).order, default=None)
        if first is not None and first.begun is not None:
            order, of = self.experiment.order, first.claim
            id = f"{first.trial.trial_id}:{order}"
            self._record(replace(first.begun, id=id, order=order, retry_of=of, origin="retry"))
        return first

    def has_more(self) -> bool:
        """Return whether a trial was added, or is waiting, now that all are over."""
        return self._promotion is not None and self._choose() is not None

    def _send(self, run: Run, work: Assignment | None = None, **how: Any) -> None:
        """Send a run to a level and those above it, as assigned or else as it was suggested."""
        order, first = self.experiment.order, run.reached + 1 if work is None else work.level
        id, levels = f"{run.trial.trial_id}:{order}", tuple(range(first, self._last + 1))
        if work is not None:
            self._record(work.begun(id, order, levels=levels))
            return
        how |= {"purpose": self.experiment.runner.purpose, "origin": "enqueued", "levels": levels}
        configuration = self._runs.configurations[run.arm]
        self._record(Begun(id=id, order=order, configuration=configuration, **how))

    def _record(self, event: Event) -> None:
        self.log.tell(event)
        self._note(event)

    def _note(self, event: Event) -> None:
        run = self._run_of(event.id)
        if run is not None:
            run.note(event)
        self._knows_resumption |= event.id == _RESUMPTION

    def _run_of(self, id: str) -> Run | None:
        return self._runs.find(id.partition(":")[0])

    def _tell(self, run: Run, value: float, last: int) -> None:
        """Tell the value of a run at its level, and at others that it has jumped over."""
        first = run.level
        last = last if Observation(value).has_value else first
        for level in range(first, last + 1):
            self.end(run, value, level=level, last=level == last)

    def _choose(self, at_rest: Run | None = None) -> Choice | None:
        """Return the run to send next, maybe the one `at_rest`, and where; None for none."""
        absent: list[int] = []
        again: set[int] = set()
        if self._promotion is not None and self._promotion.repeats:
            again = {run.arm for run in self._runs if run.reached == self._last}

        def is_available(number: int, configuration: Mapping[str, Any], level: int) -> bool:
            arm = self._arms.get(number)
            if arm is None:
                arm = self._arms[number] = self._runs.arm(configuration)
            may_add = level == self._last and arm in again
            if may_add or self._run_below(arm, level, at_rest):
                return True
            absent.append(level)
            return False

        work = self.experiment.next(available=is_available)
        if isinstance(work, Assignment):
            arm = self._runs.arm(work.configuration)
            run = self._run_for(work, arm, at_rest)
            if run is None and self._promotion is not None and at_rest is None:
                run = self._promotion.add(arm, (event.id for event in self.experiment.events))
            return None if run is None else (run, work)
        if not absent and self._runs.n_arms < self._n_arms:
            absent.append(0)  # for an arm that was not suggested yet
        is_stuck = absent and not isinstance(work, Done)
        return self._substitute(absent[0], at_rest) if is_stuck else None

    def _substitute(self, first: int, at_rest: Run | None) -> Choice | None:
        """Return the arm seen least often, where no trials are left for what is wanted."""
        experiment = self.experiment
        runner = experiment.runner
        policy = runner.policy
        if not isinstance(policy, Race) or policy.winner is not None:
            return None  # a winner is evaluated more often, and others cannot help with that
        coming = policy.counts
        for pull in experiment.ledger.pending():
            coming[pull.arm, pull.fidelity] += 1
        arms, full = policy.active, experiment.ledger.full
        for level in range(first, self._last + 1):
            for arm in arms[np.argsort(coming[arms, level], kind="stable")].tolist():
                is_full = (arm, level, runner.purpose) in full
                run = None if is_full else self._run_below(arm, level, at_rest)
                if run is not None:
                    work = experiment.next(fixed=(runner.configurations[arm], level))
                    return (run, work) if isinstance(work, Assignment) else None
        return None

    def _run_for(self, work: Assignment, arm: int, at_rest: Run | None) -> Run | None:
        """Return the run of an arm to send; one that judges the search has none of its seeds."""
        if self._promotion is None or work.purpose == "search":
            return self._run_below(arm, work.level, at_rest)
        claim, seed_of = self.experiment.claim, self._promotion.seed_of
        begun = (run for run in self._runs if run.claim)
        seen = {seed_of(run) for run in begun if claim(run.claim).purpose == "search"}
        waiting = (run for run in self._runs.of(arm) if run.waits and not run.claim)
        return next((run for run in waiting if seed_of(run) not in seen), None)

    def _run_below(self, arm: int, level: int, at_rest: Run | None) -> Run | None:
        """Return the run below a level with the least left to pay: of equals, the first there."""
        free = [
            run
            for run in self._runs.of(arm)
            if run.reached < level and (run is at_rest or (run.begun is None and run.waits))
        ]
        if free:  # without those whose last value waits for runs that were sent before them
            held = self.experiment.ledger.held
            free = [run for run in free if run is at_rest or (run.claim, run.reached) not in held]
        return min(free, key=lambda run: (-run.reached, run.reached_at), default=None)
