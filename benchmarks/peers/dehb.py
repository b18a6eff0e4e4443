"""DEHB: differential evolution within Hyperband."""

from __future__ import annotations

import math
import tempfile

from dehb import DEHB

from benchmarks.hpo.meter import Meter
from benchmarks.hpo.methods import Method
from benchmarks.peers._config_space import config_space_of
from benchmarks.peers._levels import level_of, step_of
from benchmarks.peers._values import plain


def _dehb(meter: Meter, seed: int) -> None:
    levels = len(meter.problem.fidelity.levels)
    with tempfile.TemporaryDirectory() as folder:
        optimiser = DEHB(
            cs=config_space_of(meter.problem.space, seed),
            min_fidelity=step_of(0),
            max_fidelity=step_of(levels - 1),
            n_workers=1,
            seed=seed,
            output_path=folder,
            save_freq="end",  # saving is for resuming, and would be paid by every incumbent
            log_level="ERROR",
        )
        while True:
            job = optimiser.ask()
            before = meter.cost
            value = meter.evaluate(plain(job["config"]), level_of(job["fidelity"]))
            fitness = -value if math.isfinite(value) else math.inf
            optimiser.tell(job, {"fitness": fitness, "cost": meter.cost - before})
            if math.isfinite(optimiser.inc_score):
                incumbent, score = optimiser.get_incumbents()
                meter.recommend(plain(incumbent), claim=-float(score))


METHODS: dict[str, Method] = {"dehb": _dehb}
