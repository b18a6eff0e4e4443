"""A problem to try optimisers on, and how peers in environments of their own are tried on it.

python -m tests.benchmarks.peers.curves ax
"""

import contextlib
import json
import math
import sys

from benchmarks.hpo.meter import BudgetSpent, Meter
from benchmarks.hpo.methods import methods_of
from benchmarks.hpo.problem import Evaluation, FidelitySpace, Problem
from benchmarks.hpo.space import Categorical, Condition, ConfigurationSpace, Float, Integer

EPOCHS = (2, 6, 17, 52)
# What a training at the target level falls short by, at the other levels.
BIAS = (20.0, 10.0, 3.0, 0.0)


class Curves(Problem):
    """Learning curves without noise that never cross; `momentum` applies to one solver only."""

    name = "curves"
    space = ConfigurationSpace(
        {
            "rate": Float(1e-4, 1.0, log=True),
            "layers": Integer(1, 8),
            "solver": Categorical(("sgd", "adam")),
            "momentum": Float(0.0, 1.0),
        },
        {"momentum": Condition("solver", ("sgd",))},
    )
    full_cost = 52.0

    def __init__(self, continues=True, failing=()):
        self.fidelity = FidelitySpace("epochs", EPOCHS, continues)
        self.failing = failing  # numbers of layers whose training diverges
        self.seen = []

    def objective_function(self, configuration, fidelity, seed):
        level = EPOCHS.index(int(fidelity))
        value = self.true_value(configuration) - BIAS[level]
        if configuration["layers"] in self.failing:
            value = math.nan
        self.seen.append((dict(configuration), level, value))
        return Evaluation(value, fidelity)

    def true_value(self, configuration):
        value = -abs(math.log10(configuration["rate"]) + 2.0) - abs(configuration["layers"] - 4)
        return value - configuration.get("momentum", 0.5)


def _tried(method, budget, seed, failing=()):
    problem = Curves(failing=failing)
    meter = Meter(problem, budget, seed)
    with contextlib.suppress(BudgetSpent):
        method(meter, seed)
    steps = [(step.configuration, step.claim) for step in meter.steps]
    return {"seen": problem.seen, "steps": steps, "failures": meter.failures}


def main(peer):
    """Print what each method of a peer does, as JSON: its evaluations and recommendations."""
    print(
        json.dumps(
            {
                name: {
                    "whole": _tried(method, 10.0, 3),
                    "again": _tried(method, 6.0, 3),
                    "other": _tried(method, 6.0, 4),
                    "failing": _tried(method, 10.0, 3, failing=(2, 4, 6, 8)),
                }
                for name, method in methods_of(peer).items()
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
