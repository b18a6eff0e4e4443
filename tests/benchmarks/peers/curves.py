"""A problem to try optimisers on."""

import math

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

    def __init__(self, continues=True):
        self.fidelity = FidelitySpace("epochs", EPOCHS, continues)
        self.seen = []

    def objective_function(self, configuration, fidelity, seed):
        level = EPOCHS.index(int(fidelity))
        value = self.true_value(configuration) - BIAS[level]
        self.seen.append((dict(configuration), level, value))
        return Evaluation(value, fidelity)

    def true_value(self, configuration):
        value = -abs(math.log10(configuration["rate"]) + 2.0) - abs(configuration["layers"] - 4)
        return value - configuration.get("momentum", 0.5)
