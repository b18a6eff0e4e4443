"""Trials that fail because their storage does: that says nothing about what they evaluate."""

import sys
import traceback
from types import FrameType

from optuna.exceptions import StorageInternalError
from optuna.study._optimize import _run_trial
from optuna.trial import FrozenTrial, TrialState

from mfhpo_optuna.study.attributes import STORAGE_FAILED_KEY

_STORAGES = "optuna.storages"


def counts_for_nothing(trial: FrozenTrial, state: TrialState) -> bool:
    """Whether a trial has ended because its storage failed, as whoever ran it has noted."""
    return state == TrialState.FAIL and bool(trial.user_attrs.get(STORAGE_FAILED_KEY))


def is_of_storage(error: BaseException | None) -> bool:
    """Whether an error is that of a storage, and no objection to what this was given."""
    if error is None or isinstance(error, (ValueError, TypeError)):
        return False
    if isinstance(error, StorageInternalError):
        return True
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__", "").startswith(_STORAGES) for frame, _ in frames)


def error_of_objective() -> BaseException | None:
    """The error of the objective whose trial `optimize` ends at this moment; None without one.

    Optuna tells a sampler that a trial has failed, but not why: only its loop knows.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _run_trial.__code__:
            error: BaseException | None = frame.f_locals.get("func_err")
            return error
        frame = frame.f_back
    return None
