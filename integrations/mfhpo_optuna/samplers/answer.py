"""The trial that a sampler adds so that ``study.best_trial`` shows the answer of its race."""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import create_trial

from mfhpo_optuna.study.attributes import CERTIFICATE_KEY, WITHHELD_KEY
from mfhpo_optuna.study.study_race import StudyRace


@dataclass(frozen=True)
class Answer:
    """The trial that `best_trial` is to show."""

    arm: int | None
    mean: float
    value: float  # what the trial promises; nothing is worse than NaN
    params: Mapping[str, Any]
    distributions: Mapping[str, BaseDistribution]
    attributes: Mapping[str, Any]  # `CERTIFICATE_KEY` among them
    reason: str  # why the race is where it is
    remedy: str = "Give it a larger budget, or mend the objective."  # if there is no answer


def pessimistic(interval: tuple[float, float], sign: float) -> float:
    """The end that is certain, which a later answer beats; `sign` is -1 where less is better."""
    return interval[0 if sign > 0.0 else 1]


def add_answer(
    study: optuna.Study,
    race: StudyRace,
    answer: Answer,
    is_repeat: Callable[[Mapping[str, Any], Mapping[str, Any]], bool],
) -> None:
    """Add an answer to the study, unless there is none or an earlier one says the same.

    While it is withheld, it is added as the worst trial.
    """
    withheld = race.policy is not None and bool(race.policy.withheld)
    if withheld:
        # Whatever is known once the trials have ended takes its place.
        attributes = {**answer.attributes, WITHHELD_KEY: True}
        answer = replace(answer, value=-race.sign * math.inf, attributes=attributes)
    if answer.arm is None or math.isnan(answer.mean):
        warnings.warn(
            f"the race ended without an answer: {answer.reason}. {answer.remedy}", stacklevel=5
        )
        return
    earlier = (
        trial.user_attrs[CERTIFICATE_KEY]
        for trial in race.certificates
        if (WITHHELD_KEY in trial.user_attrs) == withheld
    )
    if any(is_repeat(answer.attributes[CERTIFICATE_KEY], one) for one in earlier):
        return
    study.add_trial(
        create_trial(
            value=answer.value,
            params={name: answer.params[name] for name in answer.distributions},
            distributions=dict(answer.distributions),
            user_attrs=dict(answer.attributes),
        )
    )
    race.read(study)
    shown = study.best_trial
    arm = shown.user_attrs.get(CERTIFICATE_KEY, {}).get("arm")
    if (arm, shown.value) != (answer.arm, answer.value):
        warnings.warn(
            f"study.best_trial still shows trial {shown.number}, whose value "
            f"{shown.value:.5g} beats the value {answer.value:.5g} of the answer; it is an "
            f"earlier answer or was not part of the race. Use sampler.recommendation(study).",
            stacklevel=5,
        )
