"""The trials that a sampler adds so that ``study.best_trial`` shows the answer of its experiment.

Optuna changes no finished trial, and its best trial is the feasible one with the best value. Single
evaluations are infeasible, and answers are not. An answer's value is what it promises; where an
earlier one promised as much or more, it is the next number beyond that.

Until the end, an answer is not certified, and promises the pessimistic end of the leader's interval
(`cautious_value` while that is infinite). Another one is added if another configuration leads, or
if the same one promises more after twice as many evaluations.
"""

import math
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from mfhpo.experiment import Answer
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials.attributes import (
    ANSWERING_KEY,
    CERTIFICATE_KEY,
    CONCLUDED_KEY,
    LIMIT_KEY,
    SO_FAR_KEY,
    attributes_for,
    certificate_of,
    read_attribute,
    write_attribute,
)
from mfhpo_optuna.study.trials.processes import is_surely_dead, worker_name

# The answers of all samplers are of one class.
StudyRecommendation: TypeAlias = Answer
SearchRecommendation: TypeAlias = Answer
StudyLimitRecommendation: TypeAlias = Answer

# Seconds that a worker is given to answer, since it may have died, and between two looks at it.
_ANSWERING, _PERIOD = 2.0, 0.2

# For so many evaluations each is looked at, and then every so many times as many.
_EACH, _GROWTH = 50, 1.02

# How many times as many evaluations an arm needs to answer once more because it promises more.
_MANY_MORE = 2.0


def add_so_far(study: optuna.Study, known: StudyExperiment) -> None:
    """Add the answer before the end, if it is news; where there is one, look now and then."""
    n_told = known.n_told
    is_due = _looks(n_told) > _looks(known.n_told_before) or not known.certificates
    known.n_told_before = n_told
    may_answer = is_due and known.kind.answers_so_far
    if not may_answer or _promise_so_far(known) is None:
        return
    known.read(study)  # other workers may have said it meanwhile
    value, answer = _promise_so_far(known), known.answer()
    if answer.arm is not None and value is not None:
        _add(study, known, answer, value, {SO_FAR_KEY: n_told})


def _promise_so_far(known: StudyExperiment) -> float | None:
    """Return the value of the answer so far; None if it is not to be added."""
    shown, sign = _shown(known), known.sign
    certificate = (None if shown is None else certificate_of(shown)) or {}
    if known.policy is None or certificate.get("certified"):
        return None
    arm, mean, interval = known.experiment.runner.leader()
    bound = interval[0] if sign > 0.0 else -interval[1]
    sure = None if arm is None or math.isnan(mean) else known.kind.sure_value(known, bound)
    if sure is None:
        return None
    if shown is None:
        return sign * sure
    behind = read_attribute(shown, SO_FAR_KEY) or 0
    if arm != certificate.get("arm"):
        says_more = known.n_told > behind
    else:
        is_better = sure > sign * _value_of(shown)
        says_more = is_better and known.n_told >= _MANY_MORE * behind
    return sign * sure if says_more and math.isfinite(sure) else None


def _is_said(known: StudyExperiment, answer: Answer) -> bool:
    """Return whether an earlier answer at the end claims the same."""
    now = known.kind.content(known, answer)
    final = [t for t in known.certificates if read_attribute(t, SO_FAR_KEY) is None]
    for trial in final:
        content = certificate_of(trial) or {}
        told = {name: value for name, value in content.items() if value is not None}
        # NaN, in place of what is missing, is equal to nothing, and neither less nor more.
        if known.kind.is_repeat(now, defaultdict(lambda: math.nan, told)):
            return True
    return False


def add_answer(study: optuna.Study, known: StudyExperiment) -> None:
    """Add the answer at the end, unless there is none or an earlier one says the same."""
    answer = known.answer()
    lack = known.kind.lack(known, answer)
    if lack is None:
        return
    if lack:
        warnings.warn(f"the race ended without an answer: {lack}", stacklevel=5)
        return
    if _is_said(known, answer):
        return
    promised = known.kind.promise(known, answer)
    more = {}
    if answer.certified:  # what had not ended then comes after it
        open, order = sorted(map(int, known.experiment.open)), known.experiment.order
        more = {CONCLUDED_KEY: {"study": study.study_name, "order": order, "open": open}}
    value = _add(study, known, answer, promised, more)
    # The next number beyond a tie is no flattery.
    if promised == answer.mean and not math.isclose(value, promised, abs_tol=1e-12):
        warnings.warn(
            f"study.best_value is {value:.5g}, as an earlier answer had promised so much; the "
            f"mean is {answer.mean:.5g} only. Use sampler.recommendation(study).",
            stacklevel=5,
        )
    shown = study.best_trial
    if certificate_of(shown) is None:
        warnings.warn(
            f"study.best_trial still shows trial {shown.number}, which was not part of the "
            f"race: its value {shown.value:.5g} beats the value {value:.5g} of the answer. Use "
            f"sampler.recommendation(study).",
            stacklevel=5,
        )


def _add(
    study: optuna.Study,
    known: StudyExperiment,
    answer: Answer,
    value: float,
    more: Mapping[str, Any],
) -> float:
    """Add the answer's trial; return its value, which beats that of every earlier answer."""
    shown, sign = _shown(known), known.sign
    if shown is not None and math.isfinite(_value_of(shown)):
        best = math.nextafter(_value_of(shown), sign * math.inf)
        value = sign * max(sign * value, sign * best)
    limit = {} if answer.limit is None else {LIMIT_KEY: answer.limit}
    attributes: dict[str, Any] = {}
    for key, part in {CERTIFICATE_KEY: known.kind.content(known, answer), **limit, **more}.items():
        attributes |= attributes_for(key, part)
    params: dict[str, Any] = {}
    how: dict[str, BaseDistribution] = {}
    if answer.arm is not None:
        what = known.values_of(answer.arm)
        params, how = dict(what.params), dict(what.distributions)
    fidelity, asked = known.kind.fidelity, known.trials.fidelity_distribution
    if asked is not None and fidelity is not None:
        how[fidelity.name], params[fidelity.name] = asked, answer.level
    how = {name: distribution for name, distribution in how.items() if name in params}
    params = {name: params[name] for name in how}
    study.add_trial(
        create_trial(value=value, params=params, distributions=how, user_attrs=attributes)
    )
    known.read(study)
    return value


def wait_for_others(
    study: optuna.Study, trial: FrozenTrial, sleep: Callable[[float], None]
) -> None:
    """Let workers in other processes answer first whose trials began earlier."""
    me = worker_name()
    if read_attribute(trial, ANSWERING_KEY) == me:
        return  # it has waited before

    def others_answer(before: float) -> bool:
        under_way = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        notes = [read_attribute(t, ANSWERING_KEY) for t in under_way if t.number < before]
        return any(note not in (None, me) and not is_surely_dead(note) for note in notes)

    write_attribute(study, trial, ANSWERING_KEY, me)
    waits = others_answer(math.inf)  # who looks later has seen this note
    for _ in range(round(_ANSWERING / _PERIOD)):
        if waits:
            sleep(_PERIOD)
            waits = others_answer(trial.number)


def _looks(evaluations: int) -> int:
    """Return how often answers were looked for, after so many evaluations."""
    if evaluations <= _EACH:
        return evaluations
    return _EACH + int(math.log(evaluations / _EACH, _GROWTH))


def _shown(known: StudyExperiment) -> FrozenTrial | None:
    """Return the answer with the best value, which is the best trial of the experiment."""
    best = max if known.sign > 0.0 else min
    return best(known.certificates, key=attrgetter("value"), default=None)


def _value_of(trial: FrozenTrial) -> float:
    assert trial.value is not None
    return trial.value
