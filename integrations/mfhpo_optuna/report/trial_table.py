"""Every trial as a row of a table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mfhpo._validation import is_number
from mfhpo_optuna.report.ledger import Entry, Ledger
from mfhpo_optuna.report.reading import StudyReading
from mfhpo_optuna.study.attributes import LIMIT_KEY, read_attribute


@dataclass(frozen=True)
class TrialTable:
    """Names of the columns, which of them hold numbers, and for each trial a row of values."""

    columns: tuple[str, ...]
    numbers: frozenset[str]
    rows: tuple[tuple[Any, ...], ...]


def table_of(reading: StudyReading, ledger: Ledger) -> TrialTable:
    """Return all trials of a study; columns in which nothing is known are left out."""
    columns: dict[str, Callable[[Entry], Any]] = {
        "trial": lambda entry: entry.trial.number,
        "outcome": lambda entry: entry.outcome,
    }
    names = [f"value {place}" for place in range(1, 1 + len(reading.study.directions))]
    for place, name in enumerate(names if len(names) > 1 else ["value"]):
        columns[name] = partial(_value, place)
    columns |= {
        "purpose": lambda entry: entry.purpose,
        "arm": lambda entry: entry.arm,
        "limit": lambda entry: read_attribute(entry.trial, LIMIT_KEY),
        "paid": lambda entry: entry.cost,
        "seconds": lambda entry: entry.seconds,
    }
    for name in dict.fromkeys(name for entry in ledger.entries for name in entry.trial.params):
        # A parameter may be called like a column.
        columns[name if name not in columns else f"parameter {name}"] = partial(_parameter, name)
    known = {name: [value(entry) for entry in ledger.entries] for name, value in columns.items()}
    shown = {name: cells for name, cells in known.items() if any(c is not None for c in cells)}
    numbers = {n for n, cells in shown.items() if all(c is None or is_number(c) for c in cells)}
    return TrialTable(tuple(shown), frozenset(numbers), tuple(zip(*shown.values(), strict=True)))


def _value(place: int, entry: Entry) -> Any:
    values = entry.trial.values
    if values is None or (entry.purpose == "answer" and not math.isfinite(values[place])):
        return None  # of an answer, that it promises nothing yet
    return values[place]


def _parameter(name: str, entry: Entry) -> Any:
    if name not in entry.trial.params:
        return None
    chosen = entry.trial.params[name]
    return "None" if chosen is None else chosen


def is_sortable(value: Any) -> bool:
    """Return whether a value is sorted as a number; others are by their text."""
    return is_number(value) and not math.isnan(value)
