"""Elimination for reward: find the best arms at the target, then play them where it is cheap.

Paper 002 (Wang et al., "Multi-Fidelity Multi-Armed Bandits Revisited", NeurIPS 2023): Section 4.2,
Algorithm 3, Theorems 4.6 and 4.8.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mfhpo._validation import check_nonnegative
from mfhpo.knowledge.arrays import IntArray
from mfhpo.problem import Problem, Pull
from mfhpo.racing.answer import surest_arm
from mfhpo.regret.reward import RewardPolicy

# Without a budget, the first one that is assumed affords so many target pulls of each arm.
_FIRST_TARGET_PULLS = 16


class MFElimination(RewardPolicy):
    """Compare arms at the target in phases, then play those that are left at the cheapest fidelity.

    In phase p = 0, 1, ... every remaining arm is pulled at the target until it has ``4^p log(Lambda
    / (4^p lambda_M))`` values there, Lambda being the budget; it stays if its mean plus ``2^(1-p)
    W`` exceeds the largest mean, W being the width of the values. That goes on while ``p < log2(2 W
    / epsilon)`` and more than one arm is left. The remaining arms are then played in turn at the
    cheapest fidelity: the first, or the target if that was measured to cost no more.

    For a reward that is earned per play, whatever the play costs: every play earns its arm's target
    mean. It certifies nothing; to be sure of an answer race with `mfhpo.IISE`.

    Parameters
    ----------
    problem
        What is known. The bias does not matter. W is high - low of values that are `Bounded`, and 2
        sigma otherwise. Costs and sigma are found out by a pilot where they are not declared.
    delta, budget, max_failures, pilot_pulls
        See `mfhpo.racing.options.MFEliminationOptions`.
    pilot_arms
        See `mfhpo.racing.options.MFEliminationOptions`. The pilot is at the cheapest fidelity and
        the target.
    epsilon
        See `mfhpo.racing.options.MFEliminationOptions`. Derived from the budget, it is
        ``W (K log(L) / L)^(1/3)`` with L the budget in units of the cheapest pull (Theorem 4.8).
    seed
        Chooses the pilot's arms.

    Raises
    ------
    ValueError
        For arguments out of range.

    Notes
    -----
    An assumed budget that is doubled costs a constant: a regret of at most c L^(2/3) for each adds
    up to at most 2.7 times as much over all of them. At each doubling every arm is judged anew, and
    observations are kept. Races of two arms then missed 1 to 40 % more than with the budget known.
    The theorems are about known budgets.

    Pulls in phases stop early where a further phase could not be paid: 4^p e lambda_M > Lambda.

    Examples
    --------
    >>> from mfhpo import Bounded, Observation
    >>> policy = MFElimination(Problem(2, (1.0, 4.0), noise=Bounded(0.0, 1.0)), budget=1000.0)
    >>> while not policy.finished:
    ...     [pull] = policy.ask()
    ...     policy.tell(pull, Observation(0.9 if pull.arm else 0.1))
    >>> policy.recommend().arm, policy.cost, policy.counts.tolist()
    (1, 1000.0, [[0, 44], [648, 44]])
    """

    def __init__(self, problem: Problem, *, epsilon: float | None = None, **options: Any) -> None:
        self._epsilon = None if epsilon is None else check_nonnegative("epsilon", epsilon)
        super().__init__(problem, **options)
        self._phase = 0
        self._assumed = self.budget
        if not self._piloting:
            self._plan()

    def _compared_fidelities(self) -> tuple[int, ...]:
        return (self.problem.target,)

    def _pilot_fidelities(self) -> tuple[int, ...]:
        return tuple(sorted({0, self.problem.target}))

    def _estimates_bias(self) -> bool:
        return False

    def _plan(self) -> None:
        assert self._planned_costs is not None
        target = self.problem.target
        self._played = 0 if self._planned_costs[0] < self._planned_costs[target] else target
        self._cost_played = float(self._planned_costs[self._played])
        self._cost_compared = float(self._planned_costs[target])
        first = _FIRST_TARGET_PULLS * self.problem.n_arms * self._cost_compared
        self._assume(first if math.isinf(self._assumed) else self._assumed)

    def _assume(self, budget: float) -> None:
        self._assumed = budget
        # Below e the share would grow with the budget.
        affordable = max(math.e, budget / self._cost_played)
        self._share = math.pow(self.problem.n_arms * math.log(affordable) / affordable, 1.0 / 3.0)

    @property
    def epsilon(self) -> float:
        """What arms may differ by and need not be told apart, in the unit of the values."""
        if self._epsilon is not None:
            return self._epsilon
        if self._piloting:
            return 0.0
        return self._width * self._share

    @property
    def _width(self) -> float:
        return 2.0 * self._sigma(self.problem.target)

    @property
    def _exploring(self) -> bool:
        repeats = 4.0**self._phase
        payable = self._assumed >= math.e * repeats * self._cost_compared
        worthwhile = self._phase == 0 or 2.0 * self._width > self.epsilon * 2.0**self._phase
        return payable and worthwhile and bool(np.count_nonzero(self._roster.active) > 1)

    @property
    def _needed(self) -> int:
        """Values at the target that every remaining arm needs for the phase to end."""
        repeats = 4.0**self._phase
        affordable = self._assumed / self._cost_compared
        return math.ceil(repeats * math.log(affordable / repeats))

    def _judge(self, fidelity: int) -> None:
        """Go on to the next phases where this one is complete (`fidelity` does not matter)."""
        if math.isinf(self.budget) and self._cost >= self._assumed:
            while self._cost >= self._assumed:
                self._assume(2.0 * self._assumed)
            self._roster.restore_eliminated()
            self._phase = 0
        target = self.problem.target
        while self._exploring:
            arms = self.active
            if self._evidence.counts[arms, target].min() < self._needed:
                return
            means = self._evidence.means(arms, target)
            best = int(np.argmax(means))
            excess = means[best] - means
            gone = (excess >= 2.0 ** (1 - self._phase) * self._width) & (excess > 0.0)
            self._roster.eliminate(arms[gone], by=int(arms[best]))
            self._phase += 1

    def _judge_anew(self) -> None:
        self._phase = 0
        self._judge(self.problem.target)

    def _take_note_of_failure(self) -> None:
        # It was paid for, which may have spent the assumed budget.
        self._judge(self.problem.target)

    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull:
        target = self.problem.target
        if self._exploring and self._cost_of(target) <= self.budget - self._cost:
            return Pull(int(arms[np.argmin(counts[arms, target])]), target)
        return Pull(int(arms[counts[:, self._played].sum() % len(arms)]), self._played)

    def _surest_arm(self) -> int:
        arms = self.active
        seen = arms[self._evidence.counts[arms, self.problem.target] > 0]
        return surest_arm(self._evidence, seen if seen.size else arms)

    def interval(self, arm: int) -> tuple[float, float]:
        """Return bounds on the arm's mean from its values at the target, valid at all times."""
        return self._evidence.interval(arm, None)

    @property
    def _purpose(self) -> str:
        return (
            "elimination for reward plays the arms that are left and certifies nothing; race for "
            "the best arm for a certificate"
        )

    def state_dict(self) -> dict[str, Any]:
        """Return what was learned (see `Policy.state_dict`)."""
        return super().state_dict() | {
            "phase": self._phase,
            "assumed": self._assumed if math.isfinite(self._assumed) else None,
        }

    def _load_details(self, state: Mapping[str, Any]) -> None:
        self._assumed = math.inf if state["assumed"] is None else float(state["assumed"])
        self._phase = int(state["phase"])
