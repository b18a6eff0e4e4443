"""Regularised evolution (Real et al., AAAI 2019), which architecture searches are held against.

A child is the best of a few of the population with one parameter drawn anew; when it has been
evaluated, it takes the place of the oldest. Sizes as in NAS-Bench-201 (Dong and Yang, ICLR 2020).
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from benchmarks.hpo.ask_tell import Advice, Job, Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import Configuration

_POPULATION = 10
_SAMPLE = 3  # of the population, of which the best has the child


class Evolution:
    """Evaluates at the target level; it recommends the best that it has seen."""

    def __init__(self, setting: Setting) -> None:
        self._space, self._target = setting.problem.space, setting.target
        self._rng = np.random.default_rng(setting.seed)
        self._population: deque[tuple[float, Configuration]] = deque(maxlen=_POPULATION)
        self._value = -math.inf
        self._best: Advice | None = None

    def ask(self) -> Job:
        """A configuration at random until the population is full, then a child."""
        if len(self._population) < _POPULATION:
            return Job(self._space.draw(self._rng), self._target)
        places = self._rng.choice(_POPULATION, _SAMPLE, replace=False)
        _, parent = max((self._population[place] for place in places), key=lambda one: one[0])
        return Job(self._child(parent), self._target)

    def _child(self, parent: Configuration) -> Configuration:
        """One parameter that applies gets another value; what comes to apply is drawn, too."""
        child = parent
        while child == parent:
            drawn = {
                name: parameter.at(self._rng.random())
                for name, parameter in self._space.parameters.items()
            }
            name = str(self._rng.choice(list(parent)))
            child = self._space.active({**drawn, **parent, name: drawn[name]})
        return child

    def tell(self, job: Job, value: float, seconds: float) -> None:
        """It joins the population, whose oldest leaves."""
        if math.isnan(value):
            return
        self._population.append((value, job.configuration))
        if value > self._value:
            self._value, self._best = value, Advice(job.configuration, value)

    def advice(self) -> Advice | None:
        """The best so far."""
        return self._best


CLOCKED: dict[str, Make] = {"regularised evolution": Evolution}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
