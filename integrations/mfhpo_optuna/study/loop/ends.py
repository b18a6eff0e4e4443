"""The end of ``study.optimize`` and of its trials, also by a storage that fails.

Optuna stores no end of a trial whose objective calls `sys.exit`, nor if Ctrl-C comes while it
stores one. In a notebook the process lives on, so that everybody would wait for such a trial.
"""

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TypeAlias
from weakref import WeakKeyDictionary

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study._optimize import _run_trial
from optuna.study.study import _ThreadLocalStudyAttribute
from optuna.trial import FrozenTrial, TrialState

from mfhpo_optuna.study.trials.attributes import STORAGE_FAILED_KEY, read_attribute, write_attribute

_logger = optuna.logging.get_logger(f"optuna.{__name__}")

AtEnd: TypeAlias = Callable[[BaseException | None], None]

# What a storage raises if it does not take what it is given. A storage that is damaged raises
# ValueErrors, too.
_OBJECTIONS = (ArithmeticError, LookupError, TypeError, ValueError, UpdateFinishedTrialError)
_DAMAGE = (json.JSONDecodeError, UnicodeDecodeError)

# Of errors from another process: that they are those of a storage.
OF_STORAGE = "_mfhpo_of_storage"

# Seconds for which a storage that has failed is asked again, and between two times.
_PATIENCE, _PERIOD = 60.0, 0.2


class _Watched(_ThreadLocalStudyAttribute):
    """The mark by which a study knows that its `optimize` runs."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "in_optimize_loop" and not value:
            raised = sys.exc_info()[1]
            trace = None if raised is None else raised.__traceback__
            if trace is None or trace.tb_frame is not sys._getframe(1):
                raised = None  # the loop's caller handles it: it does not end the loop
            leaving = ended_by = _behind(raised)
            for then in _then.pop(self, {}).values():
                try:
                    then(ended_by)
                except Exception as failure:
                    if leaving is not None:
                        _logger.warning(f"At the end of optimize(), this failed too: {failure!r}")
                    leaving = leaving or failure
            if leaving is not None and leaving is not raised:
                raise leaving


def _behind(error: BaseException | None) -> BaseException | None:
    """Return the error that Optuna's loop hides, failing itself, while it tells of a trial."""
    if not isinstance(error, AssertionError | UnboundLocalError):
        return error
    *_, (raised_in, _) = traceback.walk_tb(error.__traceback__)
    is_optunas = raised_in.f_code is _run_trial.__code__
    return error.__context__ or error if is_optunas else error


# For each study what is called, by whoever wants it.
_then: WeakKeyDictionary[_ThreadLocalStudyAttribute, dict[object, AtEnd]] = WeakKeyDictionary()


def call_at_end(study: optuna.Study, owner: object, then: AtEnd) -> bool:
    """Have a function called when the study's `optimize` that runs now ends.

    It is given the error that has ended it, or None. Of several by one `owner`, the last is called.
    Optuna does not tell a sampler which trial is the last one. All it does at the end is to set a
    mark in the study, so that is what is watched. False under ask and tell, which have no end.
    """
    mark = study._thread_local
    if not mark.in_optimize_loop:
        return False
    # The same object: it has a value for each thread, which another one would not have.
    mark.__class__ = _Watched
    _then.setdefault(mark, {})[owner] = then
    return True


@dataclass
class _Begun:
    """A trial that a thread has begun."""

    trial_id: int
    process: int
    thread: threading.Thread
    end: tuple[TrialState, Sequence[float] | None] | None = None  # what its sampler was told


# The trials of each study's `optimize` by number; those that have ended in order may be among them.
_begun: WeakKeyDictionary[object, dict[int, _Begun]] = WeakKeyDictionary()


def end_with_optimize(study: optuna.Study, trial: FrozenTrial) -> None:
    """Have a trial ended with `optimize` if that leaves it running: first in `before_trial`."""
    if not call_at_end(study, end_with_optimize, lambda error: _end_those_left(study, error)):
        return
    begun, here = _begun.setdefault(study._thread_local, {}), threading.current_thread()
    for number, earlier in list(begun.items()):
        if earlier.thread is here and earlier.end is not None:
            del begun[number]
    begun[trial.number] = _Begun(trial._trial_id, os.getpid(), here)


def note_end(
    study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
) -> None:
    """Note how a trial ends, in case that it is not stored: first in `after_trial`."""
    begun = _begun.get(study._thread_local, {}).get(trial.number)
    if begun is not None:
        begun.end = state, values


def _end_those_left(study: optuna.Study, error: BaseException | None) -> None:
    storage = study._storage
    for number, begun in _begun.pop(study._thread_local, {}).items():
        is_here = begun.thread is threading.current_thread()
        is_left = is_here or not begun.thread.is_alive()
        # What happens in a process that this one was forked into says nothing.
        is_ended = error is None and begun.end is not None
        if begun.process != os.getpid() or not is_left or is_ended:
            continue
        trial = storage.get_trial(begun.trial_id)
        if trial.state == TrialState.RUNNING and begun.end is not None:
            storage.set_trial_state_values(begun.trial_id, *begun.end)
        elif trial.state == TrialState.RUNNING:
            if is_of_storage(error, storage):
                write_attribute(study, trial, STORAGE_FAILED_KEY, number)
            study.tell(number, state=TrialState.FAIL)


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
    for each in with_causes(error):
        if getattr(each, OF_STORAGE, False):
            return True
        is_objection = isinstance(each, _OBJECTIONS) and not isinstance(each, _DAMAGE)
        if is_objection or not isinstance(each, Exception):  # such as Ctrl-C, wherever that comes
            continue
        frames = [frame for frame, _ in traceback.walk_tb(each.__traceback__)]
        methods = [frame for frame in frames if frame.f_code.co_varnames[:1] == ("self",)]
        if any(frame.f_locals.get("self") is storage for frame in methods):
            return True
    return False


def with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, the one that it was raised from, and so on, each of them once."""
    seen: list[BaseException] = []
    while error is not None and not any(error is earlier for earlier in seen):
        seen.append(error)
        yield error
        error = error.__cause__


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
