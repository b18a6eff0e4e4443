"""Which trials hold slots, and whether there is room for more: the search's limit, the cluster's.

Trials that are to be stopped hold theirs until then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import ray
from ray.tune.experiment import Trial
from ray.tune.search import BasicVariantGenerator, ConcurrencyLimiter
from ray.tune.utils import flatten_dict

from mfhpo_ray.experiment.limits import Limits, finite_limit, give_folder, stop_at_once
from mfhpo_ray.experiment.prices import required_resources
from mfhpo_ray.schedulers.runs import Run

# Seconds that a running trial of an arm that is out has to report before it is killed.
_PATIENCE = 1.0

MOST_SAMPLES = 1_000_000  # more are meant as "without end"
_PARTS = 10_000  # of a resource: to these Ray rounds what it counts


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
    """Return how many trials like this one fit into the cluster, at least one."""
    if not ray.is_initialized():
        return math.inf
    there = ray.cluster_resources()
    needed = {name: round(n * _PARTS) for name, n in required_resources(trial).items()}
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
    """The runs that were started, with their limits, and those that are to be stopped.

    `count` returns how many trials like this one the cluster can run; infinite if that is not
    known. Each may take `limit` seconds and `memory_limit` bytes; None for no limit.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        count: Callable[[Trial], float],
        limit: float | None,
        memory_limit: float | None,
    ) -> None:
        self.limit = finite_limit("limit", limit)
        self.limits = Limits(clock, memory_limit)
        self.busy: dict[str, Run] = {}
        self.doomed: list[Run] = []
        self._clock, self._count = clock, count
        self._patience_ends: dict[str, float] = {}
        self._held: Trial | None = None

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
        return self._count(next(iter(self.busy.values())).trial)

    def stop_doomed(self, tune_controller: Any) -> list[Run]:
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
        return stopped


def _limiter_of(search: Any) -> ConcurrencyLimiter | None:
    limiters = (each for each in searchers_of(search) if isinstance(each, ConcurrencyLimiter))
    return next((each for each in limiters if each._limit_concurrency), None)
