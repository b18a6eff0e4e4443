"""Syne Tune: its schedulers, asked and told as its tuner does with one worker."""

from __future__ import annotations

import datetime
import functools
import itertools
import logging
import math
from typing import Any

import numpy as np
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import choice, lograndint, loguniform, randint, uniform
from syne_tune.optimizer.baselines import ASHA, BOHB
from syne_tune.optimizer.scheduler import SchedulerDecision

from benchmarks.hpo.meter import Meter
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import Categorical, Float, Parameter
from benchmarks.peers._levels import step_of

_VALUE, _STEP = "value", "step"


def _domain(parameter: Parameter) -> Any:
    if isinstance(parameter, Categorical):
        return choice(list(parameter.choices))
    if isinstance(parameter, Float):
        return (loguniform if parameter.log else uniform)(parameter.low, parameter.high)
    return (lograndint if parameter.log else randint)(parameter.low, parameter.high)


def _in_range(parameter: Parameter, value: Any) -> Any:
    """BOHB's searcher forgets the lower end of integers, and proposes any from 0 on."""
    if isinstance(parameter, Categorical):
        return value
    return min(max(value, parameter.low), parameter.high)


def _optimise(meter: Meter, seed: int, make: Any) -> None:
    """Its spaces have no conditions: all parameters are tuned, and those that apply are used."""
    logging.getLogger("syne_tune").setLevel(logging.ERROR)
    np.random.seed(seed)  # noqa: NPY002 - BOHB's searcher takes no other seed
    levels = len(meter.problem.fidelity.levels)
    scheduler = make(
        config_space={
            name: _domain(parameter) for name, parameter in meter.problem.space.parameters.items()
        },
        metric=_VALUE,
        time_attr=_STEP,
        max_t=step_of(levels - 1),
        do_minimize=False,
        random_seed=seed,
    )
    best = -math.inf
    for number in itertools.count():
        suggested = scheduler.suggest().config
        configuration = {
            name: _in_range(parameter, suggested[name])
            for name, parameter in meter.problem.space.parameters.items()
        }
        trial = Trial(number, configuration, datetime.datetime.now())
        scheduler.on_trial_add(trial)
        for level in range(levels):
            value = meter.evaluate(configuration, level)
            if not math.isfinite(value):
                scheduler.on_trial_error(trial)
                break
            # Tuner.best_config takes the best of all reports, whatever their level.
            if value > best:
                best = value
                meter.recommend(configuration, claim=value)
            result = {_VALUE: value, _STEP: step_of(level)}
            if scheduler.on_trial_result(trial, result) == SchedulerDecision.STOP:
                scheduler.on_trial_remove(trial)
                break


METHODS: dict[str, Method] = {
    "syne tune asha": functools.partial(_optimise, make=ASHA),
    "syne tune bohb": functools.partial(_optimise, make=BOHB),
}
