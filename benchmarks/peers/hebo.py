"""HEBO: Bayesian optimisation with several acquisition functions at once, at the target level."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO

from benchmarks.hpo.ask_tell import Advice, Job, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import Categorical, Float, Parameter
from benchmarks.peers._values import in_range, plain


def _domain(name: str, parameter: Parameter) -> dict[str, Any]:
    if isinstance(parameter, Categorical):
        return {"name": name, "type": "cat", "categories": list(parameter.choices)}
    if isinstance(parameter, Float):
        kind = "pow" if parameter.log else "num"
    else:
        kind = "pow_int" if parameter.log else "int"
    return {"name": name, "type": kind, "lb": parameter.low, "ub": parameter.high}


class Search:
    """Its optimiser, asked and told; it recommends the best that it has seen.

    Its spaces have no conditions: all parameters are tuned, and those that apply are used.
    """

    def __init__(self, setting: Setting) -> None:
        np.random.seed(setting.seed)  # noqa: NPY002 - its search takes no other seed
        torch.manual_seed(setting.seed)
        self._parameters = setting.problem.space.parameters
        self._target = setting.target
        space = DesignSpace().parse([_domain(*named) for named in self._parameters.items()])
        self._optimiser = HEBO(space, scramble_seed=setting.seed)
        self._value = -math.inf
        self._best: Advice | None = None

    def ask(self) -> Job:
        """The next evaluation."""
        suggested = self._optimiser.suggest()
        configuration = {
            name: in_range(parameter, suggested[name].iloc[0])
            for name, parameter in self._parameters.items()
        }
        return Job(plain(configuration), self._target, suggested)

    def tell(self, job: Job, value: float, seconds: float) -> None:
        """Take in a value; it leaves out what is not finite."""
        self._optimiser.observe(job.handle, np.array([[-value]]))
        if value > self._value:
            self._value, self._best = value, Advice(job.configuration, value)

    def advice(self) -> Advice | None:
        """The best so far."""
        return self._best


METHODS: dict[str, Method] = {"hebo": in_turn(Search)}
