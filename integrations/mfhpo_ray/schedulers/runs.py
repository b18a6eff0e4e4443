"""Which trials there are, how far each has come, and which of them hold slots."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.tune.experiment import Trial
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter

from mfhpo.experiment import Begun, Configurations, Ended, Event, Lost
from mfhpo.problem import Observation
from mfhpo_ray.experiment.configurations import described, encode, without
from mfhpo_ray.experiment.journal import EVENTS, events_in
from mfhpo_ray.experiment.processes import Limits, finite_limit, give_folder, stop_at_once

ADDED = "_again"
"""The end of a trial's name that a scheduler has added, to evaluate its configuration again."""

AGAIN = "its trial is run again"

# Seconds that a running trial of an arm that is out has to report before it is killed.
_PATIENCE = 1.0

_PARTS = 10_000  # of a resource: to these Ray rounds what it counts


@dataclass(eq=False)
class Run:
    """A trial: one replicate of an arm, and how far it has come by what was told about it."""

    trial: Trial
    arm: int
    reached: int = -1  # index of the highest level that it was observed at, -1 before the first
    reached_at: int = 0  # the counter of the event that told so
    claim: str = ""  # the id of its last claim
    begun: Begun | None = None  # that claim, while it is open
    is_sent: bool = False  # whether it is on its way there
    has_failed: bool = False  # its last claim has no value, or its trial has failed
    doomed: bool = False  # whether it is to be stopped
    is_over: bool = False  # whether its trial can go on no more
    iteration: Any = None  # of the last result that the scheduler was shown
    shown: float = 0.0  # what the time attribute, and the sum of its seconds, showed last
    seconds: float = 0.0
    # The same when it was last paid for, started or resumed; None until its first result.
    began_at: float | None = None
    began_with: float = 0.0

    @property
    def waits(self) -> bool:
        """True if it could be started or resumed now."""
        return not (self.is_sent or self.doomed) and self.trial.status == Trial.PAUSED

    @property
    def level(self) -> int:
        """Index of the level that it was sent to."""
        assert self.begun is not None
        return (self.begun.levels or (0,))[0]

    def note(self, event: Event) -> None:
        """Take note of an event about the run."""
        if isinstance(event, Begun):
            self.claim, self.begun, self.is_sent = event.id, event, True
        elif isinstance(event, Ended):
            self.has_failed = not Observation(event.value).has_value
            if event.level is not None and not self.has_failed:
                self.reached, self.reached_at = event.level, event.order
            if event.last:
                self.begun, self.is_sent = None, False
        elif isinstance(event, Lost):
            self.is_sent = False
            self.begun = self.begun if event.will_retry else None


class Runs:
    """The runs of an experiment; those of one arm differ in `replicate_keys` only."""

    def __init__(self, replicate_keys: Collection[str]) -> None:
        self._replicate_keys = tuple(replicate_keys)
        self._by_trial: dict[str, Run] = {}
        self._by_arm: defaultdict[int, list[Run]] = defaultdict(list)
        self.configurations = Configurations(describe=described)

    def __getitem__(self, trial: Trial) -> Run:
        return self._by_trial[trial.trial_id]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._by_trial.values())

    @property
    def n_arms(self) -> int:
        """Number of different arms seen so far."""
        return len(self.configurations)

    def of(self, arm: int) -> list[Run]:
        """Return the runs of an arm that are not over."""
        return self._by_arm[arm]

    def find(self, trial_id: str) -> Run | None:
        """Return the run of a trial, or None."""
        return self._by_trial.get(trial_id)

    def add(self, trial: Trial) -> Run:
        """Register a trial."""
        run = Run(trial, self.arm(trial.config))
        self._by_trial[trial.trial_id] = run
        self._by_arm[run.arm].append(run)
        return run

    def end(self, run: Run) -> None:
        """Note that a run's trial can go on no more."""
        if not run.is_over:
            run.is_over = True
            self._by_arm[run.arm].remove(run)

    def adapt(self, records: Mapping[str, dict[str, Any]]) -> int:
        """Let trials, and what was told, be of the same arms; return how many have no trial now.

        Ray restores tuples as lists. The failure, or the loss, of a trial that runs again is none.
        """
        self._sort()
        n_known = self.n_arms
        for name, record in records.items():
            run, events = self.find(name), events_in(record)
            if run is not None and events:
                events = _as_restored(events, run, self.configurations[run.arm])
                record[EVENTS] = [encode(event.to_dict()) for event in events]
            for event in events:
                if isinstance(event, Begun):
                    self.arm(event.configuration)
        return self.n_arms - n_known

    def _sort(self) -> None:
        """Order arms and runs as their trials were made, also in a restored experiment."""

        def number(run: Run) -> float:  # in the tag that Tune gives a trial
            number = (run.trial.experiment_tag or "").partition("_")[0]
            return float(number) if number.isdigit() else math.inf

        self._by_trial = {run.trial.trial_id: run for run in sorted(self, key=number)}
        self._by_arm.clear()
        self.configurations = Configurations(describe=described)
        for run in self:
            run.arm = self.arm(run.trial.config)
            if not run.is_over:
                self._by_arm[run.arm].append(run)

    def arm(self, config: Mapping[str, Any]) -> int:
        """Return the arm of a configuration; a new one if it was not seen before."""
        return self.configurations.add(without(config, self._replicate_keys))


# What the journal tells after a restart.


def is_over(events: Sequence[Event], target: int) -> bool:
    """Return whether a trial has nothing more to say, if it is run: it was seen to its end."""
    last = events[-1] if events else None
    if not (isinstance(last, Ended) and last.last):
        return False
    if last.value is None:
        return last.stopped_at is not None
    return last.level == target or not Observation(last.value).has_value


def _as_restored(events: list[Event], run: Run, configuration: Mapping[str, Any]) -> list[Event]:
    """Return what was told, of the trial's configuration; what is run again has not failed."""
    again = {event.retry_of for event in events if isinstance(event, Begun)}
    if not run.trial.is_finished():
        again.add(events[-1].id)

    def renewed(event: Event) -> Event:
        if isinstance(event, Begun):
            return replace(event, configuration=configuration)
        has_failed = isinstance(event, Ended) and event.value is None and event.stopped_at is None
        is_lost = isinstance(event, Lost) and not event.is_withdrawn
        if event.id not in again or not (has_failed or is_lost):
            return event
        cost = getattr(event, "cost", None)
        return Lost(id=event.id, order=event.order, why=AGAIN, cost=cost, will_retry=True)

    return list(map(renewed, events))


# Which of them hold slots, and whether there is room: the limit of the search, the cluster's.


def searchers_of(search: Any) -> Iterator[Any]:
    """Yield the searchers that a search algorithm wraps, the outermost first."""
    searcher = getattr(search, "searcher", None)
    while searcher is not None:
        yield searcher
        searcher = getattr(searcher, "searcher", None)


def slots_for(trial: Trial) -> float:
    """Return how many trials like this one fit into the cluster; infinite if nobody knows."""
    if not ray.is_initialized():
        return math.inf
    there, request = ray.cluster_resources(), trial.placement_group_factory
    held: dict[str, float] = {} if request is None else request.required_resources
    needed = {name: round(n * _PARTS) for name, n in held.items()}
    fitting = [round(there.get(name, 0.0) * _PARTS) // n for name, n in needed.items() if n]
    return max(1.0, min(fitting, default=math.inf))


class Slots:
    """The runs that were started, with their limits, and those that are to be stopped."""

    def __init__(
        self, clock: Callable[[], float], limit: float | None, memory_limit: float | None
    ) -> None:
        self.limit = finite_limit("limit", limit)
        self.limits = Limits(clock, memory_limit)
        self.busy: dict[str, Run] = {}
        self.doomed: list[Run] = []
        self.count: Callable[[Trial], float] = slots_for  # a simulation has its own
        self._clock = clock
        self._patience_ends: dict[str, float] = {}
        self._held: Trial | None = None

    def hold(self, trial: Trial) -> None:
        """Hold a restored trial that is over: if all are, Ray makes no step of its loop."""
        if self._held is None and trial.status == Trial.TERMINATED:
            self._held = trial
            trial.set_status(Trial.PAUSED)

    def release(self, tune_controller: Any) -> None:
        """Let the trial that was held be over again, now that Ray has begun a step."""
        if self._held is not None:
            tune_controller._set_trial_status(self._held, Trial.TERMINATED)
            self._held = None

    def hold_back(self, search: Any, trial: Trial) -> None:
        """Let a new trial wait; Ray adds it to its lists after this, by the status it has then."""
        give_folder(trial)
        trial.set_status(Trial.PAUSED)
        # What is held back is not running: all others are to come as well.
        if isinstance(search, BasicVariantGenerator):
            search._live_trials.discard(trial.trial_id)
        self.live_trials(search).discard(trial.trial_id)

    def live_trials(self, search: Any) -> set[str]:
        """Return the trials that a limiter counts as under way; a new set without a limiter."""
        limiter = _limiter_of(search)
        return set() if limiter is None else limiter.live_trials

    def take(self, run: Run) -> None:
        """Note that a run is started or resumed, with its own limit if it has one."""
        self.busy[run.trial.trial_id] = run
        run.began_at = None
        own = None if run.begun is None else run.begun.limit
        limit = self.limit if own is None else own
        if limit is not None:
            self.limits.set(run.trial, limit)

    def leave(self, run: Run) -> None:
        """Note that a run holds no slot any more."""
        self.busy.pop(run.trial.trial_id, None)
        self.limits.forget(run.trial)

    def ended(self) -> list[Run]:
        """Let go of the runs that neither run nor wait any more, and return them."""
        under_way = (Trial.PENDING, Trial.RUNNING)
        ended = [run for run in self.busy.values() if run.trial.status not in under_way]
        for run in ended:
            self.leave(run)
        return ended

    def has_room(self, search: Any) -> bool:
        """Return whether another trial may be started: Ray must not be told more than fit."""
        if not self.busy:
            return True
        limiter = _limiter_of(search)
        most = math.inf if limiter is None else limiter.max_concurrent
        if isinstance(search, BasicVariantGenerator):
            most = search.max_concurrent or math.inf
        room = min(most, self.number())
        if math.isinf(room):
            return all(run.trial.status == Trial.RUNNING for run in self.busy.values())
        return len(self.busy) < room

    def number(self) -> float:
        """Return how many trials the cluster can run at once; infinite if that is not known."""
        return self.count(next(iter(self.busy.values())).trial)

    def stop_doomed(self, tune_controller: Any, leave: Callable[[Run], None]) -> None:
        """Stop the doomed; a trial that runs is killed if it does not report within a second."""
        now, stopped = self._clock(), []
        doomed, self.doomed = self.doomed[::-1], []
        for run in doomed:
            trial = run.trial
            if trial.status == Trial.RUNNING:
                if now < self._patience_ends.setdefault(trial.trial_id, now + _PATIENCE):
                    # With its next result it ends by itself, and its process can be used again.
                    self.doomed.append(run)
                    continue
                stop_at_once(tune_controller, trial)
            elif not trial.is_finished():
                self.live_trials(tune_controller.search_alg).add(trial.trial_id)
                give_folder(trial)
                tune_controller.stop_trial(trial)
            self._patience_ends.pop(trial.trial_id, None)
            stopped.append(run)
        for run in stopped:
            leave(run)


def _limiter_of(search: Any) -> ConcurrencyLimiter | None:
    limiters = (each for each in searchers_of(search) if isinstance(each, ConcurrencyLimiter))
    return next((each for each in limiters if each._limit_concurrency), None)
