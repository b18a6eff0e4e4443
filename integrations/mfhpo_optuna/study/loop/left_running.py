"""Trials that `optimize` leaves running when it ends: they end with it.

Optuna stores no end of a trial whose objective calls `sys.exit` or returns an integer beyond all
floats, nor if Ctrl-C comes while it stores one. In a notebook the process lives on, so that
everybody would wait for such a trial.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import optuna
from optuna.trial import FrozenTrial, TrialState

from mfhpo_optuna.study.loop.end_of_optimize import call_at_end
from mfhpo_optuna.study.loop.storage_errors import is_of_storage
from mfhpo_optuna.study.trials.attributes import STORAGE_FAILED_KEY, write_attribute


@dataclass
class _Begun:
    """A trial that a thread has begun."""

    trial_id: int
    process: int
    thread: threading.Thread
    end: tuple[TrialState, Sequence[float] | None] | None = None  # what its sampler was told

    @property
    def is_left(self) -> bool:
        """True if its thread has left it; what a child does that it has forked says nothing."""
        is_here = self.thread is threading.current_thread()
        return self.process == os.getpid() and (is_here or not self.thread.is_alive())


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
        if not begun.is_left or (error is None and begun.end is not None):
            continue
        trial = storage.get_trial(begun.trial_id)
        if trial.state != TrialState.RUNNING:
            continue
        if begun.end is not None:
            storage.set_trial_state_values(begun.trial_id, *begun.end)
            continue
        if is_of_storage(error, storage):
            write_attribute(study, trial, STORAGE_FAILED_KEY, number)
        study.tell(number, state=TrialState.FAIL)
