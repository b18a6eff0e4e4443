"""A study as it stands: its trials, the sampler that reads it, and the answer so far."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

import optuna
from optuna.trial import FrozenTrial

from mfhpo._validation import shown
from mfhpo_optuna.arguments import from_json, is_of_later_version
from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.recommendations import StudyRecommendation
from mfhpo_optuna.samplers.best_arm import (
    IISESampler,
    MFGradSampler,
    MFLUCBSampler,
    MFTopTwoSampler,
)
from mfhpo_optuna.samplers.choice import MFSampler
from mfhpo_optuna.samplers.fidelity_sampler import FidelitySampler
from mfhpo_optuna.samplers.limit_sampler import LimitSampler
from mfhpo_optuna.samplers.rcucb import RCUCBSampler, ZoomingRCUCBSampler
from mfhpo_optuna.samplers.reward import MFEliminationSampler, MFUCBSampler
from mfhpo_optuna.samplers.search_sampler import SearchSampler
from mfhpo_optuna.study.attributes import CERTIFICATE_KEY, SAMPLER_KEY, SHORTLIST_KEY

ReadingSampler: TypeAlias = FidelitySampler | LimitSampler | NashSampler

_SAMPLERS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        IISESampler,
        MFEliminationSampler,
        MFGradSampler,
        MFLUCBSampler,
        MFSampler,
        MFTopTwoSampler,
        MFUCBSampler,
        NashSampler,
        RCUCBSampler,
        SearchSampler,
        ZoomingRCUCBSampler,
    )
}

_NO_SAMPLER = (
    "the study does not say how it was run: that is noted by the samplers of mfhpo, from the "
    "first trial on"
)

_CANNOT_BE_USED = "the study's note of its sampler cannot be used: {}"

# What a note of another version, or a damaged one, leads to.
_FAULTS_OF_A_NOTE = (AttributeError, ImportError, LookupError, TypeError, ValueError)

# Arguments that say nothing about a study, but may need what is not installed here.
_ONLY_TO_RUN = {"lease", "progress"}


@dataclass(frozen=True)
class StudyReading:
    """A study at one moment.

    Parameters
    ----------
    study, trials
        The study, and all its trials at that moment.
    sampler, without
        The sampler that reads it, or None and why there is none.
    answer
        The sampler's answer as plain JSON values. Without a sampler, the newest one that the study
        itself holds. None if there is no answer yet.
    reason
        Why there is no answer; empty if there is one.
    """

    study: optuna.Study
    trials: tuple[FrozenTrial, ...]
    sampler: ReadingSampler | None
    without: str
    answer: dict[str, Any] | None
    reason: str

    @property
    def sign(self) -> float:
        """1 where larger values are better, and -1 where smaller ones are."""
        maximise = self.study.directions[0] == optuna.study.StudyDirection.MAXIMIZE
        return 1.0 if maximise else -1.0


def read_study(study: optuna.Study, sampler: ReadingSampler | None = None) -> StudyReading:
    """Read a study by the sampler that is given, by its own, or by the one that it names.

    Nothing is written to it by a sampler with the arguments of the one that has run it. Raises
    TypeError for a sampler that is not mfhpo's.
    """
    if sampler is not None and not isinstance(sampler, ReadingSampler):
        raise TypeError(
            "sampler must be a sampler of mfhpo such as SearchSampler(...) or None, "
            f"got {shown(sampler)}."
        )
    without = ""
    if sampler is None and isinstance(study.sampler, ReadingSampler):
        sampler = study.sampler
    if sampler is None:
        try:
            sampler = stored_sampler(study)
        except ValueError as error:
            without = str(error)
    answer, reason = _answer(study, sampler)
    trials = tuple(study.get_trials(deepcopy=False))
    if sampler is None:
        answer = _stored_answer(trials)
    return StudyReading(study, trials, sampler, without, answer, "" if answer else reason)


def stored_sampler(study: optuna.Study) -> ReadingSampler:
    """A sampler with the arguments of the one that has run a study, to read it and not to run it.

    Raises ValueError if the study does not tell them.
    """
    note = study.user_attrs.get(SAMPLER_KEY)
    if note is None:
        raise ValueError(_NO_SAMPLER)
    if SHORTLIST_KEY in study.user_attrs:
        raise ValueError("the study records evaluations of `certify`, which has no sampler to give")
    name, noted = _parts_of(note)
    if name not in _SAMPLERS:
        raise ValueError(f"the study was run with {name}, which is no sampler of mfhpo")
    try:
        arguments = from_json({key: noted[key] for key in noted if key not in _ONLY_TO_RUN})
    except ValueError as error:
        raise ValueError(
            f"the study was run with {name}, of whose arguments only the text is known: {error}"
        ) from error
    except _FAULTS_OF_A_NOTE as error:
        raise ValueError(_CANNOT_BE_USED.format(repr(error))) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever made the first one has seen them
            sampler: ReadingSampler = _SAMPLERS[name](**arguments)
    except _FAULTS_OF_A_NOTE as error:
        raise ValueError(_CANNOT_BE_USED.format(repr(error))) from error
    return sampler


def _parts_of(note: Any) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a sampler as they are noted; ValueError if they are not there."""
    if isinstance(note, dict):
        name, arguments = note.get("sampler"), note.get("arguments")
        if is_of_later_version(note):
            raise ValueError(_CANNOT_BE_USED.format("a later mfhpo has written it"))
        if isinstance(name, str) and isinstance(arguments, dict):
            return name, arguments
    raise ValueError(_CANNOT_BE_USED.format("it has no name with arguments"))


def _answer(
    study: optuna.Study, sampler: ReadingSampler | None
) -> tuple[dict[str, Any] | None, str]:
    """The sampler's answer, or None and why there is none."""
    if sampler is None:
        certified = study.user_attrs.get(SHORTLIST_KEY, {}).get("study")
        if certified is not None:
            return (
                None,
                f"the certificate of study {certified!r}, which is recorded here, has no answer "
                f"yet: it is not complete, or no candidate gave usable values; `certify` with a "
                f"timeout of 0 says which",
            )
        return None, "no sampler of mfhpo has answered in this study"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if isinstance(sampler, NashSampler):
                game = sampler.equilibrium(study)
                return (game.to_dict(), "") if game.params else (None, game.reason)
            answer = sampler.recommendation(study)
        except ValueError as error:
            return None, str(error)
    if answer.arm is None or _is_unknown(answer):
        return None, answer.reason
    return answer.to_dict(), ""


def _is_unknown(answer: Any) -> bool:
    """Whether nothing is known about what an arm is worth: all of its values were NaN."""
    return isinstance(answer, StudyRecommendation) and not math.isfinite(answer.mean)


def _stored_answer(trials: tuple[FrozenTrial, ...]) -> dict[str, Any] | None:
    for trial in reversed(trials):
        if CERTIFICATE_KEY in trial.user_attrs:
            answer: dict[str, Any] = trial.user_attrs[CERTIFICATE_KEY]
            return answer
    return None
