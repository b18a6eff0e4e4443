"""What each trial of a study evaluated, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import is_number
from mfhpo.experiment.kinds.games import levels_of
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.problem import Observation, Pull
from mfhpo.search import BudgetedSearch
from mfhpo_optuna.games.kind import GameKind
from mfhpo_optuna.report.reading import StudyReading
from mfhpo_optuna.study import attributes
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.visualization.replay import Replay

COST_UNIT = "units of cost"  # of declared costs: nobody says what they are


@dataclass(frozen=True)
class Entry:
    """One trial: `arm`, `cost` and `seconds` are None where they are not known."""

    trial: FrozenTrial
    purpose: str  # see `StudyReading`; or "certificate", "answer", "lost" or "not counted"
    arm: int | None = None
    level: Any = None  # of the fidelity, or the limit of time
    at_target: bool = False  # whether its value is evidence about the answer
    cost: float | None = None
    failed: bool = False

    @property
    def seconds(self) -> float | None:
        """The seconds that it took, by the clock."""
        noted: float | None = attributes.read_attribute(self.trial, attributes.SECONDS_KEY)
        if noted is not None or self.purpose == "answer":
            return noted
        return None if self.trial.duration is None else self.trial.duration.total_seconds()

    @property
    def outcome(self) -> str:
        """The end of the trial, in a word or two."""
        if self.purpose == "answer":
            return "answer"
        if attributes.read_attribute(self.trial, attributes.CENSORED_KEY) is not None:
            return "stopped at its limit"
        if self.trial.state == TrialState.COMPLETE and not self.failed:
            return "value"
        if self.trial.state in (TrialState.RUNNING, TrialState.WAITING):
            return self.trial.state.name.lower()
        return "pruned" if self.trial.state == TrialState.PRUNED else "failed"


@dataclass(frozen=True)
class Ledger:
    """All trials of a study, in their order."""

    entries: tuple[Entry, ...]
    unit: str  # of their costs, such as "epochs"
    levels: str = "level"  # what their levels are
    paid: float | None = None  # the sum of costs by the sampler's account; None if it keeps none

    def luckiest(self, sign: float) -> Entry | None:
        """Return the evaluation at the target with the best value; None if there is none."""
        seen = [e for e in self.entries if e.at_target and e.outcome == "value"]
        return max(seen, key=lambda e: sign * (e.trial.value or 0.0), default=None)


@dataclass(frozen=True)
class Share:
    """What was spent for a purpose at a level; `part` is its share of all that was spent."""

    purpose: str
    level: Any
    trials: int
    without_value: int
    spent: float
    part: float


def ledger_of(reading: StudyReading) -> Ledger:
    """Return the trials of a study as its experiment knows them."""
    known = reading.known
    if known is None:
        return Ledger(tuple(_as_noted(reading)), "seconds")
    told, counts = _told(reading, known), _counts_evaluations(known)
    entries = []
    for entry in _as_noted(reading):
        is_open = not entry.trial.state.is_finished() or entry.purpose == "answer"
        # What is not known was no part of the experiment.
        untold = {} if is_open else {"purpose": "not counted", "cost": 0.0}
        entries.append(replace(entry, **told.get(entry.trial.number, untold)))
    levels = "time limit in seconds" if reading.purpose == "limits" else "level"
    paid = known.policy.budget.spent if counts else known.answer().cost
    return Ledger(tuple(entries), _unit(known), levels, paid)


def _told(reading: StudyReading, known: StudyExperiment) -> dict[int, dict[str, Any]]:
    """Return what is known about each trial that was learned, waits for others, or was lost."""
    runner, open_ones, purpose = known.experiment.runner, known.experiment.ledger, reading.purpose
    found: list[tuple[Any, Pull, str, float, bool]] = [
        (each.trial, each.pull, each.purpose, each.end - each.begin, each.failed)
        for each in Replay(known).evaluations
    ]
    for each in open_ones.held.values():
        cost = runner.cost_of(each.pull, each.observation)
        found.append((each.id, each.pull, each.purpose, cost, False))
    for id, claim in open_ones.lost.items():
        cost = runner.cost_of(claim.pull, Observation(None))
        found.append((id, claim.pull, "lost", cost, False))
    told = {}
    for id, pull, noted, cost, failed in found:
        about = {
            "purpose": noted if noted in ("certificate", "lost") else purpose,
            "cost": 1.0 if _counts_evaluations(known) else cost,
            "failed": failed,
        }
        if not isinstance(known.kind, GameKind):
            about |= {"arm": pull.arm, "at_target": pull.fidelity == runner.n_levels - 1}
        level = _level_of(known, pull.fidelity)
        told[int(id)] = about | ({} if level is None else {"level": level})
    return told


def _level_of(known: StudyExperiment, index: int) -> Any:
    """Return the value of the fidelity at a level; None if evaluations have none in common."""
    levels = known.trials.levels
    if isinstance(known.kind, GameKind):
        if not known.kind.measured.joint or not levels:
            return None
        index, levels = levels_of(index, known.kind.measured.sizes(levels))[0], levels[0]
    return levels[index] if 0 <= index < len(levels) else None


def _counts_evaluations(known: StudyExperiment) -> bool:
    return isinstance(known.policy, BudgetedSearch) and known.policy.budget.in_evaluations


def _unit(known: StudyExperiment) -> str:
    """Return the unit of an experiment's costs."""
    kind = known.kind
    if _counts_evaluations(known):
        return "trials"
    if kind.in_seconds:
        return "seconds"
    declared: tuple[Fidelity, ...] = (kind.fidelity,) if kind.fidelity else ()
    if isinstance(kind, GameKind):
        declared = kind.measured.fidelities
    if not declared:
        return "trials"
    is_shared = len(declared) == 1 and declared[0].costs is None
    return declared[0].name if is_shared else COST_UNIT


def where_it_went(ledger: Ledger) -> list[Share]:
    """Return what was spent for each purpose and level."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in ledger.entries:
        if entry.purpose != "answer" and entry.trial.state.is_finished():
            groups.setdefault((entry.purpose, repr(entry.level)), []).append(entry)
    spent = {key: _spent(entries) for key, entries in groups.items()}
    total = sum(spent.values()) or 1.0
    return [
        Share(
            purpose=entries[0].purpose,
            level=entries[0].level,
            trials=len(entries),
            without_value=sum(entry.outcome != "value" for entry in entries),
            spent=spent[key],
            part=spent[key] / total,
        )
        for key, entries in sorted(groups.items(), key=lambda item: _place(item[1][0]))
    ]


def _place(entry: Entry) -> tuple[int, float]:
    level = float(entry.level) if is_number(entry.level) else 0.0
    return {"search": 0, "certificate": 1}.get(entry.purpose, 2), level


def _spent(entries: Iterable[Entry]) -> float:
    return math.fsum(
        (entry.seconds or 0.0) if entry.cost is None else entry.cost for entry in entries
    )


def _as_noted(reading: StudyReading) -> Iterator[Entry]:
    """Yield the trials by their own attributes alone."""
    fidelity = attributes.read_attribute(reading.study, attributes.FIDELITY_KEY)
    for trial in reading.trials:
        if attributes.certificate_of(trial) is not None:
            yield Entry(trial, "answer")
            continue
        note = attributes.pull_note(trial)
        limit = attributes.read_attribute(trial, attributes.LIMIT_KEY)
        level = trial.params.get(fidelity) if limit is None else limit
        yield Entry(trial, reading.purpose, None if note is None else note.arm, level)


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
        "limit": lambda entry: attributes.read_attribute(entry.trial, attributes.LIMIT_KEY),
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
