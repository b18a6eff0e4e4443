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
from mfhpo_optuna.visualization.words import value_text


@dataclass(frozen=True)
class Cell:
    """What is shown, and by what it is sorted: a number, or "" to sort by the text."""

    text: str
    key: float | str = ""


@dataclass(frozen=True)
class TrialTable:
    """Names of the columns, which of them hold numbers, and for each trial its cells."""

    columns: tuple[str, ...]
    numbers: frozenset[str]
    rows: tuple[tuple[Cell, ...], ...]


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
    rows = zip(*shown.values(), strict=True) if shown else iter(())
    numbers = {n for n, cells in shown.items() if all(c is None or is_number(c) for c in cells)}
    return TrialTable(
        tuple(shown), frozenset(numbers), tuple(tuple(map(_cell, row)) for row in rows)
    )


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


def _cell(value: Any) -> Cell:
    if value is None:
        return Cell("")
    is_sortable = is_number(value) and not math.isnan(value)
    return Cell(value_text(value), float(value) if is_sortable else "")
