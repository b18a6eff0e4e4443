"""What evaluations cost: paid, expected, and planned with."""

import math

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.problem import Observation, Problem


class Costs:
    """The costs of a race, declared or measured.

    Attributes
    ----------
    budget, paid
        Largest total cost, infinite without one, and what was paid.
    sums, counts
        Costs that are known, added up, and their number, shape (M,).
    """

    def __init__(self, problem: Problem, budget: float | None) -> None:
        self.budget = math.inf if budget is None else budget
        self.paid = 0.0
        self.sums: FloatArray = np.zeros(problem.n_fidelities)
        self.counts: IntArray = np.zeros(problem.n_fidelities, dtype=np.int64)
        self._declared = problem.costs

    def of(self, fidelity: int) -> float:
        """Return the cost of a pull: declared, or the mean of what was paid (0 at first)."""
        if self._declared is not None:
            return self._declared[fidelity]
        return float(self.sums[fidelity] / max(1, self.counts[fidelity]))

    def all(self) -> FloatArray:
        """Return the cost of a pull at each fidelity, shape (M,)."""
        return np.array([self.of(m) for m in range(len(self.sums))])

    def known(self, fidelity: int, observation: Observation) -> float | None:
        """Return the cost of a pull, None if nobody knows, as for a dead worker; or ValueError."""
        if observation.cost is not None:
            return float(observation.cost)
        if self._declared is not None:
            return self._declared[fidelity]
        if observation.has_value:
            raise ValueError("cost=None: the problem's costs are measured; tell what was paid.")
        return None

    def pay(self, fidelity: int, observation: Observation) -> None:
        """Pay for a pull."""
        cost = self.known(fidelity, observation)
        if cost is None:
            self.paid += self.of(fidelity)
            return
        self.paid += cost
        self.sums[fidelity] += cost
        self.counts[fidelity] += 1

    def to_plan_with(self) -> FloatArray:
        """Return the costs to plan with, shape (M,): later measurements must not move a plan."""
        paid = self.all()
        # A coarse clock measures 0; a fidelity must not be pulled for ever for being free.
        paid[paid == 0.0] = 1e-3 * paid.max() if paid.any() else 1.0
        return paid
