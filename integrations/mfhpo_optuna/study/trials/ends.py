"""Ends of trials, as the storage says or as they are told at this moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optuna.trial import FrozenTrial, TrialState

from mfhpo_optuna.study.trials.attributes import END_KEY, read_attribute
from mfhpo_optuna.study.trials.news import seconds_of
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
    note: EndNote | None = read_attribute(trial, END_KEY)
    # It may have been copied to the one that repeats it, or another state was stored after all.
    if note is not None and (note.trial, note.state) != (trial.number, trial.state.name):
        note = None
    return End(
        trial.state,
        values_of(trial.state, trial.values),
        None if note is None else note.order,
        None if note is None else note.worker,
        seconds_of(trial),
    )


def values_of(state: TrialState, values: Sequence[float] | None) -> tuple[float, ...] | None:
    """Return the values of a trial that ends; pruned ones have reported some only."""
    return tuple(values) if values is not None and state == TrialState.COMPLETE else None
