"""Syne Tune's schedulers, asked and told as its tuner does with one worker; for two releases."""

from __future__ import annotations

import datetime
import itertools
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import choice, lograndint, loguniform, randint, uniform
from syne_tune.optimizer.scheduler import SchedulerDecision

from benchmarks.hpo.ask_tell import Advice, Job, Setting
from benchmarks.hpo.space import Categorical, Configuration, ConfigurationSpace, Float, Parameter
from benchmarks.peers._levels import step_of
from benchmarks.peers._values import in_range

VALUE, STEP = "value", "step"

# Syne Tune logs each trial that it stops.
logging.getLogger("syne_tune").setLevel(logging.ERROR)


def domains_of(space: ConfigurationSpace) -> dict[str, Any]:
    """The space in Syne Tune's terms, without its conditions."""
    return {name: _domain(parameter) for name, parameter in space.parameters.items()}


def _domain(parameter: Parameter) -> Any:
    if isinstance(parameter, Categorical):
        return choice(list(parameter.choices))
    if isinstance(parameter, Float):
        return (loguniform if parameter.log else uniform)(parameter.low, parameter.high)
    return (lograndint if parameter.log else randint)(parameter.low, parameter.high)


class Schedule:
    """A scheduler, asked and told; what it recommends is the best of all reports, of any level.

    Its spaces have no conditions: all parameters are tuned, and those that apply are used.

    Parameters
    ----------
    setting
        What it optimises.
    scheduler
        It maximises VALUE, and knows a level by its STEP.
    suggest
        Has the scheduler propose the configuration of a trial, whose number it is given.
    """

    def __init__(
        self, setting: Setting, scheduler: Any, suggest: Callable[[int], Mapping[str, Any]]
    ) -> None:
        self._parameters = setting.problem.space.parameters
        self._target = setting.target
        self._scheduler = scheduler
        self._suggest = suggest
        self._numbers = itertools.count()
        self._value = -math.inf
        self._best: Advice | None = None

    def ask(self) -> Job:
        """A trial at the lowest level."""
        number = next(self._numbers)
        suggested = self._suggest(number)
        # BOHB's searcher forgets the lower end of integers, and proposes any from 0 on.
        configuration: Configuration = {
            name: in_range(parameter, suggested[name])
            for name, parameter in self._parameters.items()
        }
        trial = Trial(number, configuration, datetime.datetime.now())
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
        result = {VALUE: value, STEP: step_of(job.level)}
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
