"""A space in the terms of the package ConfigSpace, for the peers that use it."""

from __future__ import annotations

from typing import Any

import ConfigSpace

from benchmarks.hpo.space import Categorical, ConfigurationSpace, Float, Parameter


def config_space_of(space: ConfigurationSpace, seed: int) -> Any:
    """The same space, with its conditions, as ConfigSpace.ConfigurationSpace."""
    result = ConfigSpace.ConfigurationSpace(seed=seed)
    old = not hasattr(result, "add")  # before its version 1, which OpenBox needs
    parts = [_hyperparameter(name, part) for name, part in space.parameters.items()]
    (result.add_hyperparameters if old else result.add)(parts)
    conditions = [
        ConfigSpace.InCondition(result[name], result[condition.parent], condition.values)
        for name, condition in space.conditions.items()
    ]
    (result.add_conditions if old else result.add)(conditions)
    return result


def _hyperparameter(name: str, parameter: Parameter) -> Any:
    if isinstance(parameter, Categorical):
        return ConfigSpace.CategoricalHyperparameter(name, parameter.choices)
    kind = (
        ConfigSpace.UniformFloatHyperparameter
        if isinstance(parameter, Float)
        else ConfigSpace.UniformIntegerHyperparameter
    )
    return kind(name, parameter.low, parameter.high, log=parameter.log)
