"""Optuna: a trial is one configuration, trained upwards through the levels and perhaps pruned."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import TrialState

from benchmarks.hpo.ask_tell import Advice, Job, Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import Categorical, ConfigurationSpace, Float
from benchmarks.peers._levels import FACTOR, step_of


def suggest(
    trial: optuna.Trial, space: ConfigurationSpace, conditions: bool = True
) -> dict[str, Any]:
    """Ask for a configuration as an objective does that is defined by running it.

    Without conditions, all parameters are asked for, and those that do not apply are dropped.
    """
    configuration: dict[str, Any] = {}
    for name, parameter in space.parameters.items():
        if conditions and not space.applies(name, configuration):
            continue
        if isinstance(parameter, Categorical):
            configuration[name] = trial.suggest_categorical(name, parameter.choices)
        elif isinstance(parameter, Float):
            configuration[name] = trial.suggest_float(
                name, parameter.low, parameter.high, log=parameter.log
            )
        else:
            configuration[name] = trial.suggest_int(
                name, parameter.low, parameter.high, log=parameter.log
            )
    return space.active(configuration)


def tell(study: optuna.Study, trial: optuna.Trial, value: float) -> None:
    """End a trial; without a value it has failed."""
    if math.isnan(value):
        study.tell(trial, state=TrialState.FAIL)
    else:
        study.tell(trial, value)


def _hyperband(levels: int) -> BasePruner:
    return HyperbandPruner(
        min_resource=1, max_resource=step_of(levels - 1), reduction_factor=FACTOR
    )


def _halving(levels: int) -> BasePruner:
    return SuccessiveHalvingPruner(min_resource=1, reduction_factor=FACTOR)


def _median(levels: int) -> BasePruner:
    return MedianPruner()


class Study:
    """A study that is asked and told; its best trial is the recommendation.

    Parameters
    ----------
    setting
        The seed is that of the sampler; it also names the study, from which Hyperband draws its
        brackets.
    sampler
        Makes the sampler from the setting.
    pruner
        Makes the pruner from the number of levels. Without one a trial goes straight to the
        target level.
    conditions
        Whether a trial asks only for parameters that apply.
    """

    def __init__(
        self,
        setting: Setting,
        sampler: Callable[[Setting], BaseSampler],
        pruner: Callable[[int], BasePruner] | None = None,
        conditions: bool = True,
    ) -> None:
        self._space, self._target = setting.problem.space, setting.target
        self._conditions = conditions
        self._first = self._target if pruner is None else 0
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.study = optuna.create_study(
            study_name=f"seed {setting.seed}",
            direction="maximize",
            sampler=sampler(setting),
            pruner=optuna.pruners.NopPruner() if pruner is None else pruner(self._target + 1),
        )
        self._best: Advice | None = None
        self._is_stale = False  # the best trial is looked for when somebody asks

    def ask(self) -> Job:
        """A trial at its first level."""
        trial = self.study.ask()
        return Job(suggest(trial, self._space, self._conditions), self._first, trial)

    def tell(self, job: Job, value: float, seconds: float) -> Job | None:
        """Go on to the next level, unless the trial is pruned or has ended."""
        trial: optuna.Trial = job.handle
        if job.level == self._target:
            trial.set_user_attr("configuration", job.configuration)
            tell(self.study, trial, value)
            self._is_stale = self._is_stale or not math.isnan(value)
            return None
        trial.report(value, step=step_of(job.level))
        if trial.should_prune():
            self.study.tell(trial, state=TrialState.PRUNED)
            return None
        return Job(job.configuration, job.level + 1, trial)

    def advice(self) -> Advice | None:
        """The best trial so far, if one has ended at the target level."""
        if self._is_stale:
            best = self.study.best_trial
            self._best = Advice(best.user_attrs["configuration"], best.value)
            self._is_stale = False
        return self._best


def _random(setting: Setting) -> BaseSampler:
    return RandomSampler(seed=setting.seed)


def _tpe(setting: Setting) -> BaseSampler:
    return TPESampler(seed=setting.seed, constant_liar=setting.workers > 1)


CLOCKED: dict[str, Make] = {
    "optuna random": functools.partial(Study, sampler=_random),
    "optuna random + sha": functools.partial(Study, sampler=_random, pruner=_halving),
    "optuna tpe": functools.partial(Study, sampler=_tpe),
    "optuna tpe + median": functools.partial(Study, sampler=_tpe, pruner=_median),
    "optuna tpe + hyperband": functools.partial(Study, sampler=_tpe, pruner=_hyperband),
    "optuna tpe + sha": functools.partial(Study, sampler=_tpe, pruner=_halving),
}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
