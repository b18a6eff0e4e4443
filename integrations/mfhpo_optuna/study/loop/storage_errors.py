"""Trials that fail because their storage does: that says nothing about what they evaluate."""

import json
import sys
import time
import traceback
from collections.abc import Iterator
from types import FrameType

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study._optimize import _run_trial
from optuna.trial import FrozenTrial, TrialState

from mfhpo_optuna.study.trials.attributes import STORAGE_FAILED_KEY, read_attribute, write_attribute

# What a storage raises if it does not take what it is given. A storage that is damaged raises
# ValueErrors, too.
_OBJECTIONS = (ArithmeticError, LookupError, TypeError, ValueError, UpdateFinishedTrialError)
_DAMAGE = (json.JSONDecodeError, UnicodeDecodeError)

# Of errors from another process: that they are those of a storage.
OF_STORAGE = "_mfhpo_of_storage"

# Seconds for which a storage that has failed is asked again, and between two times.
_PATIENCE, _PERIOD = 60.0, 0.2


def is_spoilt(trial: FrozenTrial, state: TrialState) -> bool:
    """Return whether a trial failed because its storage did, as was noted on it."""
    # Optuna copies the attributes of a lost trial to the one that it makes anew.
    return state == TrialState.FAIL and read_attribute(trial, STORAGE_FAILED_KEY) == trial.number


def mark_if_spoilt(study: optuna.Study, trial: FrozenTrial, state: TrialState) -> None:
    """Note on a trial that `optimize` ends at this moment whether its storage has made it fail.

    The storage may still fail: it is asked again for a minute, and then what it raises is raised.
    """
    if state != TrialState.FAIL or is_spoilt(trial, state):
        return
    if not is_of_storage(_error_of_objective(), study._storage):
        return
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            write_attribute(study, trial, STORAGE_FAILED_KEY, trial.number)
            return
        except Exception as error:
            if not is_of_storage(error, study._storage) or time.monotonic() > until:
                raise
        time.sleep(_PERIOD)


def is_of_storage(error: BaseException | None, storage: BaseStorage) -> bool:
    """Return whether an error, or its cause, came out of a storage that does not work.

    An objection to what the storage was given is no such error.
    """
    return any(_is_failure_of(each, storage) for each in with_causes(error))


def with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, the one that it was raised from, and so on, each of them once."""
    seen: list[BaseException] = []
    while error is not None and not any(error is earlier for earlier in seen):
        seen.append(error)
        yield error
        error = error.__cause__


def _is_failure_of(error: BaseException, storage: BaseStorage) -> bool:
    if getattr(error, OF_STORAGE, False):
        return True
    if not isinstance(error, Exception):  # such as Ctrl-C, wherever that comes
        return False
    if isinstance(error, _OBJECTIONS) and not isinstance(error, _DAMAGE):
        return False
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    methods = [frame for frame in frames if frame.f_code.co_varnames[:1] == ("self",)]
    return any(frame.f_locals.get("self") is storage for frame in methods)


def _error_of_objective() -> BaseException | None:
    """Return the error of the objective whose trial `optimize` ends now; None without one.

    Optuna tells a sampler that a trial has failed, but not why: only its loop knows.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _run_trial.__code__:
            error: BaseException | None = frame.f_locals.get("func_err")
            return error
        frame = frame.f_back
    return None
