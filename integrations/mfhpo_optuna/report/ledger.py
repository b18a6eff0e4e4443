"""What each trial of a study evaluated, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import is_number
from mfhpo.games import Query
from mfhpo.search import BudgetedSearch, has_levels
from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.games.study import NashStudy
from mfhpo_optuna.report.reading import StudyReading
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.samplers.limit_sampler import LimitSampler
from mfhpo_optuna.study import attributes
from mfhpo_optuna.study.fidelity_race import FidelityRace
from mfhpo_optuna.visualization.replay import Replay, spent_of

COST_UNIT = "units of cost"  # of declared costs: nobody says what they are


@dataclass(frozen=True)
class Entry:
    """One trial: `arm`, `cost` and `seconds` are None where they are not known."""

    trial: FrozenTrial
    # "search", "certificate", "race", "limits", "game", "trial", "answer" or "not counted"
    purpose: str
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
    """Return the trials of a study as its sampler knows them."""
    sampler = reading.sampler
    if isinstance(sampler, FidelitySampler) and not sampler.objection_to(reading.study):
        return _of_race(reading, sampler)
    if isinstance(sampler, LimitSampler):
        return Ledger(_as_told(reading, "limits"), "seconds", levels="time limit in seconds")
    if isinstance(sampler, NashSampler) and reading.answer is not None:
        return _of_game(reading, sampler)
    purpose = "game" if isinstance(sampler, NashSampler) else "trial"
    return Ledger(_as_told(reading, purpose), "seconds")


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


def _of_race(reading: StudyReading, sampler: FidelitySampler) -> Ledger:
    replay = Replay(reading.study, sampler)
    race, target = replay.race, len(replay.race.levels) - 1
    of_policy = "search" if isinstance(race.policy, BudgetedSearch) else "race"
    told = {
        seen.trial: {
            "purpose": "certificate" if seen.is_replicate else of_policy,
            "arm": seen.arm,
            "level": race.levels[seen.fidelity] if has_levels(race.fidelity) else None,
            "at_target": seen.fidelity == target,
            "cost": seen.spent,
            "failed": seen.failed,
        }
        for seen in replay.evaluations
    }
    paid = None if race.policy is None else spent_of(race.policy)
    return Ledger(_entries(reading, of_policy, told), _unit(race), paid=paid)


def _unit(race: FidelityRace) -> str:
    if isinstance(race.policy, BudgetedSearch) and race.policy.counts_evaluations:
        return "trials"
    if race.in_seconds:
        return "seconds"
    if not has_levels(race.fidelity):
        return "trials"
    return race.fidelity.name if race.fidelity.costs is None else COST_UNIT


def _of_game(reading: StudyReading, sampler: NashSampler) -> Ledger:
    told: dict[int, dict[str, Any]] = {}

    def hear(
        game: NashStudy, trial: FrozenTrial, query: Query, values: Sequence[float | None]
    ) -> None:
        if game.policy is not None:
            # Players with fidelities of their own have no level in common.
            is_shared = game.fidelity.joint and bool(game.levels)
            level = game.levels[0][query.levels[0]] if is_shared else None
            cost, failed = game.policy.cost_of(query), None in values
            told[trial.number] = {"arm": None, "level": level, "cost": cost, "failed": failed}

    game = sampler.replay(reading.study, lambda game: partial(hear, game))
    paid = None if game.policy is None else game.policy.cost
    return Ledger(_entries(reading, "game", told), _unit_of_game(game), paid=paid)


def _unit_of_game(game: NashStudy) -> str:
    declared = game.fidelity.fidelities
    if not declared:
        return "trials"
    shared = declared[0] if game.fidelity.joint else None
    return COST_UNIT if shared is None or shared.costs is not None else shared.name


def _entries(
    reading: StudyReading, purpose: str, told: Mapping[int, dict[str, Any]]
) -> tuple[Entry, ...]:
    """Return the trials with what their sampler has `told` about those that it has learned."""
    entries = []
    for entry in _as_told(reading, purpose):
        # What others wait for is learned later; the rest was no part of the race or the game.
        is_open = not entry.trial.state.is_finished() or entry.purpose == "answer"
        untold = {} if is_open else {"purpose": "not counted", "cost": 0.0}
        entries.append(replace(entry, **told.get(entry.trial.number, untold)))
    return tuple(entries)


def _as_told(reading: StudyReading, purpose: str) -> tuple[Entry, ...]:
    """Return the trials by their own attributes alone."""
    fidelity = attributes.read_attribute(reading.study, attributes.FIDELITY_KEY)
    entries = []
    for trial in reading.trials:
        if attributes.certificate_of(trial) is not None:
            entries.append(Entry(trial, "answer"))
            continue
        note = attributes.pull_note(trial)
        limit = attributes.read_attribute(trial, attributes.LIMIT_KEY)
        level = trial.params.get(fidelity) if limit is None else limit
        entries.append(Entry(trial, purpose, None if note is None else note.arm, level))
    return tuple(entries)


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
