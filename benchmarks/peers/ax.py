"""Ax: Bayesian optimisation by BoTorch, at the target level."""

from __future__ import annotations

import logging
import math
from typing import Any

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.exceptions.core import DataRequiredError
from ax.utils.common.logger import set_ax_logger_levels

from benchmarks.hpo.ask_tell import Advice, Job, Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import Categorical, ConfigurationSpace, Float
from benchmarks.peers._values import plain

_VALUE = "value"


def _parameter(space: ConfigurationSpace, name: str) -> Any:
    parameter = space.parameters[name]
    if isinstance(parameter, Categorical):
        return ChoiceParameterConfig(
            name,
            list(parameter.choices),
            "str",
            is_ordered=False,
            dependent_parameters=_dependants(space, name),
        )
    return RangeParameterConfig(
        name,
        (parameter.low, parameter.high),
        "float" if isinstance(parameter, Float) else "int",
        scaling="log" if parameter.log else "linear",
    )


def _dependants(space: ConfigurationSpace, parent: str) -> dict[Any, list[str]] | None:
    """What applies with each value of a parent.

    Its spaces are trees: a parameter that applies with several values is tuned always.
    """
    found: dict[Any, list[str]] = {}
    for name, condition in space.conditions.items():
        if condition.parent == parent and len(condition.values) == 1:
            found.setdefault(condition.values[0], []).append(name)
    return found or None


class Experiment:
    """A client, asked and told; it recommends by its model once that fits, else the best value."""

    def __init__(self, setting: Setting) -> None:
        set_ax_logger_levels(logging.ERROR)
        space = setting.problem.space
        self._target = setting.target
        self._client = Client(random_seed=setting.seed)
        self._client.configure_experiment([_parameter(space, name) for name in space.parameters])
        self._client.configure_optimization(objective=_VALUE)
        self._has_values = False

    def ask(self) -> Job | None:
        """The next trial; none while it waits for its first values."""
        try:
            [(number, configuration)] = self._client.get_next_trials(max_trials=1).items()
        except DataRequiredError:
            return None
        return Job(plain(configuration), self._target, number)

    def tell(self, job: Job, value: float, seconds: float) -> None:
        """Complete a trial; one that failed is abandoned, for else it is proposed again."""
        if math.isfinite(value):
            self._client.complete_trial(job.handle, {_VALUE: value})
            self._has_values = True
        else:
            self._client.mark_trial_abandoned(job.handle)

    def advice(self) -> Advice | None:
        """The best of its trials, with the value that its model predicts."""
        if not self._has_values:
            return None
        best, outcome, *_ = self._client.get_best_parameterization()
        mean, _ = outcome[_VALUE]
        return Advice(plain(best), float(mean))


CLOCKED: dict[str, Make] = {"ax": Experiment}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
