"""Ends of trials, as the storage says or as they are told at this moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optuna.trial import FrozenTrial, TrialState

from mfhpo.experiment import Lost
from mfhpo_optuna.study.trials.attributes import END_KEY, LOST_KEY, SECONDS_KEY, read_attribute
from mfhpo_optuna.study.trials.notes import EndNote


@dataclass(frozen=True)
class End:
    """The end of a trial.

    `order` and `worker` are what whoever ended it has noted; None if nobody did.
    """

    state: TrialState
    values: tuple[float, ...] | None  # None unless it is COMPLETE
    order: int | None = None
    worker: str | None = None
    seconds: float | None = None


def end_of(trial: FrozenTrial) -> End:
    """Return how a finished trial has ended."""
    state, note = trial.state, read_attribute(trial, END_KEY)
    # It may have been copied to the one that repeats it, or another state was stored after all.
    is_own = note is not None and (note.trial, note.state) == (trial.number, state.name)
    order, worker = (note.order, note.worker) if is_own else (None, None)
    seconds: float | None = read_attribute(trial, SECONDS_KEY)
    begun, ended = trial.datetime_start, trial.datetime_complete
    # A trial whose worker died is failed when somebody notices, maybe days later.
    if seconds is None and state != TrialState.FAIL and begun and ended:
        seconds = max(0.0, (ended - begun).total_seconds())  # the clock may have been set back
    return End(state, values_of(state, trial.values), order, worker, seconds)


def values_of(state: TrialState, values: Sequence[float] | None) -> tuple[float, ...] | None:
    """Return the values of a trial that ends; pruned ones have reported some only."""
    return tuple(values) if values is not None and state == TrialState.COMPLETE else None


def lost_of(trial: FrozenTrial) -> Lost | None:
    """Return that a trial was given up, as somebody has noted on it."""
    note: EndNote | None = read_attribute(trial, LOST_KEY)
    if note is None or note.trial != trial.number:
        return None
    return Lost(
        id=str(trial.number),
        order=note.order,
        why=note.why,
        cost=0.0 if note.is_withdrawn else None,
        is_sure=note.is_sure,
        is_withdrawn=note.is_withdrawn,
    )
