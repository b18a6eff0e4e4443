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

from benchmarks.hpo.ask_tell import Advice, Job, Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import Categorical, Float, Parameter
from benchmarks.peers._levels import step_of
from benchmarks.peers._values import in_range

_VALUE, _STEP = "value", "step"


def _domain(parameter: Parameter) -> Any:
    if isinstance(parameter, Categorical):
        return choice(list(parameter.choices))
    if isinstance(parameter, Float):
        return (loguniform if parameter.log else uniform)(parameter.low, parameter.high)
    return (lograndint if parameter.log else randint)(parameter.low, parameter.high)


class Schedule:
    """A scheduler, asked and told; what it recommends is the best of all reports, of any level.

    Its spaces have no conditions: all parameters are tuned, and those that apply are used.
    """

    def __init__(self, setting: Setting, make: Any) -> None:
        logging.getLogger("syne_tune").setLevel(logging.ERROR)
        np.random.seed(setting.seed)  # noqa: NPY002 - BOHB's searcher takes no other seed
        self._parameters = setting.problem.space.parameters
        self._target = setting.target
        self._scheduler = make(
            config_space={name: _domain(one) for name, one in self._parameters.items()},
            metric=_VALUE,
            time_attr=_STEP,
            max_t=step_of(self._target),
            do_minimize=False,
            random_seed=setting.seed,
        )
        self._numbers = itertools.count()
        self._value = -math.inf
        self._best: Advice | None = None

    def ask(self) -> Job:
        """A trial at the lowest level."""
        suggested = self._scheduler.suggest().config
        # BOHB's searcher forgets the lower end of integers, and proposes any from 0 on.
        configuration = {
            name: in_range(parameter, suggested[name])
            for name, parameter in self._parameters.items()
        }
        trial = Trial(next(self._numbers), configuration, datetime.datetime.now())
        self._scheduler.on_trial_add(trial)
        return Job(configuration, 0, trial)

    def tell(self, job: Job, value: float, seconds: float) -> Job | None:
        """Go on to the next level, unless the trial is stopped or has ended."""
        if not math.isfinite(value):
            self._scheduler.on_trial_error(job.handle)
            return None
        # Tuner.best_config takes the best of all reports, whatever their level.
        if value > self._value:
            self._value, self._best = value, Advice(job.configuration, value)
        result = {_VALUE: value, _STEP: step_of(job.level)}
        decision = self._scheduler.on_trial_result(job.handle, result)
        if decision == SchedulerDecision.STOP:
            self._scheduler.on_trial_remove(job.handle)
            return None
        if job.level == self._target:
            return None
        return Job(job.configuration, job.level + 1, job.handle)

    def advice(self) -> Advice | None:
        """The best of all reports."""
        return self._best


CLOCKED: dict[str, Make] = {
    "syne tune asha": functools.partial(Schedule, make=ASHA),
    "syne tune bohb": functools.partial(Schedule, make=BOHB),
}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
