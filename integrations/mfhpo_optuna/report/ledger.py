"""What each trial of a study evaluated, and what it cost."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from mfhpo._validation import is_number
from mfhpo.experiment.kinds.games import levels_of
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.problem import Observation
from mfhpo.search import BudgetedSearch
from mfhpo_optuna.games.kind import GameKind
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials import attributes
from mfhpo_optuna.visualization.reading import Evaluation, StudyReading, told_again

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
    def spent(self) -> float:
        """The cost, or the seconds where it is not known."""
        return (self.seconds or 0.0) if self.cost is None else self.cost

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
    told, unit = _told(reading, known), _unit(known)
    entries = []
    for entry in _as_noted(reading):
        is_open = not entry.trial.state.is_finished() or entry.purpose == "answer"
        # What is not known was no part of the experiment.
        untold = {} if is_open else {"purpose": "not counted", "cost": 0.0}
        entries.append(replace(entry, **told.get(entry.trial.number, untold)))
    levels = "time limit in seconds" if reading.purpose == "limits" else "level"
    paid = known.policy.budget.spent if _counts_evaluations(known) else known.answer().cost
    return Ledger(tuple(entries), unit, levels, paid)


def _told(reading: StudyReading, known: StudyExperiment) -> dict[int, dict[str, Any]]:
    """Return what is known about each trial that was learned, waits for others, or was lost."""
    runner, claims, found = (
        known.experiment.runner,
        known.experiment.ledger,
        [each for _, new in told_again(known) for each in new],
    )
    unlearned = [(one.id, one.pull, one.observation, one.purpose) for one in claims.held.values()]
    lost = [(id, claim.pull, Observation(None), "lost") for id, claim in claims.lost.items()]
    for id, pull, seen, purpose in (*unlearned, *lost):
        place = int(id), pull.arm, pull.fidelity, 0.0, runner.cost_of(pull, seen)
        found.append(Evaluation(*place, math.nan, False, purpose))
    is_game, counts = isinstance(known.kind, GameKind), _counts_evaluations(known)
    told = {}
    for each in found:
        about = {
            "purpose": each.purpose if each.purpose in ("certificate", "lost") else reading.purpose,
            "cost": 1.0 if counts else each.end - each.begin,
            "failed": each.failed,
        }
        if not is_game:
            about |= {"arm": each.arm, "at_target": each.fidelity == runner.n_levels - 1}
        index, levels = each.fidelity, known.trials.levels
        if isinstance(known.kind, GameKind) and levels:
            index = levels_of(index, known.kind.measured.sizes(levels))[0]
            levels = levels[0] if known.kind.measured.joint else ()  # else they have none in common
        if 0 <= index < len(levels):
            about["level"] = levels[index]
        told[each.trial] = about
    return told


def _counts_evaluations(known: StudyExperiment) -> bool:
    return isinstance(known.policy, BudgetedSearch) and known.policy.budget.in_evaluations


def _unit(known: StudyExperiment) -> str:
    """Return the unit of an experiment's costs."""
    kind = known.kind
    declared: tuple[Fidelity, ...] = (kind.fidelity,) if kind.fidelity else ()
    if isinstance(kind, GameKind):
        declared = kind.measured.fidelities
    if _counts_evaluations(known) or not (declared or kind.in_seconds):
        return "trials"
    if kind.in_seconds:
        return "seconds"
    is_shared = len(declared) == 1 and declared[0].costs is None
    return declared[0].name if is_shared else COST_UNIT


def where_it_went(ledger: Ledger) -> list[Share]:
    """Return what was spent for each purpose and level."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in ledger.entries:
        if entry.purpose != "answer" and entry.trial.state.is_finished():
            groups.setdefault((entry.purpose, repr(entry.level)), []).append(entry)
    total = math.fsum(entry.spent for group in groups.values() for entry in group) or 1.0
    shares = []
    for group in groups.values():
        first, spent = group[0], math.fsum(entry.spent for entry in group)
        no_value = sum(entry.outcome != "value" for entry in group)
        shares.append(Share(first.purpose, first.level, len(group), no_value, spent, spent / total))
    order = {"search": 0, "certificate": 1}

    def place(share: Share) -> tuple[int, float]:
        level = float(share.level) if is_number(share.level) else 0.0
        return order.get(share.purpose, len(order)), level

    return sorted(shares, key=place)


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


def table_of(reading: StudyReading, ledger: Ledger) -> dict[str, list[Any]]:
    """Return the columns of a table of all trials; those in which nothing is known are left out."""
    entries = ledger.entries
    columns: dict[str, list[Any]] = {
        "trial": [entry.trial.number for entry in entries],
        "outcome": [entry.outcome for entry in entries],
    }
    n_values = len(reading.study.directions)
    for place in range(n_values):
        name = "value" if n_values == 1 else f"value {place + 1}"
        columns[name] = [_value(entry, place) for entry in entries]
    columns |= {
        "purpose": [entry.purpose for entry in entries],
        "arm": [entry.arm for entry in entries],
        "limit": [attributes.read_attribute(e.trial, attributes.LIMIT_KEY) for e in entries],
        "paid": [entry.cost for entry in entries],
        "seconds": [entry.seconds for entry in entries],
    }
    params = [entry.trial.params for entry in entries]
    for name in dict.fromkeys(name for each in params for name in each):
        cells = ["None" if each.get(name, "") is None else each.get(name) for each in params]
        # A parameter may be called like a column.
        columns[name if name not in columns else f"parameter {name}"] = cells
    return {name: cells for name, cells in columns.items() if any(c is not None for c in cells)}


def _value(entry: Entry, place: int) -> Any:
    values = entry.trial.values
    if values is None or (entry.purpose == "answer" and not math.isfinite(values[place])):
        return None  # of an answer, that it promises nothing yet
    return values[place]
