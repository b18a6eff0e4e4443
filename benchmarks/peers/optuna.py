"""Optuna: a trial is one configuration, trained upwards through the levels and perhaps pruned."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from benchmarks.hpo.meter import Meter
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import Categorical, ConfigurationSpace, Float
from benchmarks.peers._levels import FACTOR, step_of


def suggest(trial: optuna.Trial, space: ConfigurationSpace) -> dict[str, Any]:
    """Ask for a configuration as an objective does that is defined by running it."""
    configuration: dict[str, Any] = {}
    for name, parameter in space.parameters.items():
        if not space.applies(name, configuration):
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
    return configuration


def _hyperband(levels: int) -> BasePruner:
    return HyperbandPruner(
        min_resource=1, max_resource=step_of(levels - 1), reduction_factor=FACTOR
    )


def _halving(levels: int) -> BasePruner:
    return SuccessiveHalvingPruner(min_resource=1, reduction_factor=FACTOR)


def _median(levels: int) -> BasePruner:
    return MedianPruner()


def optimise(
    meter: Meter,
    seed: int,
    sampler: Callable[[int], BaseSampler],
    pruner: Callable[[int], BasePruner] | None = None,
) -> None:
    """Run a study until the budget is spent; its best trial is the recommendation.

    Parameters
    ----------
    meter
        Evaluates.
    seed
        Of the sampler; it also names the study, from which Hyperband draws its brackets.
    sampler
        Makes the sampler from the seed.
    pruner
        Makes the pruner from the number of levels. Without one a trial goes straight to the
        target level.
    """
    levels = len(meter.problem.fidelity.levels)

    def objective(trial: optuna.Trial) -> float:
        configuration = suggest(trial, meter.problem.space)
        if pruner is not None:
            for level in range(levels - 1):
                trial.report(meter.evaluate(configuration, level), step=step_of(level))
                if trial.should_prune():
                    raise optuna.TrialPruned
        trial.set_user_attr("configuration", configuration)
        return meter.evaluate(configuration, levels - 1)

    def recommend(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if trial.state == optuna.trial.TrialState.COMPLETE:
            best = study.best_trial
            meter.recommend(best.user_attrs["configuration"], claim=best.value)

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        study_name=f"seed {seed}",
        direction="maximize",
        sampler=sampler(seed),
        pruner=optuna.pruners.NopPruner() if pruner is None else pruner(levels),
    )
    study.optimize(objective, callbacks=[recommend])


def _random(seed: int) -> BaseSampler:
    return RandomSampler(seed=seed)


def _tpe(seed: int) -> BaseSampler:
    return TPESampler(seed=seed)


METHODS: dict[str, Method] = {
    "optuna random": functools.partial(optimise, sampler=_random),
    "optuna random + sha": functools.partial(optimise, sampler=_random, pruner=_halving),
    "optuna tpe": functools.partial(optimise, sampler=_tpe),
    "optuna tpe + median": functools.partial(optimise, sampler=_tpe, pruner=_median),
    "optuna tpe + hyperband": functools.partial(optimise, sampler=_tpe, pruner=_hyperband),
    "optuna tpe + sha": functools.partial(optimise, sampler=_tpe, pruner=_halving),
}
