"""The trials that a sampler adds so that ``study.best_trial`` shows the answer of its race.

Optuna changes no finished trial, and its best trial is the feasible one with the best value. Single
evaluations are infeasible, and answers are not. A later answer takes the place of earlier ones by
its value, which is what it promises. Where an earlier one promised as much or more, the value is
the next number beyond that; mean and interval are in its attributes.

Until the race is over, an answer is not certified, and promises the pessimistic end of the leader's
interval (`cautious_value` while that is infinite). Another one is added if another arm leads, or if
the same arm promises more after twice as many evaluations. This is checked after each of the first
50 evaluations, and then whenever there are a fiftieth more. So the number of answers grows with the
logarithm of the evaluations, and depends on the study alone. Only the end of a race takes the place
of a certified answer.

Several workers may find at the same moment that a race is over: the one with the first trial
answers. A worker that learned in another order than that of the ends learns all anew before it
answers, so that readers of the study find the same.
"""

import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from mfhpo_optuna.study.attributes import (
    ANSWERING_KEY,
    CERTIFICATE_KEY,
    SO_FAR_KEY,
    WITHHELD_KEY,
    attributes_for,
    certificate_of,
    read_attribute,
    write_attribute,
)
from mfhpo_optuna.study.study_race import StudyRace
from mfhpo_optuna.study.trials.processes import is_surely_dead, worker_name

# Seconds that a worker is given to answer, since it may have died, and between two looks at it.
_ANSWERING, _PERIOD = 2.0, 0.2

# For so many evaluations each is looked at, and then every so many times as many.
_EACH, _GROWTH = 50, 1.02

# How many times as many evaluations an arm needs to answer once more because it promises more.
_MANY_MORE = 2.0

# Whether an earlier answer says all that another one says, both as they are recorded.
IsRepeat = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]


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
    """Return the certain end of an interval; `sign` is -1 where less is better."""
    return interval[0 if sign > 0.0 else 1]


def is_news(race: StudyRace) -> bool:
    """Return whether to add the answer so far; where there is one, it looks now and then."""
    is_due = _looks(race.n_told) > _looks(race.n_told_before) or not race.certificates
    race.n_told_before = race.n_told
    return is_due and race.may_promise and _promise_so_far(race) is not None


def _looks(evaluations: int) -> int:
    """Return how often answers were looked for, after so many evaluations."""
    if evaluations <= _EACH:
        return evaluations
    return _EACH + int(math.log(evaluations / _EACH, _GROWTH))


def add_answer_so_far(study: optuna.Study, race: StudyRace, answer: Answer) -> None:
    """Add the answer to the study before the race is over, if it still is news."""
    value = _promise_so_far(race)
    if answer.arm is not None and value is not None:
        attributes = {**answer.attributes, SO_FAR_KEY: race.n_told}
        _add(study, race, replace(answer, value=value, attributes=attributes))


def _promise_so_far(race: StudyRace) -> float | None:
    """Return the value of the answer so far; None if it is not to be added."""
    shown = _shown(race)
    certificate = (None if shown is None else certificate_of(shown)) or {}
    if race.policy is None or certificate.get("certified"):
        return None
    arm, mean, interval, _ = race.policy.leader()
    sure = race.sure_value(interval[0])
    if arm is None or math.isnan(mean) or sure is None:
        return None
    if shown is None:
        return race.sign * sure
    behind = read_attribute(shown, SO_FAR_KEY) or 0
    if arm != certificate.get("arm"):
        says_more = race.n_told > behind
    else:
        is_better = sure > race.sign * _value_of(shown)
        says_more = is_better and race.n_told >= _MANY_MORE * behind
    return race.sign * sure if says_more and math.isfinite(sure) else None


def add_answer(study: optuna.Study, race: StudyRace, answer: Answer, is_repeat: IsRepeat) -> None:
    """Add the answer at the end of a race, unless there is none or an earlier one says the same.

    While it is withheld, it promises nothing.
    """
    if _is_withheld(race):
        # Whatever is known once the trials have ended takes its place.
        attributes = {**answer.attributes, WITHHELD_KEY: True}
        answer = replace(answer, value=-race.sign * math.inf, attributes=attributes)
    if answer.arm is None or math.isnan(answer.mean):
        warnings.warn(
            f"the race ended without an answer: {answer.reason}. {answer.remedy}", stacklevel=5
        )
        return
    if is_said(race, answer, is_repeat):
        return
    value = _add(study, race, answer)
    # The next number beyond a tie is no flattery.
    if answer.value == answer.mean and not math.isclose(value, answer.value, abs_tol=1e-12):
        warnings.warn(
            f"study.best_value is {value:.5g}, as an earlier answer had promised so much; the mean "
            f"is {answer.mean:.5g} only. Use sampler.recommendation(study).",
            stacklevel=5,
        )
    shown = study.best_trial
    if certificate_of(shown) is None:
        warnings.warn(
            f"study.best_trial still shows trial {shown.number}, which was not part of the race: "
            f"its value {shown.value:.5g} beats the value {value:.5g} of the answer. Use "
            f"sampler.recommendation(study).",
            stacklevel=5,
        )


def is_said(race: StudyRace, answer: Answer, is_repeat: IsRepeat) -> bool:
    """Return whether an earlier answer at the race's end says all that this one says."""
    earlier = (
        certificate_of(trial)
        for trial in race.certificates
        if read_attribute(trial, SO_FAR_KEY) is None
        and (read_attribute(trial, WITHHELD_KEY) is True) == _is_withheld(race)
    )
    now = answer.attributes[CERTIFICATE_KEY]
    # NaN is equal to nothing, and neither less nor more.
    return any(is_repeat(now, defaultdict(lambda: math.nan, content or {})) for content in earlier)


def claims_the_same(now: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether two answers claim the same, and differ in figures alone."""
    return all(now.get(name) == earlier.get(name) for name in ("arm", "limit", "certified"))


def _is_withheld(race: StudyRace) -> bool:
    return race.policy is not None and bool(race.policy.withheld)


def wait_for_others(study: optuna.Study, trial: FrozenTrial) -> None:
    """Let workers in other processes answer first whose trials began earlier.

    Those that come after the first look have seen this worker's note, and look for its answer.
    """
    if not _others_under_way(study, trial):
        return
    write_attribute(study, trial, ANSWERING_KEY, worker_name())
    until = time.monotonic() + _ANSWERING
    others = _others_that_answer(study, trial)
    while others and time.monotonic() < until:
        time.sleep(_PERIOD)
        others = [number for number in _others_that_answer(study, trial) if number < trial.number]


def _others_under_way(study: optuna.Study, trial: FrozenTrial) -> list[FrozenTrial]:
    under_way = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return [other for other in under_way if other.number != trial.number]


def _others_that_answer(study: optuna.Study, trial: FrozenTrial) -> list[int]:
    """Return the trials in which workers of other processes are about to answer."""
    claims = ((t.number, read_attribute(t, ANSWERING_KEY)) for t in _others_under_way(study, trial))
    return [
        number
        for number, worker in claims
        if worker is not None and worker != worker_name() and not is_surely_dead(worker)
    ]


def _add(study: optuna.Study, race: StudyRace, answer: Answer) -> float:
    """Add the answer's trial; return its value, which beats that of every earlier answer."""
    value, shown = answer.value, _shown(race)
    if shown is not None and math.isfinite(_value_of(shown)):
        best = math.nextafter(_value_of(shown), race.sign * math.inf)
        value = race.sign * max(race.sign * value, race.sign * best)
    study.add_trial(
        create_trial(
            value=value,
            params={name: answer.params[name] for name in answer.distributions},
            distributions=dict(answer.distributions),
            user_attrs={
                name: part
                for key, value in answer.attributes.items()
                for name, part in attributes_for(key, value).items()
            },
        )
    )
    race.read(study)
    return value


def _shown(race: StudyRace) -> FrozenTrial | None:
    """Return the answer with the best value, which is the best trial of the race."""
    return max(race.certificates, key=lambda trial: race.sign * _value_of(trial), default=None)


def _value_of(trial: FrozenTrial) -> float:
    assert trial.value is not None
    return trial.value
