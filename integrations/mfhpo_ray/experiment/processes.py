"""The processes of trials: checkpoints, and what ends them: limits, losses, others.

Tune itself cannot end a step that hangs. Its loop calls the scheduler about ten times a second.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import ray
from ray import cloudpickle
from ray.air.constants import EXPR_RESULT_FILE, TRAINING_ITERATION
from ray.exceptions import RayActorError, RayError
from ray.tune.experiment import Trial
from ray.tune.result import DONE, SHOULD_CHECKPOINT, TIME_TOTAL_S, TRIAL_ID
from ray.tune.schedulers import FIFOScheduler
from ray.tune.stopper import CombinedStopper, NoopStopper, Stopper, TimeoutStopper
from ray.tune.trainable import FunctionTrainable, Trainable
from ray.tune.utils import flatten_dict

from mfhpo._validation import check_limit
from mfhpo_ray.experiment.node_memory import Look, NodeMemory

CENSORED_KEY = "mfhpo/censored_at"
"""Where the last result of a trial that was ended for its time has the limit, in seconds."""

MEMORY_KEY = "mfhpo/memory_used"
"""Where the last result of a trial that was ended for its memory has the bytes that were seen."""

_RUN_SECONDS = "time_since_restore"  # Tune's: what this run has trained, without earlier runs
# By the controller, as the actors that measure end when nobody knows them any more.
_LOOKS: WeakKeyDictionary[Any, Look] = WeakKeyDictionary()


def loses_nothing_by_a_pause(trial: Trial, result: Mapping[str, Any]) -> bool:
    """Return whether a trial that pauses after this result goes on from there."""
    now = result.get(TRAINING_ITERATION)
    is_saved = now is not None and saved_metrics(trial).get(TRAINING_ITERATION) == now
    by_pause = not _is_function(trial) and can_be_saved(trial)
    return bool(result.get(SHOULD_CHECKPOINT)) or is_saved or by_pause


def saved_metrics(trial: Trial) -> dict[str, Any]:
    """Return the result at a trial's last checkpoint; empty without one."""
    saved = trial.latest_checkpoint_result
    return flatten_dict(saved.metrics) if saved and saved.metrics else {}


def saved_seconds(trial: Trial) -> float:
    """Return the seconds in a trial's checkpoint, which its later results count again."""
    return float(saved_metrics(trial).get(TIME_TOTAL_S, 0.0))


def can_be_saved(trial: Trial) -> bool:
    """Return whether Ray may be asked to save a trial: a class that cannot be saved would fail."""
    return _is_function(trial) or (
        trial.get_trainable_cls().save_checkpoint is not Trainable.save_checkpoint
    )


def check_reuse(tune_controller: Any, trial: Trial) -> None:
    """Raise ValueError for a class that cannot be reset: Ray fails trials, and tells nobody."""
    trainable = trial.get_trainable_cls()
    controller = getattr(tune_controller, "_tune_controller", tune_controller)
    cannot = trainable is not None and trainable.reset_config is Trainable.reset_config
    if cannot and getattr(controller, "_reuse_actors", False):
        raise ValueError(
            f"TuneConfig(reuse_actors=True) needs reset_config(self, new_config), which returns "
            f"True, and {trainable.__name__} has none; define it, or drop reuse_actors=True."
        )


def was_lost(trial: Trial) -> bool:
    """Return whether a trial failed because its process or node was gone, or it crashed."""
    if trial.run_metadata.pickled_error_filename is None or trial.local_path is None:
        return False
    try:
        error = cloudpickle.loads(Path(str(trial.pickled_error_file)).read_bytes())
    except Exception:  # an error that cannot be read back was raised by the trial
        return False
    return isinstance(error, RayActorError)


def is_tried_again(trial: Trial) -> bool:
    """Return whether Ray queues the failed trial again: not if it failed before it was running."""
    return trial.status == Trial.ERROR and bool(trial.should_recover())


def _is_function(trial: Trial) -> bool:
    return issubclass(trial.get_trainable_cls(), FunctionTrainable)


# Limits, and other ends.


def finite_limit(name: str, value: Any, unit: str = " of seconds") -> float | None:
    """Return a limit, checked; None for no limit or an infinite one."""
    limit = check_limit(name, value, unit)
    return None if limit is None or math.isinf(limit) else limit


@dataclass
class _Run:
    limit: float | None
    saved: float  # seconds of the checkpoint that it goes on from
    began: float | None = None  # by the clock; None while it does not run
    ended_after: float | None = None  # seconds, if it was ended for its time

    def is_beyond(self, now: float) -> bool:
        return self.limit is not None and self.began is not None and now - self.began > self.limit


class Limits:
    """Ends trials that run for longer than they may, or hold more memory.

    A trial's clock starts whenever the loop sees it RUNNING. Each report sets it to what the trial
    says that it has trained in this run, so that a slow driver is not charged.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        memory_limit: float | None = None,
        make_look: Callable[[float], Look] = NodeMemory,
    ) -> None:
        self._clock = clock
        self._memory_limit = finite_limit("memory_limit", memory_limit, " of bytes")
        self._make_look = make_look
        self._runs: dict[str, _Run] = {}

    def set(self, trial: Trial, limit: float | None) -> None:
        """Limit the seconds of a trial that is going to be started."""
        self._runs[trial.trial_id] = _Run(finite_limit("limit", limit), saved_seconds(trial))

    def forget(self, trial: Trial) -> None:
        """Drop what is known of a trial; one that is not known is no error."""
        self._runs.pop(trial.trial_id, None)

    def enforce(self, tune_controller: Any) -> None:
        """Start the clocks of trials that run by now, and end those beyond their limits."""
        controller = unwrapped(tune_controller)
        running = {trial.trial_id: trial for trial in controller._running_trials}
        self._end_what_is_too_long(controller, running)
        self._end_what_is_too_large(controller, running)

    def _end_what_is_too_long(self, controller: Any, running: Mapping[str, Trial]) -> None:
        now = self._clock()
        for name in self._runs.keys() - running.keys():
            self._runs[name].began = None
        for name, trial in running.items():
            run = self._runs.get(name)
            if run is None:  # without a limit, or the scheduler has ended it with another one
                continue
            if run.began is None:
                run.began = now
            elif run.is_beyond(now) and not _has_answered(controller, trial):
                run.ended_after = now - run.began
                stop_at_once(controller, trial, {CENSORED_KEY: run.limit})

    def _end_what_is_too_large(self, controller: Any, running: Mapping[str, Trial]) -> None:
        if self._memory_limit is None:
            return
        if controller not in _LOOKS:
            _LOOKS[controller] = self._make_look(self._memory_limit)
        processes = {name: trial.temporary_state.ray_actor for name, trial in running.items()}
        for name, used in _LOOKS[controller](processes).items():
            trial = running[name]
            is_ending = trial.status != Trial.RUNNING or trial.is_saving or _has_ended(trial)
            if used > self._memory_limit and not is_ending:
                stop_at_once(controller, trial, {MEMORY_KEY: used})

    def exceeded(self, trial: Trial, result: Mapping[str, Any]) -> bool:
        """Return whether a trial that reports is beyond its limit; the scheduler then stops it."""
        run, now = self._runs.get(trial.trial_id), self._clock()
        if run is None:
            return False
        if (trained := result.get(_RUN_SECONDS)) is not None:
            run.began = now - float(trained)
        if run.began is None or not run.is_beyond(now):
            return False
        run.ended_after = now - run.began
        return True

    def seconds(self, trial: Trial) -> float:
        """Return a trial's seconds, with its checkpoint's: by its own count if it ended itself."""
        run, now = self._runs.get(trial.trial_id), self._clock()
        if run is None or (_has_ended(trial) and run.ended_after is None):
            return float(trial.run_metadata.last_result.get(TIME_TOTAL_S, 0.0))
        if run.ended_after is not None:
            return run.saved + run.ended_after
        return run.saved + (0.0 if run.began is None else now - run.began)

    def seconds_of_failed_attempt(self, trial: Trial) -> float:
        """Return the seconds of a failed run that the results of the next run do not count."""
        return max(0.0, self.seconds(trial) - saved_seconds(trial))

    def settle(self, trial: Trial) -> float | None:
        """Note in a trial's last result the limit that it was censored at, also by its memory."""
        run = self._runs.get(trial.trial_id)
        if run is None or run.limit is None:
            return None
        if run.ended_after is None and not is_over_memory(trial):
            by_clock = self.seconds(trial) - run.saved
            if not trial.run_metadata.last_result.get(_RUN_SECONDS, by_clock) > run.limit:
                return None
        _note(trial, {CENSORED_KEY: run.limit})
        return run.limit


def is_over_memory(trial: Trial) -> bool:
    """Return whether a trial was ended for its memory."""
    return MEMORY_KEY in trial.run_metadata.last_result


def stop_at_once(tune_controller: Any, trial: Trial, note: Mapping[str, Any] | None = None) -> None:
    """Stop a trial and kill its process if it has one, whatever it does: it is TERMINATED."""
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


def give_folder(trial: Trial) -> None:
    """Give a trial that may never report the folder and the results file that Ray expects."""
    if trial.storage is not None and ray.is_initialized():
        trial.init_local_path()
        if trial.local_path is not None:
            Path(trial.local_path, EXPR_RESULT_FILE).touch()


def unwrapped(tune_controller: Any) -> Any:
    """Return Tune's controller itself; the wrapper warns about attributes that it does not list."""
    return getattr(tune_controller, "_tune_controller", tune_controller)


def _has_ended(trial: Trial) -> bool:
    return bool(trial.run_metadata.last_result.get(DONE))


def _has_answered(controller: Any, trial: Trial) -> bool:
    """Return whether the process has sent its last result, or one that Tune has not read."""
    if _has_ended(trial):
        return True
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
        known = trial._default_result_or_future  # such as its host
        try:
            known = ray.get(known, timeout=0) if isinstance(known, ray.ObjectRef) else known
        except RayError:  # it is not there yet, or never will be
            known = None
        result = {"config": trial.config, **(known or {})}
    # Assigned, not changed in place, which would not reach the experiment's state on disk.
    trial.run_metadata.last_result = {**result, TRIAL_ID: trial.trial_id, **note}


# Stops by others: by the RunConfig, or by another scheduler.


def early_stop(stopper: Stopper | None) -> str | None:
    """Return a stopper that may end trials early, in words; a time budget ends all of them."""
    if isinstance(stopper, CombinedStopper):
        return next(filter(None, map(early_stop, stopper._stoppers)), None)
    is_harmless = isinstance(stopper, NoopStopper | TimeoutStopper | None)
    return None if is_harmless else f"RunConfig(stop={type(stopper).__name__})"


def stopped_by(
    tune_controller: Any, trial: Trial, result: Mapping[str, Any], iteration: Any
) -> str | None:
    """Return which stop of the RunConfig has ended a trial with this last flat result, or None."""
    if result.get(TRAINING_ITERATION) == iteration:  # it ended by itself: told once more
        return None
    stopper = getattr(unwrapped(tune_controller), "_stopper", None)
    return _criterion_met(trial.stopping_criterion, result) or early_stop(stopper)


def cut_by(result: Mapping[str, Any] | None, iteration: Any, stop: Mapping[str, Any]) -> str | None:
    """Return who has ended a trial with this last flat result; None if it has ended by itself.

    Then a training function's last result is reported again, with an `iteration` that was seen, or
    a class says that it is done. Without a result, it was stopped while it waited.
    """
    if result is not None and (CENSORED_KEY in result or MEMORY_KEY in result):
        return None
    if result is None or result.get(DONE) is False:
        return _who_stops() or "another scheduler"
    if DONE not in result or result.get(TRAINING_ITERATION) == iteration:
        return None
    return _criterion_met(stop, result) or _who_stops()


def _who_stops() -> str | None:
    """Return who may end trials early, or None; Tune's controller is among the callers."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        caller, frame = frame.f_locals.get("self"), frame.f_back
        scheduler = getattr(caller, "_scheduler_alg", None)
        if scheduler is None:
            continue
        if type(scheduler) is not FIFOScheduler and getattr(scheduler, "ends_early", True):
            return type(scheduler).__name__
        return early_stop(getattr(caller, "_stopper", None))
    return None


def _criterion_met(stop: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
    """Return the criterion of ``RunConfig(stop={...})`` that a result meets, in words, or None."""
    met = (name for name, value in stop.items() if name in result and result[name] >= value)
    return next((f"RunConfig(stop={{{name!r}: {stop[name]!r}}})" for name in met), None)
