"""The attributes of studies and trials by which samplers, pruners and enforcers of limits talk.

Anybody may have written them: `read_attribute` checks each, and what is wrong counts as not there.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypeAlias, get_args

import optuna
from optuna.trial import BaseTrial, FrozenTrial, TrialState

from mfhpo._validation import is_number
from mfhpo.experiment.events import Origin, Purpose
from mfhpo_optuna.arguments import may_be_arms


@dataclass(frozen=True)
class _Note:
    """A note that is written as plain JSON values, without those that are as usual."""

    def to_dict(self) -> dict[str, Any]:
        """Return the note as it is written."""
        noted: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value != each.default:
                noted[each.name] = list(value) if isinstance(value, tuple) else value
        return noted

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> Any:
        """Return the note that was written; TypeError if one of its fields lacks."""
        known: dict[str, Any] = {}
        for each in fields(cls):
            if each.name in noted:
                value = noted[each.name]
                known[each.name] = tuple(value) if isinstance(value, list) else value
        return cls(**known)


@dataclass(frozen=True)
class PullNote(_Note):
    """A trial's note about the evaluation that it claims; see `ARM_KEY`.

    `arm` is the place in a list, whose entries are known by their `key`, or the number of a draw.
    """

    trial: int
    study: str
    order: int
    arm: int
    key: str | None = None
    fidelity: int | None = None  # None: not known when it began
    block: int | None = None
    purpose: Purpose = "given"
    origin: Origin = "chosen"
    shortlist: tuple[int | str, ...] = ()  # arms that a certificate compares: keys or numbers
    point: Mapping[str, float] | None = None  # where a draw is to lie
    values: Mapping[str, Any] | None = None  # of a draw that is tried first: its own, or centres
    chooses: str = "levels of a fidelity"  # what its sampler chooses besides configurations
    retry_of: int | None = None
    worker: str | None = None
    arguments: str | None = None


@dataclass(frozen=True)
class EndNote(_Note):
    """A trial's note about its end, or about the loss of its worker; see `END_KEY`, `LOST_KEY`."""

    trial: int
    order: int
    worker: str | None = None
    state: str = ""  # of the trial, as it was to be stored
    why: str = ""
    is_sure: bool = True
    is_withdrawn: bool = False


# Attributes of trials: the pull that one evaluates, and in it the process that does so, and the
# digest of the arguments (`mfhpo_optuna.arguments.Settings`) of the sampler that has chosen it.
ARM_KEY = "mfhpo:pull"
WORKER, ARGUMENTS = "worker", "arguments"
ANSWERING_KEY = "mfhpo:answering"  # the process that is about to add the answer
CERTIFICATE_KEY = "mfhpo:certificate"  # of one that answers
CONCLUDED_KEY = "mfhpo:concluded"  # of a certified answer: its counter, and what had not ended
SO_FAR_KEY = "mfhpo:so_far"  # of an answer before the end: the number of evaluations behind it
LIMIT_KEY = "mfhpo:limit"  # the seconds that it may take; a sampler writes them before the trial
# The seconds that a trial really took. `time_limited` writes it, and samplers to which seconds are
# the cost: all workers of a study must read the same.
SECONDS_KEY = "mfhpo:seconds"
END_KEY = "mfhpo:end"  # who has ended the trial, and which counter its end has
LOST_KEY = "mfhpo:lost"  # of one whose worker is dead or was given up
CENSORED_KEY = "mfhpo:censored_at"  # the limit in seconds at which it was stopped
MEMORY_KEY = "mfhpo:memory_limit"  # the limit in bytes at which it was stopped for its memory
STORAGE_FAILED_KEY = "mfhpo:storage_failed"  # of one that counts for nothing: its number
# Who enforces the limit that a sampler gave to a trial, "time_limited" or "TimeLimitPruner":
# written when enforcement begins, so that the sampler can warn when nobody does.
ENFORCER_KEY = "mfhpo:enforced_by"


# Attributes of studies.
GAME_KEY = "mfhpo:game"  # the game that is played
FIDELITY_KEY = "mfhpo:fidelity"  # the parameter that sets the levels, where the sampler chooses
SAMPLER_KEY = "mfhpo:sampler"  # that runs it, as `mfhpo_optuna.arguments` writes it
SHORTLIST_KEY = "mfhpo:shortlist"  # of a record of `certify`: the study that it is about

NO_ANSWER = "mfhpo"  # the constraint that single pulls break, so that none is the best trial

# Bytes of an attribute as JSON, which is ASCII: MySQL holds 65,535. A piece of a longer one is a
# text, in which each character may take two bytes.
_MOST_BYTES = 60_000
_PIECE = _MOST_BYTES // 2 - 1

# In an attribute that goes on in others, "<key>:0" and so on: their number.
_PIECES = "pieces"

# What nobody exceeds who means it: whole numbers, and characters of a name.
_MOST, _LONGEST_NAME = 2**31, 10_000

Check: TypeAlias = Callable[[Any], bool]


def read_attribute(of: optuna.Study | BaseTrial, key: str) -> Any:
    """Return an attribute of ours, or None if there is none or it is not what we write.

    A warning says what is wrong. Those that other attributes go on with are put together.
    """
    if isinstance(of, optuna.Study):
        attributes = of._storage.get_study_user_attrs(of._study_id)  # not copied
    else:
        attributes = of.user_attrs
    if key not in attributes:
        return None
    try:
        value = attributes[key]
        if isinstance(value, Mapping) and _PIECES in value:
            pieces = (attributes[f"{key}:{number}"] for number in range(value[_PIECES]))
            value = json.loads("".join(pieces))
        if _CHECKS[key](value):
            return _NOTES[key].of(value) if key in _NOTES else value
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        pass  # what is wrong may raise any of these
    warn_of_attribute(of, key)
    return None


def pull_note(trial: BaseTrial) -> PullNote | None:
    """Return what a trial says about its pull, or None if it is no pull."""
    note: PullNote | None = read_attribute(trial, ARM_KEY)
    return note


def certificate_of(trial: FrozenTrial) -> dict[str, Any] | None:
    """Return the certificate of a trial that answers, or None if it is no answer."""
    if trial.state != TrialState.COMPLETE or not trial.values or len(trial.values) != 1:
        return None
    content: dict[str, Any] | None = read_attribute(trial, CERTIFICATE_KEY)
    return content


def is_feasible(trial: FrozenTrial) -> bool:
    """Return whether a trial breaks no constraint, or as a pull mfhpo's own one alone."""
    broken = {name for name, value in trial.constraints.items() if value > 0.0}
    return not broken or (broken == {NO_ANSWER} and ARM_KEY in trial.user_attrs)


def warn_of_attribute(of: optuna.Study | BaseTrial, key: str) -> None:
    """Warn that an attribute is ignored because mfhpo would not have written it.

    It is read often: Python shows the same text at the same place once.
    """
    whose = f"study {of.study_name!r}" if isinstance(of, optuna.Study) else f"trial {of.number}"
    warnings.warn(
        f"the user attribute {key!r} of {whose} is not what mfhpo writes: it is ignored. It was "
        f"damaged, or written by something else.",
        stacklevel=2,
    )


def attributes_for(key: str, value: Any) -> dict[str, Any]:
    """Return the attributes that hold a value: one, or several if it is too long for a database."""
    text = json.dumps(value, default=str)  # storages in memory hold choices that JSON does not
    if len(text) <= _MOST_BYTES:
        return {key: value}
    pieces = [text[begin : begin + _PIECE] for begin in range(0, len(text), _PIECE)]
    # The number comes last: who sees it sees all of them.
    attributes = {f"{key}:{number}": piece for number, piece in enumerate(pieces)}
    return {**attributes, key: {_PIECES: len(pieces)}}


def write_attribute(study: optuna.Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Set a user attribute of a running trial, in the storage and on the copy at hand."""
    for name, part in attributes_for(key, value).items():
        # No public way leads from a sampler, or a pruner, to the attributes of a running trial.
        study._storage.set_trial_user_attr(trial._trial_id, name, part)
        trial.user_attrs[name] = part


def write_note(of: optuna.Study | BaseTrial, key: str, value: Any) -> None:
    """Set a user attribute of a study, or of the trial that an objective runs."""
    for name, part in attributes_for(key, value).items():
        of.set_user_attr(name, part)


def parameters_before(trial: FrozenTrial) -> dict[str, Any] | None:
    """Return what a trial has when it begins: enqueued, or of the lost one that it repeats."""
    enqueued: dict[str, Any] | None = trial.system_attrs.get("fixed_params")
    if trial.params:
        return {**(enqueued or {}), **trial.params}
    return enqueued


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME


def _are(check: Check, values: Any) -> bool:
    return isinstance(values, (list, tuple)) and all(map(check, values))


def _is_point(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        is_number(place) and 0.0 <= place <= 1e6 for place in value.values()
    )


def _is_number_or_none(value: Any) -> bool:
    return value is None or is_number(value)


def _is_positive(value: Any) -> bool:
    return is_number(value) and float(value) > 0.0


def _fields(needed: str, /, **checks: Check) -> Check:
    """Return what tells whether a mapping has all `needed` fields, each as it should be."""
    needs = set(needed.split())

    def check(value: Any) -> bool:
        if not (isinstance(value, Mapping) and needs <= value.keys()):
            return False
        return all(checks[name](value[name]) for name in checks.keys() & value.keys())

    return check


_BY_TYPE: dict[str, Check] = {
    "int": _is_whole,
    "str": _is_name,
    "bool": lambda value: isinstance(value, bool),
    "Purpose": get_args(Purpose).__contains__,
    "Origin": get_args(Origin).__contains__,
    "Mapping[str, float]": _is_point,
    "Mapping[str, Any]": lambda value: isinstance(value, Mapping),
    "tuple[int | str, ...]": lambda those: _are(lambda of: _is_whole(of) or _is_name(of), those),
}


def _checks_of(note: type) -> dict[str, Check]:
    """Return what the fields of a note must be, by their types."""
    return {of.name: _BY_TYPE[str(of.type).removesuffix(" | None")] for of in fields(note)}


_NOTES: dict[str, type[_Note]] = {ARM_KEY: PullNote, END_KEY: EndNote, LOST_KEY: EndNote}

_CHECKS: dict[str, Check] = {
    **{key: _fields("", **_checks_of(note)) for key, note in _NOTES.items()},
    GAME_KEY: _fields(
        "players fidelity",
        players=lambda players: all(_are(_is_name, names) for names in players.values()),
        fidelity=partial(_are, _is_name),
    ),
    ANSWERING_KEY: _is_name,
    CERTIFICATE_KEY: _fields(
        "arm",
        arm=lambda arm: arm is None or _is_whole(arm),
        certified=lambda value: isinstance(value, bool),
        delta=_is_number_or_none,
        epsilon=_is_number_or_none,
        trials=_is_whole,
        evaluations=_is_whole,
        candidates=partial(_are, lambda of: isinstance(of["name"], str) and of["name"] != ""),
    ),
    SO_FAR_KEY: _is_whole,
    CONCLUDED_KEY: _fields(
        "study order open", study=_is_name, order=_is_whole, open=partial(_are, _is_whole)
    ),
    FIDELITY_KEY: _is_name,
    SAMPLER_KEY: _fields(
        "sampler arguments",
        sampler=_is_name,
        digest=_is_name,
        worker=_is_name,
        version=_is_whole,
        arguments=lambda given: (
            may_be_arms(given.get("arms", 0)) and may_be_arms(given.get("candidates", 0))
        ),
    ),
    SHORTLIST_KEY: _fields(
        "study candidates first_number",
        study=_is_name,
        direction=_is_name,
        first_number=_is_whole,
        candidates=partial(_are, lambda of: isinstance(of, (list, tuple)) and len(of) == 2),
        replicate=lambda name: name is None or _is_name(name),
    ),
    LIMIT_KEY: _is_positive,
    SECONDS_KEY: lambda value: is_number(value) and 0.0 <= float(value) < math.inf,
    CENSORED_KEY: _is_positive,
    MEMORY_KEY: _is_positive,
    STORAGE_FAILED_KEY: _is_whole,
    ENFORCER_KEY: _is_name,
}
"""By attribute, what tells whether its value is what is written; it may raise what is caught."""
