"""Random search at the target level: what every optimiser has to beat."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.hpo.meter import Meter
from benchmarks.hpo.methods import Method


def _random(meter: Meter, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = len(meter.problem.fidelity.levels) - 1
    best = -math.inf
    while True:
        configuration = meter.problem.space.draw(rng)
        value = meter.evaluate(configuration, target)
        if value > best:
            best = value
            meter.recommend(configuration, claim=value)


METHODS: dict[str, Method] = {"random": _random}
