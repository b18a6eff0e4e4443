"""The end of a trial by others: a stop of the RunConfig, or another scheduler."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from ray.air.constants import TRAINING_ITERATION
from ray.tune.experiment import Trial
from ray.tune.result import DONE
from ray.tune.schedulers import FIFOScheduler
from ray.tune.stopper import CombinedStopper, NoopStopper, Stopper, TimeoutStopper

from mfhpo_ray.experiment.limits import CENSORED_KEY, MEMORY_KEY, unwrapped


def early_stop(stopper: Stopper | None) -> str | None:
    """Return a stopper that may end trials early, in words; a time budget ends all of them."""
    if isinstance(stopper, CombinedStopper):
        return next(filter(None, map(early_stop, stopper._stoppers)), None)
    is_harmless = isinstance(stopper, NoopStopper | TimeoutStopper | None)
    return None if is_harmless else f"RunConfig(stop={type(stopper).__name__})"


def stopped_by(
    tune_controller: Any, trial: Trial, result: Mapping[str, Any], iteration: Any
) -> str | None:
    """Return which stop of the RunConfig has ended a trial with this last flat result, or None.

    A trial that ends by itself has its last result told again: schedulers have seen its iteration.
    """
    if result.get(TRAINING_ITERATION) == iteration:
        return None
    stopper = getattr(unwrapped(tune_controller), "_stopper", None)
    return _criterion_met(trial.stopping_criterion, result) or early_stop(stopper)


def cut_by(result: Mapping[str, Any] | None, iteration: Any, stop: Mapping[str, Any]) -> str | None:
    """Return who has ended a trial with this last flat result; None if it has ended by itself.

    Without a result, it was stopped while it waited. When a training function returns, its last
    result is reported again: the searcher has seen its `iteration`. A class may say that it is
    done. Else somebody has stopped it, unless it was at a limit.
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
