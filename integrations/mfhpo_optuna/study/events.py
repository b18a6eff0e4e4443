"""A trial becomes events: begun as its note says, and ended or lost as its state says."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mfhpo.experiment import Begun, Concluded, Ended, Event, Found, Lost, key_of
from mfhpo.search import Point
from mfhpo_optuna.study.arms import Params
from mfhpo_optuna.study.declared import Declared
from mfhpo_optuna.study.levels import Replicates, described, did_you_mean, levels_in
from mfhpo_optuna.study.loop.storage_errors import is_spoilt
from mfhpo_optuna.study.places import kind_of, point_of
from mfhpo_optuna.study.trials.attributes import (
    ARM_KEY,
    CONCLUDED_KEY,
    LOST_KEY,
    MEMORY_KEY,
    parameters_before,
    pull_note,
    read_attribute,
    warn_of_attribute,
)
from mfhpo_optuna.study.trials.ends import End
from mfhpo_optuna.study.trials.notes import EndNote, PullNote
from mfhpo_optuna.study.trials.under_way import limit_of
from mfhpo_optuna.study.values import Values, is_in_range

# Arms and blocks are numbered as they are begun, a few at once by each worker. Larger numbers than
# these, at the study's beginning and for each trial since, are none that a sampler has chosen.
_AT_FIRST, _FOR_EACH_TRIAL = 10_000, 100


class Translation:
    """Turns the trials of one study into events, in the terms of its kind of experiment."""

    def __init__(
        self, study: optuna.Study, kind: Declared, seed: int, arguments: str | None = None
    ) -> None:
        self.kind = kind
        self._arguments = arguments  # a digest of the sampler's
        self.name = study.study_name
        self.sign = 1.0 if study.directions[0] == StudyDirection.MAXIMIZE else -1.0
        given = kind.given(seed)
        self.given = [] if isinstance(given, int) else given
        self.values = Values(given, kind.owned, seed)
        self._by_key = {
            short_key(params): arm for arm, params in reversed([*enumerate(self.given)])
        }
        self.levels = tuple(kind.fidelity.levels or ()) if kind.fidelity else ()
        self.fidelity_distribution: BaseDistribution | None = None
        self.replicates = None if kind.replicate is None else Replicates(kind.replicate, seed)
        self.n_without_fidelity = 0  # trials that gave a value and did not ask for it
        self.missing_fidelity = ""  # a sentence about the last of them
        self.not_asked: list[str] = []  # what the last whole trial with a value did not ask for
        self.warned: set[str] = set()
        self.retried: set[int] = set()  # trials that others repeat
        self._has_replicates = False
        self._begun_as: dict[tuple[int, int], Params] = {}  # draws, by trial and counter
        self._told: dict[str, Any] = {}  # parameters as a model was told about them
        self._distributions: dict[str, BaseDistribution] = {}

    def names(self) -> set[str]:
        """Return the names that objectives have asked for so far."""
        return {*self._distributions, *self.kind.owned}

    @property
    def knows_all(self) -> bool:
        """True if trials have told all levels and replicates that nobody had declared."""
        has_levels = self.kind.fidelity is None or self.fidelity_distribution is not None
        return has_levels and (self.replicates is None or self._has_replicates)

    # Claims.

    def read_note(self, trial: FrozenTrial) -> PullNote | None:
        """Return the claim that is noted on a trial, perhaps of the one that it repeats."""
        return pull_note(trial)

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

    def arm_of(self, note: PullNote) -> int | None:
        """Return the number of a claimed configuration; None if it is none of these."""
        if note.key is not None:
            return self._by_key.get(note.key)
        n_even = len(self.values.even_draws())
        is_another = self.values.is_declared or 0 < n_even <= note.arm
        return None if is_another else note.arm

    def number_of(self, configuration: Mapping[str, Any]) -> int | None:
        """Return the place of a configuration in the list; None if it is not there."""
        return self._by_key.get(short_key(configuration))

    def short_key_of(self, arm: int) -> str | None:
        """Return what a claim says about an entry of a list; None for a draw."""
        return short_key(self.given[arm]) if self.values.is_declared else None

    def shortlist_of(self, keys: tuple[str, ...]) -> tuple[int | str, ...]:
        """Return the arms that an assignment names by keys, as a note names them."""
        if not self.values.is_declared:
            return tuple(int(key.removeprefix("draw ")) for key in keys)
        short = {key_of(params, described): short_key(params) for params in self.given}
        return tuple(short[key] for key in keys)

    def begun(self, trial: FrozenTrial, note: PullNote) -> Begun | None:
        """Return the claim of a trial as an event; None if it is none of this experiment's.

        Another sampler's arguments may have had other configurations, or other levels.
        """
        arm, level = self.arm_of(note), note.fidelity
        if self.kind.fidelity is not None and note.arguments not in (None, self._arguments):
            level = self.level_of(trial)
        if self.replicates is not None and note.block is None:
            self._warn_of_no_replicate(trial)
            return None
        if arm is None or (level is not None and level >= max(1, len(self.levels))):
            return None
        shortlist = [
            f"draw {of}" if isinstance(of, int) else key_of(self.given[self._by_key[of]], described)
            for of in note.shortlist
            if isinstance(of, int) or of in self._by_key
        ]
        return Begun(
            id=str(trial.number),
            order=note.order,
            configuration=self._claimed(trial, note, arm),
            draw=None if self.values.is_declared else arm,
            levels=None if level is None else (level,),
            point=note.point,
            block=None if self.replicates is None else note.block,
            limit=limit_of(trial),
            purpose=note.purpose,
            shortlist=tuple(shortlist),
            origin=note.origin,
            retry_of=None if note.retry_of is None else str(note.retry_of),
            worker=note.worker or "",
        )

    def _claimed(self, trial: FrozenTrial, note: PullNote, arm: int) -> Params:
        """Return the configuration that is claimed: of a draw, what was known when it began."""
        if self.values.is_declared:
            return dict(self.given[arm])
        if (trial.number, note.order) not in self._begun_as:
            enqueued = self.values.configuration(trial.system_attrs.get("fixed_params") or {})
            self.values.expect(arm, enqueued)
            known = {**self.values[arm].params, **enqueued}
            self._begun_as[trial.number, note.order] = known
        return dict(self._begun_as[trial.number, note.order])

    def found(self, trial: FrozenTrial, note: PullNote) -> list[Event]:
        """Return what a trial tells about levels and replicates that nobody had declared."""
        events: list[Event] = []
        fidelity, order = self.kind.fidelity, note.order
        asked = None if fidelity is None else trial.distributions.get(fidelity.name)
        if asked is not None and self.fidelity_distribution is None:
            assert fidelity is not None
            self.fidelity_distribution = asked
            if not self.levels:
                self.levels = levels_in(fidelity, asked)
                events.append(Found(id="levels", order=order, levels=self.levels))
        name = self.kind.replicate
        if self.replicates is not None and name in trial.distributions and not self._has_replicates:
            self._has_replicates = True
            count = self.replicates.count(trial.distributions[name])
            events.append(Found(id="replicates", order=order, replicates=count))
        return events

    # Ends.

    def outcome(self, trial: FrozenTrial, note: PullNote, end: End) -> Event:
        """Return the event that a claimed trial ends with.

        One that was failed by somebody else than its worker is lost: the worker died, or a user
        says so. Whoever fails it need not have noted a counter: it counts from its beginning then.
        """
        id, order = str(trial.number), note.order + 1 if end.order is None else end.order
        arm, withdrawn = self.arm_of(note), lost_of(trial)
        if withdrawn is not None and withdrawn.is_withdrawn and not trial.params:
            return withdrawn
        if arm is not None and not end.values:  # whoever evaluates it again evaluates the same
            self.values.see(arm, trial, trial.params)
        is_lost = end.state == TrialState.FAIL and (end.worker is None or end.worker != note.worker)
        if is_spoilt(trial, end.state):
            return Lost(id=id, order=order, why="its storage failed", cost=None)
        if is_lost:
            will_retry = trial.number in self.retried
            order += end.order is None and will_retry  # what is known later holds
            return Lost(
                id=id, order=order, why="its process died", cost=None, will_retry=will_retry
            )
        if end.values and not self._has_asked_for_fidelity(trial):
            self._warn_of_no_fidelity(trial)
            if self.fidelity_distribution is None:  # nobody may ever ask: it is no evaluation
                why = "it asked for no fidelity"
                return Lost(id=id, order=order, why=why, is_withdrawn=True)
        return self._ended(trial, note, end, order)

    def _ended(self, trial: FrozenTrial, note: PullNote, end: End, order: int) -> Ended:
        arm = self.arm_of(note)
        assert arm is not None
        stopped_at = self.kind.stopped_at(trial, end, self.warn)
        if end.state == TrialState.PRUNED and stopped_at is None:
            self._warn_of_pruning(trial)
        level = self.level_of(trial)
        value = end.values[0] if end.values else None
        configuration: Mapping[str, Any] | None = None
        parameters, points = self._learn(arm, trial)
        is_as_claimed = stopped_at is None or self.values.is_of(arm, trial)
        if value is not None:
            is_as_claimed = self._is_as_claimed(trial, note, arm, level)
            if level != note.fidelity and None not in (level, note.fidelity):
                configuration = trial.params
            elif not self.values.is_declared:
                configuration = self.values.configuration(trial.params)
        if not is_as_claimed:
            level = max(1, len(self.levels))  # one that there is not: it is paid, and no value
            configuration = trial.params
        return Ended(
            id=str(trial.number),
            order=order,
            value=value if stopped_at is None else None,
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
        known, level = [described(each) for each in self.levels], trial.params[fidelity.name]
        return known.index(described(level)) if described(level) in known else len(known)

    def _is_as_claimed(
        self, trial: FrozenTrial, note: PullNote, arm: int, level: int | None
    ) -> bool:
        """Tell whether a trial with a value evaluated what it claimed; else say so once."""
        if not self._has_asked_for_fidelity(trial):
            return False
        if self.kind.is_whole:
            self.not_asked = sorted(self.values.named(arm) - trial.params.keys())
            if self.not_asked:
                return False
        target = len(self.levels) - 1
        if level is not None and level > target:
            self.warn(
                f"level of trial {trial.number}",
                f"trial {trial.number} was evaluated at "
                f"{self._level_in_words(trial)}, which is none of the levels "
                f"{list(self.levels)}: it does not count. Suggest the fidelity with a range that "
                f"contains all levels.",
            )
            return False
        if self.replicates is not None and not self._is_of_block(trial, note):
            return False
        if self.values.end(arm, -1 if level is None else level, trial):
            self._warn_of_names(arm, trial, level in (None, target))
            return True
        instead = f"instead of arm {arm}, {self.values[arm].params}"
        if not is_in_range(trial):
            instead = "which is outside the objective's ranges"
        self.warn(
            f"arm of trial {trial.number}",
            f"trial {trial.number} evaluated {trial.params}, {instead}: it does not count. "
            f"Suggest each parameter with the same range in every trial, and do not fix "
            f"parameters of a race.",
        )
        return False

    def _has_asked_for_fidelity(self, trial: FrozenTrial) -> bool:
        fidelity = self.kind.fidelity
        return fidelity is None or fidelity.name in trial.params

    def _warn_of_no_fidelity(self, trial: FrozenTrial) -> None:
        assert self.kind.fidelity is not None
        name = self.kind.fidelity.name
        self.n_without_fidelity += 1
        self.missing_fidelity = (
            f"fidelity={name!r}, but the objective did not ask for it in trial {trial.number}; it "
            f"asked for {sorted(trial.params)}. Call trial.suggest_int({name!r}, ...) or the like "
            f"in the objective, and name that "
            f"parameter.{did_you_mean(name, trial.params, 'fidelity=')}"
        )
        self.warn("no fidelity", self.missing_fidelity)

    def _warn_of_no_replicate(self, trial: FrozenTrial) -> None:
        self.warn(
            "replicate",
            f"trial {trial.number} was begun without replicate={self.kind.replicate!r}: it does "
            f"not count, nor does any other such trial.",
        )

    def _is_of_block(self, trial: FrozenTrial, note: PullNote) -> bool:
        assert self.replicates is not None
        assert note.block is not None
        name = self.replicates.name
        if self.replicates.is_of(note.block, trial):
            return True
        self.warn(
            f"replicate of trial {trial.number}",
            f"trial {trial.number} was evaluated with {name}={trial.params[name]!r}, which is not "
            f"what the sampler chose: it does not count. Do not fix the replicate.",
        )
        return False

    def _warn_of_names(self, arm: int, trial: FrozenTrial, is_at_target: bool) -> None:
        """Say once that an objective did not ask for names that it was given values for.

        Below the target it may not ask for all, but hardly for names that it never asked for.
        """
        asked = set(trial.params) if is_at_target else {*trial.params, *self.names()}
        option = self.kind.arms_option
        enqueued = f"trial {trial.number} was enqueued with", parameters_before(trial) or {}
        for what, given in ((f"{option} contain", self.values.named(arm)), enqueued):
            missing = sorted({name for name in given if name not in self.values.owned} - asked)
            if missing and (is_at_target or not self.values.is_declared):
                self.warn(
                    "names",
                    f"{what} {', '.join(map(repr, missing))}, which the objective did not ask for "
                    f"in trial {trial.number}; it asked for {sorted(trial.params)}. Rename it "
                    f"there, or suggest it in the objective."
                    f"{did_you_mean(missing[0], trial.params)}",
                )

    def _warn_of_pruning(self, trial: FrozenTrial) -> None:
        if read_attribute(trial, MEMORY_KEY) is not None:
            return
        self.warn(
            "pruning",
            f"trial {trial.number} was pruned: it gave no value, was not stopped at a limit, and "
            f"counts as failed. {self.kind.about_pruning}",
        )

    def _level_in_words(self, trial: FrozenTrial) -> str:
        assert self.kind.fidelity is not None
        name = self.kind.fidelity.name
        return f"{name}={trial.params[name]!r}"

    # What a model learns.

    def _learn(
        self, arm: int, trial: FrozenTrial
    ) -> tuple[dict[str, Any], dict[int, Mapping[str, float]]]:
        """Return parameters that a model was not told about, and where draws lie among them."""
        self.values.see(arm, trial, trial.params)
        asked = self.values.configuration(trial.distributions)
        self._distributions |= asked
        if self.values.is_declared:
            return {}, {}
        kinds = {name: kind_of(each) for name, each in asked.items()}
        new = {name: kind for name, kind in kinds.items() if kind and self._told.get(name) != kind}
        self._told |= new
        points = {arm: point_of(self.values[arm].params, asked)}
        if new:
            points |= {
                each: self._planned(each) for each in self.values.even_draws() if each != arm
            }
        return new, points

    def _planned(self, arm: int) -> Point:
        """Return where a draw will lie, as far as the space is known."""
        params = {
            name: self.values.planned(arm, name, distribution)
            for name, distribution in self._distributions.items()
        }
        return point_of(params, self._distributions)

    def warn(self, about: str, message: str, category: type[Warning] = UserWarning) -> None:
        """Warn, unless that was said before."""
        if about not in self.warned:
            self.warned.add(about)
            warnings.warn(message, category, stacklevel=8)


def concluded_by(trial: FrozenTrial, study: str) -> Concluded | None:
    """Return that a study's worker has given a certified answer, which the trial shows."""
    note = read_attribute(trial, CONCLUDED_KEY)
    if note is None or note["study"] != study:
        return None
    open = tuple(map(str, note["open"]))
    return Concluded(id=str(trial.number), order=note["order"], open=open)


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


def short_key(params: Mapping[str, Any]) -> str:
    """Return a short text that tells a configuration of a list from the others."""
    return hashlib.sha256(key_of(params, described).encode()).hexdigest()[:12]
