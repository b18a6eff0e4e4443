"""FLAML: cost-frugal local search, alone or blended with Optuna's; both schedule the resource."""

from __future__ import annotations

import functools
import logging
import math
from typing import Any

import optuna
from flaml import tune
from flaml.tune.searcher.blendsearch import CFO, BlendSearch
from flaml.tune.trial_runner import SequentialTrialRunner

from benchmarks.hpo.ask_tell import Advice, Job, Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import Categorical, ConfigurationSpace, Float, Integer, Parameter
from benchmarks.peers._levels import FACTOR, level_of, step_of
from benchmarks.peers._values import plain

_VALUE = "value"
_MOST_ATTEMPTS = 100  # to get a configuration, as `tune.run` makes them


def _domain(parameter: Parameter) -> Any:
    if isinstance(parameter, Categorical):
        return tune.choice(list(parameter.choices))
    if isinstance(parameter, Float):
        return (tune.loguniform if parameter.log else tune.uniform)(parameter.low, parameter.high)
    # Its whole numbers end before the upper bound.
    return (tune.lograndint if parameter.log else tune.randint)(parameter.low, parameter.high + 1)


def _hierarchy(space: ConfigurationSpace) -> dict[str, Any]:
    """The space in FLAML's way: a parameter with dependants is a choice among sub-spaces."""
    parents = {condition.parent for condition in space.conditions.values()}

    def domain(name: str) -> Any:
        parameter = space.parameters[name]
        if name not in parents or isinstance(parameter, Float):
            return _domain(parameter)
        if isinstance(parameter, Integer):  # its order is lost, as sub-spaces have none
            choices = tuple(range(parameter.low, parameter.high + 1))
        else:
            choices = parameter.choices
        return tune.choice(
            [
                {
                    name: choice,
                    **{
                        child: domain(child)
                        for child, condition in space.conditions.items()
                        if condition.parent == name and choice in condition.values
                    },
                }
                for choice in choices
            ]
        )

    return {name: domain(name) for name in space.parameters if name not in space.conditions}


def _flat(configuration: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in configuration.items():
        result.update(_flat(value) if isinstance(value, dict) else {name: value})
    return result


class Tuning:
    """A searcher, asked and told as `flaml.tune.run` does.

    Its analysis gives the best of all evaluations, whatever their resource.
    """

    def __init__(self, setting: Setting, searcher: Any) -> None:
        logging.getLogger("flaml").setLevel(logging.ERROR)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._resource = setting.problem.fidelity.name
        search = searcher(
            metric=_VALUE,
            mode="max",
            space=_hierarchy(setting.problem.space),
            resource_attr=self._resource,
            min_resource=step_of(0),
            max_resource=step_of(setting.target),
            reduction_factor=FACTOR,
            cost_attr="cost",
            seed=setting.seed,
        )
        search.set_search_properties(_VALUE, "max", None)
        self._runner = SequentialTrialRunner(search_alg=search, metric=_VALUE, mode="max")
        self._value = -math.inf
        self._best: Advice | None = None

    def ask(self) -> Job | None:
        """The next evaluation; it may have none for a while."""
        for _ in range(_MOST_ATTEMPTS):
            trial = self._runner.step()
            if trial is not None:
                configuration = plain(_flat(trial.config))
                level = level_of(configuration.pop(self._resource))
                return Job(configuration, level, trial)
        return None

    def tell(self, job: Job, value: float, seconds: float) -> None:
        """Take in a value and its cost."""
        if value > self._value:
            self._value, self._best = value, Advice(job.configuration, value)
        trial = job.handle
        self._runner.process_trial_result(
            trial,
            {
                _VALUE: value if math.isfinite(value) else -math.inf,
                "cost": seconds,
                "training_iteration": 0,
                "config": trial.config,
                **{f"config/{name}": given for name, given in trial.config.items()},
            },
        )
        self._runner.stop_trial(trial)

    def advice(self) -> Advice | None:
        """The best of all evaluations."""
        return self._best


CLOCKED: dict[str, Make] = {
    "flaml cfo": functools.partial(Tuning, searcher=CFO),
    "flaml blendsearch": functools.partial(Tuning, searcher=BlendSearch),
}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
