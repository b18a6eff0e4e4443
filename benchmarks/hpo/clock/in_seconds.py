"""A problem whose evaluations cost the seconds that they take."""

from dataclasses import replace

from benchmarks.hpo.problem import Evaluation, Problem
from benchmarks.hpo.space import Configuration


class InSeconds(Problem):
    """Another problem with its training times for costs; the full cost is the median one.

    Parameters
    ----------
    problem
        The other one.

    Raises
    ------
    ValueError
        If its training times are not known.
    """

    def __init__(self, problem: Problem) -> None:
        if problem.seconds is None:
            raise ValueError(f"problem {problem.name!r} has no training times to put on a clock.")
        self.problem = problem
        self.name = problem.name
        self.space, self.fidelity = problem.space, problem.fidelity
        self.full_cost = self.seconds = problem.seconds
        self.best_value = problem.best_value

    def objective_function(
        self, configuration: Configuration, fidelity: float, seed: int
    ) -> Evaluation:
        """Evaluate a configuration; it costs seconds."""
        result = self.problem.objective_function(configuration, fidelity, seed)
        seconds = self.problem.seconds_of(configuration, fidelity)
        return result if seconds is None else replace(result, cost=seconds)

    def true_value(self, configuration: Configuration) -> float | None:
        """The expected value at the target level."""
        return self.problem.true_value(configuration)
