"""Limits of time on running trials, kept from the loop of Tune's controller.

Tune itself cannot end a step that hangs. Its loop calls the scheduler's ``choose_trial_to_run``
about ten times a second: from there a trial is stopped and its process killed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray.air.constants import EXPR_RESULT_FILE
from ray.exceptions import RayError
from ray.tune.experiment import Trial
from ray.tune.result import DONE, TIME_TOTAL_S, TRIAL_ID

from mfhpo._validation import check_limit
from mfhpo_ray.experiment.checkpoints import saved_seconds

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

CENSORED_KEY = "mfhpo/censored_at"
"""Where the last result of a trial that was ended for its time has the limit, in seconds."""

MEMORY_KEY = "mfhpo/memory_used"
"""Where the last result of a trial that was ended for its memory has the bytes that were seen."""

_RUN_SECONDS = "time_since_restore"  # Tune's: what this run has trained, without earlier runs


def finite_limit(name: str, value: Any) -> float | None:
    """Return a limit in seconds, checked; None for no limit or an infinite one."""
    limit = check_limit(name, value)
    return None if limit is None or math.isinf(limit) else limit


@dataclass
class _Watch:
    """What is known of a trial: its limit, when this run began, what it took if ended here."""

    limit: float | None
    saved: float  # seconds of the checkpoint that this run goes on from
    began: float | None = None
    ended_after: float | None = None

    def is_beyond(self, now: float) -> bool:
        return self.limit is not None and self.began is not None and now - self.began > self.limit


class TimeLimits:
    """Ends trials that have run for longer than their limits.

    A scheduler calls `set` in ``on_trial_add``, `enforce` in ``choose_trial_to_run``, `exceeded` in
    ``on_trial_result``, `settle` in ``on_trial_complete``, and `forget` whenever a trial has ended.

    A trial's clock starts whenever the loop sees it RUNNING; the start of its process, with the
    ``setup`` of a class, is free. Each report sets the clock to what the trial says that it has
    trained in this run (``time_since_restore``), so that a slow driver is not charged. A trial
    whose last result is there is not ended.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watches: dict[str, _Watch] = {}
        self._running: set[str] = set()

    def set(self, trial: Trial, limit: float | None) -> None:
        """Limit a trial that is going to be started."""
        self._watches[trial.trial_id] = _Watch(finite_limit("limit", limit), saved_seconds(trial))

    def enforce(self, tune_controller: TuneController) -> None:
        """Start the clocks of trials that run by now, and end those beyond their limits.

        A trial that is ended here is TERMINATED at once, with its limit in its last result.
        """
        now = self._clock()
        running = {
            trial.trial_id: trial
            for trial in unwrapped(tune_controller)._running_trials
            if trial.trial_id in self._watches
        }
        for trial_id in self._running - running.keys():
            self._watches[trial_id].began = None
        self._running = set(running)
        for trial_id, trial in running.items():
            watch = self._watches.get(trial_id)
            if watch is None:  # the scheduler has ended it together with another one
                continue
            if watch.began is None:
                watch.began = now
            elif watch.is_beyond(now) and not _has_answered(tune_controller, trial):
                watch.ended_after = now - watch.began
                stop_at_once(tune_controller, trial, {CENSORED_KEY: watch.limit})

    def exceeded(self, trial: Trial, result: Mapping[str, Any]) -> bool:
        """Return whether a trial that reports is beyond its limit; the scheduler then stops it."""
        watch = self._watches.get(trial.trial_id)
        if watch is None:
            return False
        now = self._clock()
        trained = result.get(_RUN_SECONDS)
        if trained is not None:
            watch.began = now - float(trained)
        if watch.began is None or not watch.is_beyond(now):
            return False
        watch.ended_after = now - watch.began
        return True

    def seconds(self, trial: Trial) -> float:
        """Return a trial's seconds: its own count if it ended by itself, else the clock's."""
        watch = self._watches.get(trial.trial_id)
        if watch is not None and watch.ended_after is not None:
            return watch.ended_after
        result = trial.run_metadata.last_result
        if watch is not None and watch.began is not None and not _has_ended(trial):
            return self._clock() - watch.began
        return float(result.get(TIME_TOTAL_S, 0.0))

    def seconds_of_all_runs(self, trial: Trial) -> float:
        """Return a trial's seconds with those in the checkpoint that it went on from."""
        watch = self._watches.get(trial.trial_id)
        if watch is not None and watch.began is None:
            return watch.saved  # a last result is that of an earlier run
        if watch is None or _has_ended(trial):
            return self.seconds(trial)
        return watch.saved + self.seconds(trial)

    def seconds_of_failed_attempt(self, trial: Trial) -> float:
        """Return the seconds of a failed run that the results of the next run do not count."""
        return max(0.0, self.seconds_of_all_runs(trial) - saved_seconds(trial))

    def settle(self, trial: Trial) -> float | None:
        """Note in the last result of a trial at which limit it is censored, if it is.

        One that was ended for its memory counts as stopped at its limit of time.
        """
        watch = self._watches.get(trial.trial_id)
        if watch is None or watch.limit is None:
            return None
        if watch.ended_after is None and not is_over_memory(trial):
            ran = trial.run_metadata.last_result.get(_RUN_SECONDS)
            if not (self.seconds(trial) if ran is None else float(ran)) > watch.limit:
                return None
        _note(trial, {CENSORED_KEY: watch.limit})
        return watch.limit

    def forget(self, trial: Trial) -> None:
        """Drop what is known of a trial; one that is not known is no error."""
        self._watches.pop(trial.trial_id, None)
        self._running.discard(trial.trial_id)


def is_over_memory(trial: Trial) -> bool:
    """Return whether a trial was ended for its memory."""
    return MEMORY_KEY in trial.run_metadata.last_result


def stop_at_once(
    tune_controller: TuneController, trial: Trial, note: Mapping[str, Any] | None = None
) -> None:
    """Stop a trial and kill its process if it has one, whatever it does.

    The trial is TERMINATED, no error is counted, and its slot is free within hundredths of a
    second. Neither ``finally`` nor ``atexit`` of the trial runs. Ray kills its process group, its
    children and the actors that it owns as well; what a child has started in a session of its own
    stays.
    """
    controller = unwrapped(tune_controller)
    process = trial.temporary_state.ray_actor
    _note(trial, note or {})
    # Tune would wait for the process to export its model.
    trial.export_formats = None
    # With reuse_actors, Tune keeps for the next trial what counts as started.
    controller._started_actors.discard(controller._trial_to_actor.get(trial))
    controller.stop_trial(trial)
    if isinstance(process, ray.actor.ActorHandle):
        ray.kill(process)
    elif process is not None:  # what stands for one in a simulation
        process.kill()


def unwrapped(tune_controller: TuneController) -> Any:
    """Return Tune's controller itself; the wrapper warns about attributes that it does not list."""
    return getattr(tune_controller, "_tune_controller", tune_controller)


def _has_ended(trial: Trial) -> bool:
    return bool(trial.run_metadata.last_result.get(DONE))


def _has_answered(tune_controller: TuneController, trial: Trial) -> bool:
    """Return whether the process has sent a result that Tune has not read, or its last one."""
    if _has_ended(trial):
        return True
    controller = unwrapped(tune_controller)
    manager = getattr(controller, "_actor_manager", None)
    if manager is None:
        return False
    sent = manager._tracked_actors_to_task_futures.get(controller._trial_to_actor.get(trial), ())
    awaited = set(manager._actor_task_events.get_futures()).intersection(sent)
    return bool(awaited) and bool(ray.wait(list(awaited), timeout=0)[0])


def _note(trial: Trial, note: Mapping[str, Any]) -> None:
    """Add to the last result, so that Tune does not ask a process that hangs."""
    result = trial.run_metadata.last_result
    if not result.keys() - {TRIAL_ID}:
        result = {"config": trial.config, **_first_result(trial)}
    # Assigned, not changed in place, which would not reach the experiment's state on disk.
    trial.run_metadata.last_result = {**result, TRIAL_ID: trial.trial_id, **note}


def _first_result(trial: Trial) -> dict[str, Any]:
    """Return what Tune knows about a trial before its first report, such as its host."""
    known = trial._default_result_or_future
    if isinstance(known, ray.ObjectRef):
        if not ray.wait([known], timeout=0)[0]:
            return {}
        try:
            known = ray.get(known)
        except RayError:
            return {}
    return dict(known or {})


def give_folder(trial: Trial) -> None:
    """Give a trial that may never report the folder and the results file that Ray expects."""
    if trial.storage is not None and ray.is_initialized():
        trial.init_local_path()
        if trial.local_path is not None:
            Path(trial.local_path, EXPR_RESULT_FILE).touch()
