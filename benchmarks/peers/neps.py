"""NePS: its Hyperband, asked and told."""

from __future__ import annotations

import logging
import math
from typing import Any

import neps
import torch

from benchmarks.hpo.meter import Meter
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import Categorical, Float, Parameter
from benchmarks.peers._levels import FACTOR, level_of, step_of


def _domain(parameter: Parameter) -> Any:
    if isinstance(parameter, Categorical):
        return neps.Categorical(parameter.choices)
    kind = neps.Float if isinstance(parameter, Float) else neps.Integer
    return kind(parameter.low, parameter.high, log=parameter.log)


def _hyperband(meter: Meter, seed: int) -> None:
    """Draws all parameters; those that do not apply are without effect on a random sampler."""
    logging.getLogger("neps").setLevel(logging.ERROR)
    torch.manual_seed(seed)  # what its sampler draws from
    fidelity = meter.problem.fidelity
    parts = {name: _domain(part) for name, part in meter.problem.space.parameters.items()}
    parts[fidelity.name] = neps.IntegerFidelity(step_of(0), step_of(len(fidelity.levels) - 1))
    space = type("Space", (neps.PipelineSpace,), parts)()
    optimiser = neps.AskAndTell(neps.algorithms.hyperband(space, eta=FACTOR))
    best = -math.inf
    while True:
        trial = optimiser.ask()
        configuration = dict(trial.config)
        level = level_of(configuration.pop(fidelity.name))
        value = meter.evaluate(configuration, level)
        # Its summary gives the best of all evaluations, whatever their fidelity.
        if value > best:
            best = value
            meter.recommend(configuration, claim=value)
        optimiser.tell(trial, -value if math.isfinite(value) else ArithmeticError(value))


METHODS: dict[str, Method] = {"neps hyperband": _hyperband}
