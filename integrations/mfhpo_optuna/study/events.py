"""A trial becomes events: begun as its note says, and ended or lost as its state says."""

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mfhpo.experiment import Assignment, Begun, Ended, Event, Found, Lost, key_of
from mfhpo_optuna.study.arms import Params, Values, is_baseline, outside_ranges
from mfhpo_optuna.study.distributions import (
    Replicates,
    described,
    did_you_mean,
    index_of,
    kind_of,
    levels_in,
    point_of,
    signs_of,
)
from mfhpo_optuna.study.kind import Kind
from mfhpo_optuna.study.loop.ends import is_spoilt
from mfhpo_optuna.study.trials.attributes import (
    ARM_KEY,
    MEMORY_KEY,
    PullNote,
    parameters_before,
    read_attribute,
    warn_of_attribute,
)
from mfhpo_optuna.study.trials.processes import worker_name
from mfhpo_optuna.study.trials.under_way import End, limit_of, lost_of

# Arms and blocks are numbered as they are begun, a few at once by each worker. Larger numbers than
# these, at the study's beginning and for each trial since, are none that a sampler has chosen.
_AT_FIRST, _FOR_EACH_TRIAL = 10_000, 100

_NONE = -1  # in place of an arm
_TRIED_FIRST = ("earlier", "belief")  # origins of draws whose values are noted


class Translation:
    """Turns the trials of one study into events, in the terms of its kind of experiment."""

    def __init__(
        self, study: optuna.Study, kind: Kind, seed: int, arguments: str | None = None
    ) -> None:
        self.kind = kind
        self._arguments = arguments  # a digest of the sampler's
        self.name = study.study_name
        self.sign = signs_of(study)[0]
        given = kind.given(seed)
        self.given = [] if isinstance(given, int) else given
        self.values = Values(given, kind.owned, seed)
        # Of each entry of a list its key, and what claims say in place of it.
        self._keys = [key_of(params, described) for params in self.given]
        self._short = {key: hashlib.sha256(key.encode()).hexdigest()[:12] for key in self._keys}
        self._by_key = {self._short[key]: arm for arm, key in reversed([*enumerate(self._keys)])}
        self.levels = tuple(kind.fidelity.levels or ()) if kind.fidelity else ()
        self.fidelity_distribution: BaseDistribution | None = None
        self.replicates = None if kind.replicate is None else Replicates(kind.replicate, seed)
        self.n_without_fidelity = 0  # trials that gave a value and did not ask for it
        self.missing_fidelity = ""  # a sentence about the last of them
        self.not_asked: list[str] = []  # what the last whole trial with a value did not ask for
        self.warned: set[str] = set()
        self.retried: set[int] = set()  # trials that others repeat
        self._has_replicates = kind.replicate is None
        # Whether trials have told all levels and replicates that nobody had declared.
        self.knows_all = self._has_replicates and kind.fidelity is None
        self._begun_as: dict[tuple[int, int], Params] = {}  # draws, by trial and counter
        self._told: dict[str, Any] = {}  # parameters as a model was told about them
        self._distributions: dict[str, BaseDistribution] = {}

    def names(self) -> set[str]:
        """Return the names that objectives have asked for so far."""
        return {*self._distributions, *self.kind.owned}

    def read_note(self, trial: FrozenTrial) -> PullNote | None:
        """Return the claim that is noted on a trial, perhaps of the one that it repeats."""
        note: PullNote | None = read_attribute(trial, ARM_KEY)
        return note

    def note_of(self, trial: FrozenTrial) -> PullNote | None:
        """Return the claim of a trial; None if it has none, or one that was copied to it."""
        note = self.read_note(trial)
        if note is None or note.trial != trial.number or note.study != self.name:
            return None
        if note.chooses != self.kind.chooses:
            raise ValueError(
                f"trial {trial.number} was run by a sampler that chooses {note.chooses}, not "
                f"{self.kind.chooses}; resume the study with that one, or begin another."
            )
        numbers = [note.block or 0, note.arm, *(of for of in note.shortlist if type(of) is int)]
        if max(numbers) <= max(_AT_FIRST + _FOR_EACH_TRIAL * trial.number, len(self.given)):
            return note
        warn_of_attribute(trial, ARM_KEY)
        return None

    def note_for(self, trial: FrozenTrial, assignment: Assignment, order: int) -> PullNote:
        """Return the note that claims an assignment for a trial."""
        arm, key, is_retry = assignment.draw, None, assignment.origin == "retry"
        shortlist: list[int | str]
        if arm is None:  # of a list
            key = self._short[key_of(assignment.configuration, described)]
            arm, shortlist = self._by_key[key], [self._short[of] for of in assignment.shortlist]
        else:
            shortlist = [int(of.removeprefix("draw ")) for of in assignment.shortlist]
        return PullNote(
            trial=trial.number,
            study=self.name,
            order=order,
            arm=arm,
            key=key,
            fidelity=None if assignment.level < 0 else assignment.level,
            block=assignment.block,
            purpose=assignment.purpose,
            origin=assignment.origin,
            shortlist=tuple(shortlist),
            point=assignment.point or None,
            values=assignment.configuration if assignment.origin in _TRIED_FIRST else None,
            chooses=self.kind.chooses,
            retry_of=trial.system_attrs.get("failed_trial") if is_retry else None,
            worker=worker_name(),
            arguments=self._arguments,
        )

    def arm_of(self, note: PullNote) -> int:
        """Return the number of a claimed configuration; -1 if it is none of these."""
        if note.key is not None:
            return self._by_key.get(note.key, _NONE)
        is_another = self.values.is_declared or 0 < self.values.n_even <= note.arm
        return _NONE if is_another else note.arm

    def begun(self, trial: FrozenTrial, note: PullNote) -> Begun | None:
        """Return the claim of a trial as an event; None if it is none of this experiment's.

        Another sampler's arguments may have had other configurations, or other levels.
        """
        arm, level = self.arm_of(note), note.fidelity
        if self.kind.fidelity is not None and note.arguments not in (None, self._arguments):
            level = self.level_of(trial)
        if self.replicates is not None and note.block is None:
            self.warn(
                "replicate",
                f"trial {trial.number} was begun without replicate={self.kind.replicate!r}: it "
                f"does not count, nor does any other such trial.",
            )
            return None
        if arm == _NONE or (level is not None and level >= max(1, len(self.levels))):
            return None
        claim, values = (trial.number, note.order), self.values
        if not values.is_declared and claim not in self._begun_as:  # what is known when it begins
            enqueued = values.configuration(trial.system_attrs.get("fixed_params") or {})
            known = values[arm]  # the objective will be given these
            if note.origin == "belief":
                known.centres |= note.values or {}
            else:
                enqueued = {**(note.values or {}), **enqueued}
            known.expected |= enqueued.keys() - known.params.keys()
            for name, value in enqueued.items():
                known.params.setdefault(name, value)
            self._begun_as[claim] = {**known.params, **enqueued}
        claimed = dict(self.given[arm] if values.is_declared else self._begun_as[claim])
        shortlist = [
            f"draw {of}" if isinstance(of, int) else self._keys[self._by_key[of]]
            for of in note.shortlist
            if isinstance(of, int) or of in self._by_key
        ]
        return Begun(
            id=str(trial.number),
            order=note.order,
            configuration=claimed,
            draw=None if self.values.is_declared else arm,
            levels=None if level is None else (level,),
            point=note.point,
            block=None if self.replicates is None else note.block,
            limit=limit_of(trial),
            purpose=note.purpose,
            shortlist=tuple(shortlist),
            origin=note.origin,
            retry_of=None if note.retry_of is None else str(note.retry_of),
            is_baseline=is_baseline(trial),
        )

    def found(self, trial: FrozenTrial, note: PullNote) -> list[Event]:
        """Return what a trial tells about levels and replicates that nobody had declared."""
        events: list[Event] = []
        if self.knows_all:
            return events
        fidelity, replicates, asked = self.kind.fidelity, self.replicates, trial.distributions
        if fidelity and self.fidelity_distribution is None and fidelity.name in asked:
            self.fidelity_distribution = asked[fidelity.name]
            if not self.levels:
                self.levels = levels_in(fidelity, self.fidelity_distribution)
                events.append(Found(id="levels", order=note.order, levels=self.levels))
        if replicates is not None and replicates.name in asked and not self._has_replicates:
            self._has_replicates = True
            count = replicates.count(asked[replicates.name])
            events.append(Found(id="replicates", order=note.order, replicates=count))
        has_levels = fidelity is None or self.fidelity_distribution is not None
        self.knows_all = has_levels and self._has_replicates
        return events

    def outcome(self, trial: FrozenTrial, note: PullNote, end: End) -> Event:
        """Return the event that a claimed trial ends with.

        One that was failed by somebody else than its worker is lost: the worker died, or a user
        says so. Whoever fails it need not have noted a counter: it counts from its beginning then.
        """
        id, order = str(trial.number), note.order + 1 if end.order is None else end.order
        withdrawn = lost_of(trial)
        if withdrawn is not None and withdrawn.is_withdrawn and not trial.params:
            return withdrawn
        if not end.values:  # whoever evaluates it again evaluates the same
            self.values.see(self.arm_of(note), trial, trial.params)
        if is_spoilt(trial, end.state):
            return Lost(id=id, order=order, why="its storage failed", cost=None)
        if end.state == TrialState.FAIL and (end.worker is None or end.worker != note.worker):
            retry, why = trial.number in self.retried, "its process died"
            order += end.order is None and retry  # what is known later holds
            return Lost(id=id, order=order, why=why, cost=None, will_retry=retry)
        fidelity = self.kind.fidelity
        if end.values and fidelity is not None and fidelity.name not in trial.params:
            name = fidelity.name
            self.n_without_fidelity += 1
            self.missing_fidelity = (
                f"fidelity={name!r}, but the objective did not ask for it in trial {id}; it asked "
                f"for {sorted(trial.params)}. Call trial.suggest_int({name!r}, ...) or the like in "
                f"the objective, and name that "
                f"parameter.{did_you_mean(name, trial.params, 'fidelity=')}"
            )
            self.warn("no fidelity", self.missing_fidelity)
            if self.fidelity_distribution is None:  # nobody may ever ask: it is no evaluation
                why = "it asked for no fidelity"
                return Lost(id=id, order=order, why=why, is_withdrawn=True)
        return self._ended(trial, note, end, order)

    def _ended(self, trial: FrozenTrial, note: PullNote, end: End, order: int) -> Ended:
        arm, level = self.arm_of(note), self.level_of(trial)
        stopped_at = self.kind.stopped_at(trial, end, self.warn)
        is_pruned = end.state == TrialState.PRUNED and stopped_at is None
        if is_pruned and read_attribute(trial, MEMORY_KEY) is None:
            self.warn(
                "pruning",
                f"trial {trial.number} was pruned: it gave no value, was not stopped at a limit, "
                f"and counts as failed. {self.kind.about_pruning}",
            )
        configuration: Mapping[str, Any] | None = None
        self.values.see(arm, trial, trial.params)
        asked = self.values.configuration(trial.distributions)
        self._distributions |= asked
        space, values = self._distributions, self.values
        parameters: dict[str, Any] = {}  # those that a model was not told about
        points: dict[int, Mapping[str, float]] = {}  # where draws lie among them
        for name, distribution in () if values.is_declared else asked.items():
            kind = kind_of(distribution)
            if kind and self._told.get(name) != kind:
                parameters[name] = kind
        self._told |= parameters
        if not values.is_declared:
            points[arm] = point_of(values[arm].params, asked)
        for draw in range(values.n_even if parameters else 0):  # others, as they will lie
            if draw != arm:
                planned = {name: values.planned(draw, name, how) for name, how in space.items()}
                points[draw] = point_of(planned, space)
        if end.values:
            is_as_claimed = self._is_as_claimed(trial, note, arm, level)
            if level != note.fidelity and None not in (level, note.fidelity):
                configuration = trial.params
            elif not self.values.is_declared:
                configuration = self.values.configuration(trial.params)
        else:
            is_as_claimed = stopped_at is None or self.values.is_of(arm, trial)
        if not is_as_claimed:
            level = max(1, len(self.levels))  # one that there is not: it is paid, and no value
            configuration = trial.params
        return Ended(
            id=str(trial.number),
            order=order,
            value=end.values[0] if end.values and stopped_at is None else None,
            cost=end.seconds if self.kind.in_seconds else None,
            stopped_at=stopped_at,
            level=level,
            configuration=configuration,
            parameters=parameters,
            points=points,
        )

    def level_of(self, trial: FrozenTrial) -> int | None:
        """Return the level that a trial has asked for; None if it has not.

        A level that is none of the experiment's has the number after the last.
        """
        fidelity = self.kind.fidelity
        if fidelity is None or fidelity.name not in trial.params or not self.levels:
            return None
        index = index_of(trial.params[fidelity.name], self.levels)
        return len(self.levels) if index is None else index

    def _is_as_claimed(
        self, trial: FrozenTrial, note: PullNote, arm: int, level: int | None
    ) -> bool:
        """Tell whether a trial with a value evaluated what it claimed; else say so once."""
        number, target, fidelity = trial.number, len(self.levels) - 1, self.kind.fidelity
        if fidelity is not None and fidelity.name not in trial.params:
            return False
        if self.kind.is_whole:
            self.not_asked = sorted(self.values[arm].given - trial.params.keys())
            if self.not_asked:
                return False
        if fidelity is not None and level is not None and level > target:
            asked = f"{fidelity.name}={trial.params[fidelity.name]!r}"
            self.warn(
                f"level of trial {number}",
                f"trial {number} was evaluated at {asked}, which is none of the levels "
                f"{list(self.levels)}: it does not count. Suggest the fidelity with a range that "
                f"contains all levels.",
            )
            return False
        if self.replicates is not None and not self.replicates.is_of(note.block or 0, trial):
            name = self.replicates.name
            self.warn(
                f"replicate of trial {number}",
                f"trial {number} was evaluated with {name}={trial.params[name]!r}, which is not "
                f"what the sampler chose: it does not count. Do not fix the replicate.",
            )
            return False
        if self.values.end(arm, -1 if level is None else level, trial):
            self._warn_of_names(arm, trial, level in (None, target))
            return True
        instead = f"instead of arm {arm}, {self.values[arm].params}"
        if outside_ranges(trial):
            instead = "which is outside the objective's ranges"
        self.warn(
            f"arm of trial {number}",
            f"trial {number} evaluated {trial.params}, {instead}: it does not count. Suggest each "
            f"parameter with the same range in every trial, and do not fix parameters of a race.",
        )
        return False

    def _warn_of_names(self, arm: int, trial: FrozenTrial, is_at_target: bool) -> None:
        """Say once that an objective did not ask for names that it was given values for.

        Below the target it may not ask for all, but hardly for names that it never asked for.
        """
        asked = set(trial.params) if is_at_target else {*trial.params, *self.names()}
        option = self.kind.arms_option
        enqueued = f"trial {trial.number} was enqueued with", parameters_before(trial) or {}
        note = self.read_note(trial)
        values = (note and note.values) or {}  # the spaces may differ, but hardly in all names
        first = "earlier or beliefs have", values if asked.isdisjoint(values) else {}
        for what, given in ((f"{option} contain", self.values[arm].given), enqueued, first):
            missing = sorted(set(given) - self.values.owned - asked)
            if missing and (is_at_target or not self.values.is_declared):
                self.warn(
                    "names",
                    f"{what} {', '.join(map(repr, missing))}, which the objective did not ask for "
                    f"in trial {trial.number}; it asked for {sorted(trial.params)}. Rename it "
                    f"there, or suggest it in the objective."
                    f"{did_you_mean(missing[0], trial.params)}",
                )

    def warn(self, about: str, message: str, category: type[Warning] = UserWarning) -> None:
        """Warn, unless that was said before."""
        if about not in self.warned:
            self.warned.add(about)
            warnings.warn(message, category, stacklevel=8)
