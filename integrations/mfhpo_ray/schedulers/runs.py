"""Which trials there are, how far each has come, and which of them hold slots."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.tune.experiment import Trial
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter
from ray.tune.utils import flatten_dict

from mfhpo.experiment import Begun, Configurations, Ended, Event, Joined, Lost
from mfhpo.problem import Observation
from mfhpo_ray.experiment.encoding import described, encode
from mfhpo_ray.experiment.journal import EVENTS, SHARED, events_in
from mfhpo_ray.experiment.limits import Limits, finite_limit, give_folder, stop_at_once
from mfhpo_ray.experiment.space import without

ADDED = "_again"
"""The end of a trial's name that a scheduler has added, to evaluate its configuration again."""

AGAIN = "its trial is run again"

# Seconds that a running trial of an arm that is out has to report before it is killed.
_PATIENCE = 1.0

MOST_SAMPLES = 1_000_000  # more are meant as "without end"
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

    def __contains__(self, trial: Trial) -> bool:
        return trial.trial_id in self._by_trial

    def __getitem__(self, trial: Trial) -> Run:
        return self._by_trial[trial.trial_id]

    def __iter__(self) -> Iterator[Run]:
        return iter(self._by_trial.values())

    @property
    def n_arms(self) -> int:
        """Number of different arms seen so far."""
        return len(self.configurations)

    @property
    def n_replicates(self) -> list[int]:
        """The number of trials of each arm, over or not, without those that were added."""
        given = (run.arm for run in self if not run.trial.trial_id.endswith(ADDED))
        return list(Counter(given).values())

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

    def sort(self) -> None:
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


def n_arms_in(records: Mapping[str, Mapping[str, Any]]) -> int | None:
    """Return the number of arms that a race was begun with; None if it was not begun."""
    joined = [event for event in events_in(records.get(SHARED)) if isinstance(event, Joined)]
    return int(json.loads(joined[0].digest)["n_arms"]) if joined else None


def is_over(events: Sequence[Event], target: int) -> bool:
    """Return whether a trial has nothing more to say, if it is run: it was seen to its end."""
    last = events[-1] if events else None
    if not (isinstance(last, Ended) and last.last):
        return False
    if last.value is None:
        return last.stopped_at is not None
    return last.level == target or not Observation(last.value).has_value


def adapt(records: Mapping[str, dict[str, Any]], runs: Runs) -> int:
    """Let trials, and what was told, be of the same arms; return how many have no trial any more.

    Ray restores tuples as lists. The failure, or the loss, of a trial that it runs again is none.
    """
    runs.sort()
    n_known = runs.n_arms
    for name, record in records.items():
        run, events = runs.find(name), events_in(record)
        if run is not None and events:
            events = _as_restored(events, run, runs.configurations[run.arm])
            record[EVENTS] = [encode(event.to_dict()) for event in events]
        for event in events:
            if isinstance(event, Begun):
                runs.arm(event.configuration)
    return runs.n_arms - n_known


def _as_restored(events: list[Event], run: Run, configuration: Mapping[str, Any]) -> list[Event]:
    """Return what was told, of the trial's configuration; what is run again has not failed."""
    again = {event.retry_of for event in events if isinstance(event, Begun)}
    if not run.trial.is_finished():
        again.add(events[-1].id)
    renewed: list[Event] = []
    for event in events:
        has_failed = isinstance(event, Ended) and event.value is None and event.stopped_at is None
        is_lost = isinstance(event, Lost) and not event.is_withdrawn
        if isinstance(event, Begun):
            renewed.append(replace(event, configuration=configuration))
        elif (has_failed or is_lost) and event.id in again:
            cost = getattr(event, "cost", None)
            lost = Lost(id=event.id, order=event.order, why=AGAIN, cost=cost, will_retry=True)
            renewed.append(lost)
        else:
            renewed.append(event)
    return renewed


# Which of them hold slots, and whether there is room: the limit of the search, the cluster's.


def searchers_of(search: Any) -> Iterator[Any]:
    """Yield the searchers that a search algorithm wraps, the outermost first."""
    searcher = getattr(search, "searcher", None)
    while searcher is not None:
        yield searcher
        searcher = getattr(searcher, "searcher", None)


def suggests(search: Any) -> bool:
    """Return whether a search algorithm suggests trials one at a time instead of listing them."""
    return next(searchers_of(search), None) is not None


def live_trials(search: Any) -> set[str]:
    """Return the trials that a limiter counts as under way; a new set without a limiter."""
    limiter = _limiter_of(search)
    return set() if limiter is None else limiter.live_trials


def slots_for(trial: Trial) -> float:
    """Return how many trials like this one fit into the cluster; infinite if nobody knows."""
    if not ray.is_initialized():
        return math.inf
    there, request = ray.cluster_resources(), trial.placement_group_factory
    held: dict[str, float] = {} if request is None else request.required_resources
    needed = {name: round(n * _PARTS) for name, n in held.items()}
    fitting = [round(there.get(name, 0.0) * _PARTS) // n for name, n in needed.items() if n]
    return max(1.0, min(fitting, default=math.inf))


def hold_back(search: Any, trial: Trial) -> None:
    """Let a new trial wait; Ray adds it to its lists after this, by the status it has then."""
    give_folder(trial)
    trial.set_status(Trial.PAUSED)
    # What is held back is not running: all others are to come as well.
    if isinstance(search, BasicVariantGenerator):
        search._live_trials.discard(trial.trial_id)
    live_trials(search).discard(trial.trial_id)


def end_unstarted(search: Any, trial: Trial, metric: str) -> None:
    """End a new trial that is not to be run, because it was observed before a restart."""
    give_folder(trial)
    trial.set_status(Trial.TERMINATED)
    # A searcher, and what limits it, was restored too, and waits for this one.
    last: dict[str, Any] = flatten_dict(trial.run_metadata.last_result)
    search.on_trial_complete(trial.trial_id, result=last if metric in last else None)


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
        """Return the runs that were started, and neither run nor wait any more."""
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
                live_trials(tune_controller.search_alg).add(trial.trial_id)
                give_folder(trial)
                tune_controller.stop_trial(trial)
            self._patience_ends.pop(trial.trial_id, None)
            stopped.append(run)
        for run in stopped:
            leave(run)


def _limiter_of(search: Any) -> ConcurrencyLimiter | None:
    limiters = (each for each in searchers_of(search) if isinstance(each, ConcurrencyLimiter))
    return next((each for each in limiters if each._limit_concurrency), None)
