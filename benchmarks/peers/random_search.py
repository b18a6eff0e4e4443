"""Random search at the target level: what every optimiser has to beat."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.hpo.ask_tell import Advice, Job, Make, Setting, in_turn
from benchmarks.hpo.methods import Method


class Random:
    """Draws; it recommends the best that it has seen."""

    def __init__(self, setting: Setting) -> None:
        self._space, self._target = setting.problem.space, setting.target
        self._rng = np.random.default_rng(setting.seed)
        self._value = -math.inf
        self._best: Advice | None = None

    def ask(self) -> Job:
        """A configuration at random."""
        return Job(self._space.draw(self._rng), self._target)

    def tell(self, job: Job, value: float, seconds: float) -> None:
        """Keep the best."""
        if value > self._value:
            self._value, self._best = value, Advice(job.configuration, value)

    def advice(self) -> Advice | None:
        """The best so far."""
        return self._best


CLOCKED: dict[str, Make] = {"random": Random}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
