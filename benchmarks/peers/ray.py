"""Ray Tune: its own ASHA scheduler with one slot, in virtual time instead of on a cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from ray.tune.schedulers import AsyncHyperBandScheduler

from benchmarks.hpo.meter import Meter
from benchmarks.hpo.methods import Method
from benchmarks.hpo.space import same_configuration
from benchmarks.peers._levels import FACTOR, level_of, step_of
from benchmarks.tune_clock import Step, simulate


class _Training:
    """Iterations 1, 3, 9, ... of a trial are the levels; between them nothing new is reported."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._last: dict[tuple[tuple[str, Any], ...], float] = {}

    def step(self, config: Mapping[str, Any], iteration: int) -> Step:
        key = same_configuration(config)
        level = level_of(iteration)
        if step_of(level) == iteration:
            self._last[key] = self._meter.evaluate(config, level)
            # What ResultGrid.get_best_result takes: the best of the last reports of all trials.
            best = max(self._last, key=self._comparable)
            if math.isfinite(self._last[best]):
                self._meter.recommend(dict(best), claim=self._last[best])
        return Step(self._last[key], seconds=1.0)

    def _comparable(self, key: tuple[tuple[str, Any], ...]) -> float:
        value = self._last[key]
        return value if math.isfinite(value) else -math.inf


def _asha(meter: Meter, seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = meter.problem.fidelity.levels
    # As many trials as the budget pays for if all of them stop at the first level.
    trials = math.ceil(meter.budget * levels[-1] / levels[0])
    last = step_of(len(levels) - 1)
    simulate(
        AsyncHyperBandScheduler(max_t=last, reduction_factor=FACTOR),
        [meter.problem.space.draw(rng) for _ in range(trials)],
        _Training(meter),
        slots=1,
        max_t=last,
    )


METHODS: dict[str, Method] = {"ray asha": _asha}
