"""A study as it stands: its trials, the experiment that they are, and the answer so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import optuna
from optuna.trial import FrozenTrial

from mfhpo._validation import check_instance
from mfhpo.experiment import Answer
from mfhpo_optuna.kinds.fidelity import FidelityKind
from mfhpo_optuna.kinds.limits import LimitKind
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials.attributes import certificate_of
from mfhpo_optuna.visualization.reading import (
    Record,
    last_answer,
    read_anew,
    reading_sampler,
    record_of,
)

Purpose = Literal["search", "race", "limits", "game", "trial"]


@dataclass(frozen=True)
class StudyReading:
    """A study at one moment.

    The answer is that of `certify`, that of the sampler, or without a sampler the last one that the
    study itself holds.
    """

    study: optuna.Study
    trials: tuple[FrozenTrial, ...]
    sampler: StudySampler | None  # that reads the study
    known: StudyExperiment | None  # None if the sampler cannot run the study, or it has not begun
    without: str  # why there is no sampler
    answer: dict[str, Any] | None  # as plain JSON values; None if there is none yet
    reason: str  # why there is no answer
    record: Record | None  # None if `certify` was not called

    @property
    def sign(self) -> float:
        """1 where larger values are better, and -1 where smaller ones are."""
        maximise = self.study.directions[0] == optuna.study.StudyDirection.MAXIMIZE
        return 1.0 if maximise else -1.0

    @property
    def purpose(self) -> Purpose:
        """The purpose of its trials; "trial" where that is not known."""
        if self.known is None:
            return "trial"
        if isinstance(self.known.kind, FidelityKind):
            return "search" if self.known.searches else "race"
        return "limits" if isinstance(self.known.kind, LimitKind) else "game"

    @property
    def is_record(self) -> bool:
        """Whether the study is one in which `certify` records its evaluations."""
        return self.record is not None and self.record.name == self.study.study_name

    @property
    def is_of_certify(self) -> bool:
        """Whether the answer is that of `certify`."""
        return self.record is not None and self.answer is self.record.answer is not None


def read_study(study: optuna.Study, sampler: StudySampler | None = None) -> StudyReading:
    """Read a study by the sampler that is given, by its own, or by the one that it names.

    Nothing is written to it by a sampler with the arguments of the one that has run it. Raises
    TypeError for a sampler that is not mfhpo's.
    """
    right = "a sampler of mfhpo such as SearchSampler(...) or None"
    check_instance("sampler", sampler, StudySampler | None, right)
    without, answer = "", None
    known: StudyExperiment | None = None
    trials = tuple(study.get_trials(deepcopy=False))
    record = record_of(study)
    try:
        sampler = sampler or reading_sampler(study)
    except ValueError as error:
        last = last_answer(trials)
        answer = None if last is None else certificate_of(last)
        without, reason = str(error), _why_none(study, record)
    else:
        try:
            known, found = read_anew(study, sampler)
        except ValueError as error:
            reason = str(error)
        else:
            reason, answer = found.reason, found.to_dict() if _says_something(found) else None
    if record is not None and record.answer is not None:
        certifies_less = answer is not None and answer.get("certified")
        if record.answer.get("certified") or not certifies_less:
            answer = record.answer
    reason = "" if answer else reason
    return StudyReading(study, trials, sampler, known, without, answer, reason, record)


def _why_none(study: optuna.Study, record: Record | None) -> str:
    """Return why a study has no answer that no sampler of ours has run."""
    if record is None:
        return "no sampler of mfhpo has answered in this study"
    place = "here" if record.name == study.study_name else f"in study {record.name!r}"
    return (
        f"the certificate of study {record.about.get('study')!r}, which is recorded {place}, has "
        f"no answer yet: it is not complete, or no candidate gave usable values; certify with a "
        f"timeout of 0 says which"
    )


def _says_something(answer: Answer) -> bool:
    """Return whether anything is known; all values of an arm may have been NaN."""
    if answer.dissatisfaction is not None:
        return bool(answer.params)
    return answer.arm is not None and (answer.censored is not None or math.isfinite(answer.mean))
