"""The baseline of a study: the trial that its user, or a sampler, has marked as in use today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from mfhpo_optuna.study.arms import Params
from mfhpo_optuna.study.distributions import contains
from mfhpo_optuna.study.trials.attributes import certificate_of, parameters_before

KEY = "baseline"
"""The user attribute that is True for the baseline."""


def is_baseline(trial: FrozenTrial) -> bool:
    """Return whether a trial is marked as the baseline, and was evaluated as it was given."""
    is_marked = trial.user_attrs.get(KEY) is True and certificate_of(trial) is None
    return is_marked and not (trial.state.is_finished() and fault(trial))


def fault(trial: FrozenTrial) -> str:
    """Return what is wrong with the parameters that a baseline was given, "" for nothing."""
    if trial.user_attrs.get(KEY) is not True or not trial.params:
        return ""
    given: Params = trial.system_attrs.get("fixed_params", trial.params)
    if not given:
        return "it has no parameters"
    if missing := sorted(given.keys() - trial.params.keys()):
        return f"the objective does not ask for {missing[0]!r}"
    wrong = (name for name in given if not contains(trial.distributions[name], given[name]))
    name = next(wrong, None)
    return "" if name is None else f"{name}={given[name]!r} is not in {trial.distributions[name]}"


def enqueue(study: optuna.Study, params: Mapping[str, Any] | None) -> None:
    """Enqueue the baseline, if there is one, unless a trial of the study is marked as such."""
    if params is not None and not any(map(is_baseline, study.get_trials(deepcopy=False))):
        study.enqueue_trial(dict(params), user_attrs={KEY: True})


def marked(study: optuna.Study) -> Params | None:
    """Return the parameters of the last trial that is marked; None without one."""
    trials = [*filter(is_baseline, study.get_trials(deepcopy=False))]
    return trials[-1].params or parameters_before(trials[-1]) if trials else None
