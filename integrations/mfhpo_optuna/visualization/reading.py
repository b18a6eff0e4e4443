"""The contents of a study: its sampler, its evaluations, and the answers about it."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any, Literal

import optuna
from optuna.trial import FrozenTrial

from mfhpo._validation import check_instance, shown
from mfhpo.experiment import Answer, Experiment
from mfhpo.experiment.kinds.blind import with_levels
from mfhpo.experiment.kinds.runner import Runner
from mfhpo.problem import Observation
from mfhpo_optuna.arguments import from_json, objection_to_version
from mfhpo_optuna.samplers.fidelity_kinds import FidelityKind
from mfhpo_optuna.samplers.rcucb import LimitKind
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.distributions import signs_of
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials.attributes import (
    SAMPLER_KEY,
    SHORTLIST_KEY,
    certificate_of,
    read_attribute,
)
from mfhpo_optuna.visualization.style import require_plotly

Purpose = Literal["search", "race", "limits", "game", "trial"]

_ONLY_TO_RUN = {"lease", "progress"}  # arguments that say nothing about a study


def stored_sampler(study: optuna.Study) -> StudySampler:
    """Return a sampler like the one that has run a study, to read it; ValueError if not known."""
    if SAMPLER_KEY not in study.user_attrs:
        raise ValueError("the study does not say how it was run, as studies of mfhpo's samplers do")
    if read_attribute(study, SHORTLIST_KEY) is not None:
        raise ValueError("the study records evaluations of certify, which has no sampler to give")
    note = read_attribute(study, SAMPLER_KEY)
    useless = "the study's note of its sampler cannot be used"
    if note is None:
        raise ValueError(f"{useless}: it has no name with arguments")
    if objection := objection_to_version(note):
        raise ValueError(f"the study {objection}")
    name, noted = note["sampler"], note["arguments"]
    package = import_module("mfhpo_optuna")
    if name not in package.__all__ or not name.endswith("Sampler"):
        raise ValueError(f"the study was run with {name}, which is no sampler of mfhpo")
    try:
        arguments = from_json({key: noted[key] for key in noted if key not in _ONLY_TO_RUN})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever made the first one has seen them
            sampler: StudySampler = getattr(package, name)(**arguments)
            return sampler
    except (AttributeError, ImportError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{useless}: {error}") from error


def reading_sampler(study: optuna.Study) -> StudySampler:
    """Return the sampler that has run a study, or one like it by its note; ValueError without."""
    own, note = study.sampler, read_attribute(study, SAMPLER_KEY)
    has_run_it = note is None or note["sampler"] == type(own).__name__
    is_record = read_attribute(study, SHORTLIST_KEY) is not None
    if isinstance(own, StudySampler) and has_run_it and not is_record:
        return own
    return stored_sampler(study)


def read_anew(study: optuna.Study, sampler: StudySampler) -> tuple[StudyExperiment, Answer]:
    """Return a study's experiment and answer, beside other threads; ValueError if none."""
    reader = sampler.reader()
    reader._check_study(study)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were given before, as was what the log says
        reader._studies.of(study).announced = True
        reader.recommendation(study)
        known = reader.known(study)
        return known, known.answer()


def told(
    study: optuna.Study, sampler: StudySampler | None, kind: type[Any], plot: str, needed: str
) -> tuple[StudyExperiment, Answer]:
    """Return a study's experiment and its answer, for a plot that needs one of a kind."""
    require_plotly(plot)
    check_instance("study", study, optuna.Study, "an optuna.Study")
    why, found = "", sampler
    try:
        found = reading_sampler(study) if sampler is None else sampler
    except ValueError as error:
        why = str(error)
    if isinstance(found, StudySampler) and isinstance(found.kind, kind):
        return read_anew(study, found)
    if sampler is not None:
        raise TypeError(f"sampler must be {needed}, or None for {plot}, got {shown(sampler)}.")
    why = why or f"the study was run with {type(found).__name__}"
    raise TypeError(
        f"{plot} needs {needed}, but study.sampler is a {type(study.sampler).__name__}, and {why}; "
        f"pass sampler=, made with the arguments of the study's."
    )


@dataclass(frozen=True)
class Record:
    """The study in which `certify` evaluates the best configurations of a study."""

    name: str
    about: Mapping[str, Any]  # what it notes: the study that it is about, and its candidates
    answer: dict[str, Any] | None  # the certificate as plain JSON values; None if there is none yet
    ended: datetime | None  # when it was answered


def record_of(study: optuna.Study) -> Record | None:
    """Return where `certify` last answered about a study: itself, or another of its storage."""
    if (own := _record(study)) is not None:
        return own
    storage = study._storage
    named = [s.study_name for s in storage.get_all_studies() if SHORTLIST_KEY in s.user_attrs]
    found = [_record(optuna.load_study(study_name=name, storage=storage)) for name in named]
    about = [each for each in found if each and each.about["study"] == study.study_name]
    ended = {f"trial {t.number}": t.datetime_complete for t in study.get_trials(deepcopy=False)}
    answered = []
    for each in about:  # one about a study of the same name, which was deleted, does not count
        candidates = (each.answer or {}).get("candidates", ())
        times = [ended.get(one["name"]) for one in candidates if one["claim"] is not None]
        if each.ended and all(time is not None and time <= each.ended for time in times):
            answered.append(each)
    without = next((each for each in about if each.ended is None), None)
    return max(answered, key=lambda each: each.ended or datetime.min, default=without)


def _record(study: optuna.Study) -> Record | None:
    about = read_attribute(study, SHORTLIST_KEY)
    if about is None:
        return None
    if (last := last_answer(study.get_trials(deepcopy=False))) is None:
        return Record(study.study_name, about, None, None)
    ended = last.datetime_complete or last.datetime_start
    return Record(study.study_name, about, certificate_of(last), ended)


def last_answer(trials: Sequence[FrozenTrial]) -> FrozenTrial | None:
    """Return the newest trial that holds an answer; None without one."""
    return next((t for t in reversed(trials) if certificate_of(t) is not None), None)


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
        return signs_of(self.study)[0]

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
        """True if `certify` records its evaluations in the study."""
        return self.record is not None and self.record.name == self.study.study_name

    @property
    def is_of_certify(self) -> bool:
        """True if the answer is that of `certify`."""
        return self.record is not None and self.answer is self.record.answer is not None


def read_study(study: optuna.Study, sampler: StudySampler | None = None) -> StudyReading:
    """Read a study by the sampler that is given, by its own, or by the one that it names."""
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
        without, reason = str(error), "no sampler of mfhpo has answered in this study"
        if record is not None:
            place = "here" if record.name == study.study_name else f"in study {record.name!r}"
            reason = (
                f"the certificate of study {record.about.get('study')!r}, which is recorded "
                f"{place}, has no answer yet: it is not complete, or no candidate gave usable "
                f"values; certify with a timeout of 0 says which"
            )
    else:
        try:
            known, found = read_anew(study, sampler)
        except ValueError as error:
            reason = str(error)
        else:
            says_something = found.arm is not None and (
                found.censored is not None or math.isfinite(found.mean)  # all may have been NaN
            )
            if found.dissatisfaction is not None:
                says_something = bool(found.params)
            reason, answer = found.reason, found.to_dict() if says_something else None
    if record is not None and record.answer is not None:
        certifies_less = answer is not None and answer.get("certified")
        if record.answer.get("certified") or not certifies_less:
            answer = record.answer
    reason = "" if answer else reason
    return StudyReading(study, trials, sampler, known, without, answer, reason, record)


@dataclass(frozen=True)
class Evaluation:
    """One trial: what it evaluated, and what was paid in all before and after it."""

    trial: int
    arm: int
    fidelity: int  # the index of its level
    begin: float
    end: float
    value: float  # as the objective returned it; NaN without one
    failed: bool
    purpose: str  # see `mfhpo.experiment.Begun`

    @property
    def has_value(self) -> bool:
        """True if it gave a value."""
        return math.isfinite(self.value)

    @property
    def is_replicate(self) -> bool:
        """True if it was made for the certificate."""
        return self.purpose == "certificate"


def told_again(known: StudyExperiment) -> Iterator[tuple[Runner, list[Evaluation]]]:
    """Yield what a study's experiment has learned each time, and its runner after that."""
    experiment = Experiment(with_levels(known.experiment.settings, known.trials.levels))
    n_known, cost = 0, 0.0
    for event in known.experiment.events:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given before
            experiment.apply(event)
            learned = experiment.history()[n_known:]
        if not learned:
            continue
        runner = experiment.runner
        new: list[Evaluation] = []
        for result in learned:
            begin, cost = cost, cost + runner.cost_of(result.pull, result.observation)
            if result is learned[-1]:  # the others waited for it
                cost = runner.cost
            pull, seen = result.pull, result.observation
            failed = seen.failed if isinstance(seen, Observation) else None in seen  # in a game
            value = getattr(seen, "value", None)
            value = math.nan if value is None else known.sign * value
            place = int(result.id), pull.arm, pull.fidelity, begin, cost
            new.append(Evaluation(*place, value, failed, result.purpose))
        n_known += len(learned)
        yield runner, new
