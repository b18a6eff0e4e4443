"""A study as it stands: its trials, the sampler that reads it, and the answer so far."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from mfhpo._validation import shown
from mfhpo_optuna.games.sampler import NashSampler
from mfhpo_optuna.study.attributes import certificate_of
from mfhpo_optuna.visualization.reading import (
    ReadingSampler,
    Record,
    last_answer,
    reading_sampler,
    record_of,
)


@dataclass(frozen=True)
class StudyReading:
    """A study at one moment.

    The answer is that of `certify`, that of the sampler, or without a sampler the last one that the
    study itself holds.
    """

    study: optuna.Study
    trials: tuple[FrozenTrial, ...]
    sampler: ReadingSampler | None  # that reads the study
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
    def is_record(self) -> bool:
        """Whether the study is one in which `certify` records its evaluations."""
        return self.record is not None and self.record.name == self.study.study_name

    @property
    def is_of_certify(self) -> bool:
        """Whether the answer is that of `certify`."""
        return self.record is not None and self.answer is self.record.answer is not None


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
    try:
        sampler = sampler or reading_sampler(study)
    except ValueError as error:
        without = str(error)
    record = record_of(study)
    answer, reason = (None, "") if sampler is None else _answer(study, sampler)
    trials = tuple(study.get_trials(deepcopy=False))
    if sampler is None:
        last, reason = last_answer(trials), _why_none(study, record)
        answer = None if last is None else certificate_of(last)
    if record is not None and record.answer is not None:
        certifies_less = answer is not None and answer.get("certified")
        if record.answer.get("certified") or not certifies_less:
            answer = record.answer
    return StudyReading(study, trials, sampler, without, answer, "" if answer else reason, record)


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


def _answer(study: optuna.Study, sampler: ReadingSampler) -> tuple[dict[str, Any] | None, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if isinstance(sampler, NashSampler):
                game = sampler.equilibrium(study)
                return (game.to_dict(), "") if game.params else (None, game.reason)
            answer = sampler.recommendation(study)
        except ValueError as error:
            return None, str(error)
    # All values of an arm may have been NaN.
    is_unknown = answer.censored is None and not math.isfinite(answer.mean)
    if answer.arm is None or is_unknown:
        return None, answer.reason
    return answer.to_dict(), ""
