"""OpenBox: Bayesian optimisation with BOHB's schedule."""

from __future__ import annotations

import math
import tempfile
from typing import Any

from openbox import Optimizer

from benchmarks.hpo.meter import BudgetSpent, Meter
from benchmarks.hpo.methods import Method
from benchmarks.peers._config_space import config_space_of
from benchmarks.peers._levels import FACTOR, level_of, step_of
from benchmarks.peers._values import plain


def _bohb(meter: Meter, seed: int) -> None:
    target = step_of(len(meter.problem.fidelity.levels) - 1)
    spent = False

    def evaluate(config: Any, resource_ratio: float = 1.0) -> dict[str, list[float]]:
        nonlocal spent
        recommend()
        try:
            if spent:
                raise BudgetSpent
            value = meter.evaluate(plain(config), level_of(resource_ratio * target))
        except BudgetSpent:  # it would be taken for a failure of the configuration
            spent = True
            raise
        if not math.isfinite(value):
            raise ArithmeticError(f"value {value}")
        return {"objectives": [-value]}

    def recommend() -> None:
        for best in optimiser.get_incumbents()[:1]:
            meter.recommend(plain(best.config), claim=-best.objectives[0])

    with tempfile.TemporaryDirectory() as folder:
        optimiser = Optimizer(
            evaluate,
            config_space_of(meter.problem.space, seed),
            scheduler_type="bohb",
            scheduler_kwargs={"R": target, "eta": FACTOR},
            random_state=seed,
            logging_dir=folder,
            logger_kwargs={"level": "CRITICAL"},
        )
        while not spent:
            optimiser.iterate(time_left=math.inf)  # one bracket
        recommend()
    raise BudgetSpent


METHODS: dict[str, Method] = {"openbox bohb": _bohb}
