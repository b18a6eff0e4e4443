"""Cumulative reward: policies that earn while they learn.

MF-UCB: Kandasamy, Dasarathy, Schneider, Póczos, "The Multi-fidelity Multi-armed Bandit", NeurIPS
2016, Algorithm 1 with Eq. 3 and 4. Elimination for reward: Wang et al., "Multi-Fidelity Multi-Armed
Bandits Revisited", NeurIPS 2023, Section 4.2, Algorithm 3, Theorems 4.6 and 4.8.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from mfhpo._validation import check_instance, check_nonnegative, check_positive
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.confidence import MixtureRadius, Radius
from mfhpo.knowledge.noise import Bounded, declared_sigmas
from mfhpo.problem import Problem, Pull, Recommendation
from mfhpo.racing.evidence import surest_arm, surest_at_target
from mfhpo.racing.race import Race
from mfhpo.racing.rule import Expected, Known, Needs, Verdict


def needs_pilot(problem: Problem) -> bool:
    """Tell whether costs or the scale of the noise have to be found out."""
    sigmas = declared_sigmas(problem.noise, problem.n_fidelities)
    return problem.costs is None or sigmas is None


def radii(problem: Problem) -> list[Radius] | None:
    """Return radii that hold whatever chooses the pulls, shape (M,); None for unknown noise."""
    declared = declared_sigmas(problem.noise, problem.n_fidelities)
    return None if declared is None else [MixtureRadius(sigma) for sigma in declared]


def words(known: Known, usual: Recommendation) -> Recommendation:
    """Say that radii of bounded values rest on the bounds."""
    if not isinstance(known.problem.noise, Bounded):
        return usual
    independent, _, *rest = usual.conditions
    within = "all values lie within the declared bounds"
    return replace(usual, conditions=(independent, within, *rest))


class UpperBounds:
    """The rule of `MFUCB`: bias bounds `zeta`, and radii `gamma` at which levels are left, (M,)."""

    def __init__(self, problem: Problem, rho: float) -> None:
        self._rho = rho
        estimates_bias = problem.n_fidelities > 1 and problem.bias is None
        self.needs = Needs(
            "MF-UCB maximises the reward while it runs and certifies nothing; race for the best "
            "arm for a certificate",
            certifies=False,
            pilot=estimates_bias or needs_pilot(problem),
            estimates_bias=estimates_bias,
            leader=lambda known: surest_at_target(known.evidence, known.arms, known.bias),
            words=words,
        )

    def plan(self, known: Known) -> None:
        """Derive what the fidelities are played for (see `Rule.plan`)."""
        costs, n_fidelities = known.costs, known.problem.n_fidelities
        self.zeta = np.array(known.bias.bounds) if known.bias else np.zeros(n_fidelities)
        self.gamma = np.full(n_fidelities, np.inf)
        dearer = known.problem.target
        for m in range(dearer - 1, -1, -1):
            # A fidelity that was measured to be no cheaper than a higher one is never played.
            if costs[m] < costs[dearer]:
                self.gamma[m] = self.zeta[m] * math.sqrt(costs[m] / costs[dearer])
                dearer = m

    def widths(self, known: Known) -> FloatArray:
        """Return radii of one value, without the root of the logarithm of t, shape (M,)."""
        return np.asarray(known.evidence.noise_scales() * math.sqrt(2.0 * self._rho))

    def terms(self, known: Known, counts: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return centres and slopes of the upper bounds, (K, M); `counts` has pulls under way."""
        widths, told = self.widths(known), known.evidence.counts
        seen = told > 0
        means = known.evidence.means(np.arange(known.problem.n_arms))
        centres = np.where(seen, means + self.zeta, np.inf)
        if counts is not told:
            unseen = ~seen.any(axis=1, keepdims=True) & (counts > told)
            highest = np.where(seen, means, -np.inf).max(axis=0)
            highest[np.isinf(highest)] = 0.0
            centres = np.where(unseen, highest + self.zeta, centres)
        slopes = np.where(counts > 0, widths / np.sqrt(np.maximum(counts, 1)), 0.0)
        return centres, slopes

    def propose(self, known: Known, expected: Expected) -> Pull:
        """Return the next play (see `Rule.propose`)."""
        arms, counts = known.arms, expected.counts
        centres, slopes = self.terms(known, counts)
        root = math.sqrt(math.log(int(counts.sum()) + 1))
        arm = int(arms[np.argmax((centres[arms] + slopes[arms] * root).min(axis=1))])
        unsure = (counts[arm] == 0) | (slopes[arm] * root >= self.gamma)
        worthwhile = unsure & (self.gamma < np.inf)
        worthwhile[-1] = True
        return Pull(arm, int(np.argmax(worthwhile)))

    def verdict(self, known: Known, fidelity: int | None) -> Iterable[Verdict]:
        """Return nothing: no arm leaves (see `Rule.verdict`)."""
        return ()


class MFUCB(Race):
    """Play the arm with the highest upper bound, at the cheapest fidelity still worth it.

    The upper bound of an arm is the smallest over the fidelities of mean + radius + zeta_m. The
    radius is sigma sqrt(2 rho log t / s) after s of t plays, and zeta_m the bias bound. The arm is
    played at the cheapest fidelity whose radius is at least gamma_m = zeta_m sqrt(lambda_m /
    lambda_(m+1)). Every play earns its arm's target mean times its cost. Nothing is certified. A
    pull under way counts as a play whose value is the arm's mean so far, or else the highest mean
    at that fidelity.

    Parameters
    ----------
    problem
        What is known, with bias bounds of kind "max" (else ValueError). A pilot finds out what is
        not declared.
    rho, delta, budget, max_failures, pilot_arms, pilot_pulls
        See `mfhpo.racing.options.MFUCBOptions`.
    seed
        Chooses the pilot's arms.
    """

    rule: UpperBounds

    def __init__(
        self,
        problem: Problem,
        *,
        rho: float = 2.0,
        delta: float = 0.05,
        budget: float | None = None,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        seed: int = 0,
    ) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        if problem.bias is not None and problem.bias.kind != "max" and problem.n_fidelities > 1:
            raise ValueError(
                "MFUCB needs bounds on every arm's own bias, got bias bounds of kind 'order'; "
                "declare Bias.max(...), or use MFElimination (aim='reward per pull')."
            )
        super().__init__(
            problem,
            UpperBounds(problem, check_positive("rho", rho, "; try 2")),
            estimated_bias="eliminate",
            delta=delta,
            budget=budget,
            max_failures=max_failures,
            pilot_arms=pilot_arms,
            pilot_pulls=pilot_pulls,
            radius=radii(problem),
            seed=seed,
        )


# Without a budget, the first one that is assumed affords so many target pulls of each arm.
_FIRST_TARGET_PULLS = 16


class Phases:
    """The rule of `MFElimination`; `assumed` is the budget, also where there is none."""

    def __init__(self, problem: Problem, epsilon: float | None) -> None:
        self.needs = Needs(
            "elimination for reward plays the arms that are left and certifies nothing; race for "
            "the best arm for a certificate",
            certifies=False,
            target_only=True,
            pilot=needs_pilot(problem),
            pilot_at=tuple(sorted({0, problem.target})),
            judges_failures=True,
            leader=_leader,
            words=words,
        )
        self._epsilon = epsilon
        self._phase = 0
        self.assumed = math.inf

    def plan(self, known: Known) -> None:
        """Choose where arms are played (see `Rule.plan`)."""
        target = known.problem.target
        self.played = 0 if known.costs[0] < known.costs[target] else target
        self._cost_played = float(known.costs[self.played])
        self._cost_compared = float(known.costs[target])
        first = _FIRST_TARGET_PULLS * known.problem.n_arms * self._cost_compared
        assumed = min(self.assumed, known.spending.budget)
        self._assume(known, first if math.isinf(assumed) else assumed)

    def _assume(self, known: Known, budget: float) -> None:
        self.assumed = budget
        # Below e the share would grow with the budget.
        affordable = max(math.e, budget / self._cost_played)
        share = known.problem.n_arms * math.log(affordable) / affordable
        self._share = math.pow(share, 1.0 / 3.0)

    def _width(self, known: Known) -> float:
        return 2.0 * float(known.evidence.noise_scales()[known.problem.target])

    def _epsilon_of(self, known: Known) -> float:
        return self._width(known) * self._share if self._epsilon is None else self._epsilon

    def explores(self, known: Known) -> bool:
        """Tell whether arms are compared, and not played."""
        repeats = 4.0**self._phase
        payable = self.assumed >= math.e * repeats * self._cost_compared
        epsilon, width = self._epsilon_of(known), self._width(known)
        worthwhile = self._phase == 0 or 2.0 * width > epsilon * 2.0**self._phase
        return payable and worthwhile and len(known.arms) > 1

    @property
    def needed(self) -> int:
        """Values at the target that every remaining arm needs for the phase to end."""
        repeats = 4.0**self._phase
        affordable = self.assumed / self._cost_compared
        return math.ceil(repeats * math.log(affordable / repeats))

    def verdict(self, known: Known, fidelity: int | None) -> Iterator[Verdict]:
        """Go on to the next phases where this one is complete (see `Rule.verdict`)."""
        if fidelity is None:
            self._phase = 0
        if math.isinf(known.spending.budget) and known.spending.paid >= self.assumed:
            while known.spending.paid >= self.assumed:
                self._assume(known, 2.0 * self.assumed)
            self._phase = 0
            yield Verdict(reinstates=True)
        target = known.problem.target
        while self.explores(known):
            arms = known.arms
            if known.evidence.counts[arms, target].min() < self.needed:
                break
            means = known.evidence.means(arms, target)
            best = int(np.argmax(means))
            excess = means[best] - means
            gone = (excess >= 2.0 ** (1 - self._phase) * self._width(known)) & (excess > 0.0)
            self._phase += 1
            yield Verdict(arms[gone], by=int(arms[best]))
        yield Verdict(epsilon=self._epsilon_of(known))

    def propose(self, known: Known, expected: Expected) -> Pull:
        """Return the next pull (see `Rule.propose`)."""
        arms, counts, target = known.arms, expected.counts, known.problem.target
        left = known.spending.budget - known.spending.paid
        if self.explores(known) and known.spending.of(target) <= left:
            return Pull(int(arms[np.argmin(counts[arms, target])]), target)
        return Pull(int(arms[counts[:, self.played].sum() % len(arms)]), self.played)


def _leader(known: Known) -> int:
    seen = known.arms[known.evidence.counts[known.arms, known.problem.target] > 0]
    return surest_arm(known.evidence, seen if seen.size else known.arms)


class MFElimination(Race):
    """Compare arms at the target in phases, then play those that are left at the cheapest fidelity.

    In phase p = 0, 1, ... every remaining arm is pulled at the target until it has ``4^p log(Lambda
    / (4^p lambda_M))`` values there, Lambda being the budget. It stays if its mean plus ``2^(1-p)
    W`` exceeds the largest mean, W being the width of the values. That goes on while ``p < log2(2 W
    / epsilon)`` and more than one arm is left. The remaining arms are then played in turn at the
    first fidelity, or at the target if that was measured to cost no more. Every play earns its
    arm's target mean, whatever it costs. Nothing is certified. Phases end early where a further one
    could not be paid: 4^p e lambda_M > Lambda. The theorems are about known budgets.

    Parameters
    ----------
    problem
        What is known. The bias does not matter. W is high - low of values that are `Bounded`, and 2
        sigma otherwise. A pilot finds out what is not declared.
    delta, budget, max_failures, pilot_arms, pilot_pulls
        See `mfhpo.racing.options.MFEliminationOptions`.
    epsilon
        See `mfhpo.racing.options.MFEliminationOptions`. Derived from the budget, it is
        ``W (K log(L) / L)^(1/3)`` with L the budget in units of the cheapest pull (Theorem 4.8).
    seed
        Chooses the pilot's arms.
    """

    rule: Phases

    def __init__(
        self,
        problem: Problem,
        *,
        epsilon: float | None = None,
        delta: float = 0.05,
        budget: float | None = None,
        max_failures: int = 3,
        pilot_arms: int = 10,
        pilot_pulls: int = 2,
        seed: int = 0,
    ) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        if epsilon is not None:
            epsilon = check_nonnegative("epsilon", epsilon)
        super().__init__(
            problem,
            Phases(problem, epsilon),
            epsilon=epsilon or 0.0,
            delta=delta,
            budget=budget,
            max_failures=max_failures,
            pilot_arms=pilot_arms,
            pilot_pulls=pilot_pulls,
            radius=radii(problem),
            seed=seed,
        )
