"""MF-UCB: the highest upper confidence bound, tightened by cheap fidelities.

Paper 000 (Kandasamy, Dasarathy, Schneider, Póczos, "The Multi-fidelity Multi-armed Bandit",
NeurIPS 2016): Algorithm 1 with Eq. 3 and 4.
"""

import math
from collections.abc import Iterable

import numpy as np

from mfhpo._validation import check_instance, check_positive
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.problem import Problem, Pull
from mfhpo.racing.evidence import surest_at_target
from mfhpo.racing.race import Race
from mfhpo.racing.rule import Expected, Known, Needs, Verdict
from mfhpo.regret.reward import needs_pilot, radii, scale_of, words


class UpperBounds:
    """The rule of `MFUCB`, bias bounds `zeta`, and radii `gamma` at which levels are left, (M,)."""

    def __init__(self, problem: Problem, rho: float) -> None:
        self._rho = rho
        self._scale = scale_of(problem)
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
        fidelities = range(known.problem.n_fidelities)
        scales = np.array([self._scale(known, m) for m in fidelities])
        return np.asarray(scales * math.sqrt(2.0 * self._rho))

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
    lambda_(m+1)). Bad arms are thus left at cheap fidelities.

    For the reward while it runs: every play earns its arm's target mean times its cost. It
    certifies nothing; to be sure of an answer race with `mfhpo.IISE`.

    Parameters
    ----------
    problem
        What is known, with bias bounds of kind "max" (else ValueError). Bias, costs and sigma are
        found out by a pilot where they are not declared.
    rho, delta, budget, max_failures, pilot_arms, pilot_pulls
        See `mfhpo.racing.options.MFUCBOptions`.
    seed
        Chooses the pilot's arms.

    Notes
    -----
    A pull under way counts as a play whose value is the arm's mean so far, so that several workers
    spread. Where an arm has no value yet, the highest mean at that fidelity stands in.
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
                "declare Bias.max(...), or use MFElimination, which needs no bounds."
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
