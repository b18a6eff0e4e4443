"""The end of a trial by others: a stop of the RunConfig, or another scheduler."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from ray.air.constants import TRAINING_ITERATION
from ray.tune.result import DONE
from ray.tune.schedulers import FIFOScheduler

from mfhpo_ray.experiment.limits import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler, criterion_met, stopper_in_words


def cut_by(result: Mapping[str, Any] | None, iteration: Any, stop: Mapping[str, Any]) -> str | None:
    """Return who has ended a trial with this last flat result; None if it has ended by itself.

    A result of None: it was stopped while it waited or paused. A training function that returns has
    its last result reported again, so that the searcher has seen its `iteration`. A class may say
    that it is done. Else somebody has stopped it at a result that no searcher was shown: a
    criterion of ``RunConfig(stop={...})``, or a scheduler. One at a limit is none of these.
    """
    if result is not None and (CENSORED_KEY in result or MEMORY_KEY in result):
        return None
    if result is None or result.get(DONE) is False:
        return _who_stops() or "another scheduler"
    if DONE not in result or result.get(TRAINING_ITERATION) == iteration:
        return None
    return criterion_met(stop, result) or _who_stops()


def _who_stops() -> str | None:
    """Return the class of the scheduler or stopper that may end trials early; None without one.

    Tune does not tell searchers: its controller is among the callers.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        caller, frame = frame.f_locals.get("self"), frame.f_back
        scheduler = getattr(caller, "_scheduler_alg", None)
        if scheduler is not None:
            if not (type(scheduler) is FIFOScheduler or isinstance(scheduler, PullScheduler)):
                return type(scheduler).__name__
            return stopper_in_words(getattr(caller, "_stopper", None))
    return None
