"""FLAML: cost-frugal local search, alone or blended with Optuna's; both schedule the resource."""

from __future__ import annotations

import functools
import logging
import math
from typing import Any

import optuna
from flaml import tune
from flaml.tune.searcher.blendsearch import CFO, BlendSearch

from benchmarks.hpo.meter import Meter
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import Categorical, ConfigurationSpace, Float, Parameter
from benchmarks.peers._levels import FACTOR, level_of, step_of
from benchmarks.peers._values import plain


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
        if name not in parents or not isinstance(parameter, Categorical):
            return _domain(parameter)
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
                for choice in parameter.choices
            ]
        )

    return {name: domain(name) for name in space.parameters if name not in space.conditions}


def _flat(configuration: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in configuration.items():
        result.update(_flat(value) if isinstance(value, dict) else {name: value})
    return result


def _optimise(meter: Meter, seed: int, searcher: Any) -> None:
    logging.getLogger("flaml").setLevel(logging.ERROR)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    fidelity = meter.problem.fidelity
    best = -math.inf

    def evaluate(suggested: dict[str, Any]) -> dict[str, float]:
        nonlocal best
        configuration = plain(_flat(suggested))
        level = level_of(configuration.pop(fidelity.name))
        before = meter.cost
        value = meter.evaluate(configuration, level)
        # Its analysis gives the best of all evaluations, whatever their resource.
        if value > best:
            best = value
            meter.recommend(configuration, claim=value)
        told = value if math.isfinite(value) else -math.inf
        return {"value": told, "cost": meter.cost - before}

    tune.run(
        evaluate,
        search_alg=searcher(
            metric="value",
            mode="max",
            space=_hierarchy(meter.problem.space),
            resource_attr=fidelity.name,
            min_resource=step_of(0),
            max_resource=step_of(len(fidelity.levels) - 1),
            reduction_factor=FACTOR,
            cost_attr="cost",
            seed=seed,
        ),
        metric="value",
        mode="max",
        num_samples=-1,
        verbose=0,
    )


METHODS: dict[str, Method] = {
    "flaml cfo": functools.partial(_optimise, searcher=CFO),
    "flaml blendsearch": functools.partial(_optimise, searcher=BlendSearch),
}
