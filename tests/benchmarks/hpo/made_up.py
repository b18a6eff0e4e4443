"""A problem, and records of runs, as the tests of runs, scores and reports make them up."""

import numpy as np

from benchmarks.hpo.problem import Evaluation, FidelitySpace, Problem
from benchmarks.hpo.record import Record
from benchmarks.hpo.space import Categorical, Condition, ConfigurationSpace, Float


class Parabola(Problem):
    """Largest in the middle; 1, 3 or 9 epochs; what is seen is too high."""

    name = "parabola"
    space = ConfigurationSpace(
        {"kind": Categorical(("a", "b")), "x": Float(0.0, 1.0)}, {"x": Condition("kind", ("a",))}
    )
    full_cost = 9.0

    def __init__(self, continues=True):
        self.fidelity = FidelitySpace("epochs", (1.0, 3.0, 9.0), continues)

    def objective_function(self, configuration, fidelity, seed):
        if configuration["kind"] == "b":
            return Evaluation(np.nan, fidelity)
        noise = np.random.default_rng([seed, int(fidelity)]).random()
        return Evaluation(self.true_value(configuration) + float(noise), fidelity)

    def true_value(self, configuration):
        return -((configuration["x"] - 0.5) ** 2)


def record(method, problem, seed, steps, **changes):
    costs, values, claims = zip(*steps, strict=True) if steps else ((), (), ())
    given = {
        "budget": 100.0,
        "seconds": (0.0,) * len(steps),
        "evaluations": (30, 10),
        "failures": 1,
        "total_cost": 100.0,
        "total_seconds": 0.08,
        "tried": 30,
        "best_tried": 0.0,
    }
    return Record(
        method, problem, seed=seed, cost=costs, value=values, claim=claims, **(given | changes)
    )
