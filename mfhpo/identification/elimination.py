"""SE, IISE, IISE-gamma and MFE eliminate level by level, with arms pulled in turn.

Paper 003 (Poiani, Metelli, Restelli, "Multi-Fidelity Best-Arm Identification", NeurIPS 2022):
Algorithm 1 and the epsilon-optimal stop of Section 4.3.
"""

import math
from typing import Any

import numpy as np

from mfhpo._validation import check_flag, check_instance, check_number, shown
from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.identification.bounds.thresholds import (
    convenience_thresholds,
    costs_of_precision,
    select_fidelities,
)
from mfhpo.identification.rounds import Rounds, first_eliminations
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.bias import Kind, check_variant
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Problem, Pull


class Elimination(BestArmPolicy):
    """The engine that the elimination policies share.

    Fidelities are explored from the cheapest to the dearest. At each, all remaining arms are pulled
    in turn; arm i leaves when some arm's lower bound exceeds i's upper bound by the margin of the
    fidelity (2 xi_m or gamma_m). A fidelity is done with once four times the radius is at most its
    threshold alpha_m. The race ends with one arm, or when the leader is within epsilon of every
    other.

    Parameters
    ----------
    problem, **options
        See `BestArmPolicy`.
    preselect
        Whether to keep only fidelities that satisfy Assumption 1.
    """

    _kind: Kind = "order"
    _certificate_reason = "its lower bound is within epsilon of every remaining arm's upper bound"

    def __init__(self, problem: Problem, *, preselect: bool = True, **options: Any) -> None:
        self._preselect = check_flag("preselect", preselect)
        super().__init__(problem, **options)

    def _thresholds(self, margins: FloatArray, costs: FloatArray) -> FloatArray:
        return convenience_thresholds(margins, costs, self.epsilon)

    # Blocks of rounds, for simulations.

    def plan_rounds(self) -> Rounds:
        """What to pull next when all remaining arms are pulled the same number of times.

        A ValueError says that a pilot is needed, the radius depends on the values, there is a
        budget, or arms were pulled unequally: then use `ask` and `tell`.
        """
        arms = self.active
        if self._piloting or self._evidence.depends_on_values:
            raise ValueError(
                "rounds need declared bias, costs, epsilon and noise, and a radius that does not "
                "depend on the values; use ask and tell."
            )
        if math.isfinite(self.budget):
            raise ValueError(f"rounds need budget=None, got {self.budget:g}; use ask and tell.")
        winner = self.winner
        if winner is not None:
            fidelity, arms = self.problem.target, np.array([winner])
            done = int(self._evidence.counts[winner, fidelity])
            sums = self._evidence.sums(arms, fidelity)
            return Rounds(fidelity, arms, done, sums, max(self._measure, done + 1))
        fidelity = self._phase(self._evidence.counts, arms)
        counts = self._evidence.counts[arms, fidelity]
        if counts.min() != counts.max():
            raise ValueError("rounds need equal counts of all remaining arms; use ask and tell.")
        sums = self._evidence.sums(arms, fidelity)
        return Rounds(fidelity, arms, int(counts[0]), sums, self._phase_length(fidelity))

    def tell_rounds(self, totals: IntArray, sums: FloatArray) -> None:
        """Tell several rounds at once; the same as telling them one by one, but fast.

        `totals` are the pulls of each remaining arm after each round, shape (T,), increasing; steps
        of more than one check the rule less often, which keeps it valid. `sums` are those of the
        first ``totals[t]`` values of each arm of `plan_rounds`, shape (n, T). Columns after the end
        of the race are ignored.
        """
        plan = self.plan_rounds()
        fidelity, arms = plan.fidelity, plan.arms
        half = self._evidence.radius_after(totals, fidelity)
        margin = float(self._margins[fidelity])
        means = sums / totals
        if len(arms) > 1:
            exits, by, excess, end = first_eliminations(means, half, margin, self.epsilon)
        else:
            exits = by = np.array([-1])
            excess, end = np.zeros(1), len(totals) - 1
        last = np.where(exits >= 0, exits, end)
        self._take_sums(arms, fidelity, totals[last], sums[np.arange(len(arms)), last])
        gone = exits >= 0
        self._roster.eliminate(arms[gone], arms[by[gone]], fidelity, excess[gone])
        self._audit_bias(fidelity)
        self._judge(fidelity)

    def _explored_fidelity(self) -> int:
        return self._phase(self._evidence.counts, self.active)

    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull:
        seen = self._evidence.counts
        fidelity = self._phase(counts, arms)
        reached = fidelity if counts is seen else self._phase(seen, arms)
        if fidelity != reached and counts[arms, fidelity].all():
            # All that is left of the phase is under way. One pull of each arm ahead of it is
            # work worth doing; more would only hide that one of those pulls may never come.
            fidelity, counts = reached, seen
        behind = arms[~self._settled(counts, arms, fidelity)]
        return Pull(int(behind[np.argmin(counts[behind, fidelity])]), fidelity)

    def _phase_length(self, fidelity: int) -> int | None:
        """Pulls after which every arm is known well enough there; None at the last fidelity."""
        if fidelity == self._fidelities[-1]:
            return None
        if fidelity not in self._phase_lengths:
            length = float(self._evidence.pulls_until(fidelity, self._alpha[fidelity] / 4.0))
            self._phase_lengths[fidelity] = int(length) if math.isfinite(length) else None
        return self._phase_lengths[fidelity]

    def _phase(self, counts: IntArray, arms: IntArray) -> int:
        for fidelity in self._fidelities[:-1]:
            if not self._settled(counts, arms, fidelity).all():
                return fidelity
        return self._fidelities[-1]

    def _settled(self, counts: IntArray, arms: IntArray, fidelity: int) -> BoolArray:
        """Which arms are known well enough at a fidelity: 4 B <= alpha_m (Algorithm 1)."""
        if fidelity == self._fidelities[-1]:
            return np.zeros(len(arms), dtype=bool)
        half = self._evidence.half_widths(arms, fidelity, counts[arms, fidelity])
        return np.asarray(4.0 * half <= self._alpha[fidelity])

    def _judge(self, fidelity: int) -> None:
        arms = self.active
        if len(arms) < 2 or self.winner is not None:
            return
        means = self._evidence.means(arms, fidelity)
        half = self._evidence.half_widths(arms, fidelity)
        upper = means + half
        best = int(np.argmax(means - half))
        excess = means[best] - half[best] - upper
        others = np.arange(len(arms)) != best
        margin = self._margins[fidelity]
        gone = others & (excess >= margin)
        if gone.any():
            self._roster.eliminate(arms[gone], int(arms[best]), fidelity, excess[gone])
        close = others & ~gone
        if self.epsilon > 0.0 and close.any() and (excess[close] + self.epsilon >= margin).all():
            self._certificate = int(arms[best])

    def _reinstate(self) -> None:
        self._roster.restore_unsupported(self._margins)

    def _plan(self) -> None:
        assert self.bias is not None
        assert self._planned_costs is not None
        costs = self._planned_costs
        # An estimate from a pilot's few repeats would do more harm than good here.
        if isinstance(self.problem.noise, SubGaussian):
            costs = costs_of_precision(costs, self._evidence.noise_scales())
        # By how much a lower bound must exceed an upper bound at each fidelity.
        self._margins = np.array(self.bias.margins)
        if self._target_only:
            self._margins[:-1] = np.inf
            chosen = self._margins == 0.0
        else:
            chosen = select_fidelities(self._margins, costs, self._preselect)
        kept = np.flatnonzero(chosen)
        kept = kept[np.argsort(costs[kept])]
        self._fidelities: list[int] = kept.tolist()
        self._alpha = np.full(len(costs), np.inf)
        self._phase_lengths: dict[int, int | None] = {}
        self._alpha[kept] = self._thresholds(self._margins[kept], costs[kept])


class IISE(Elimination):
    """Iterative imprecise successive elimination, and its order version.

    It is Algorithm 1 of Poiani et al. (2022). With max bounds xi_m it is IISE; with order bounds
    gamma_m it is IISE-gamma (Section 5), which is never dearer: gamma_m <= 2 xi_m. The `variant`,
    "max" or "order", is the kind of bounds to estimate when none are declared; a ValueError says
    that it contradicts the declared ones. For the other arguments see `Elimination` and
    `BestArmPolicy`.
    """

    def __init__(self, problem: Problem, *, variant: Kind | None = None, **options: Any) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        check_variant(variant, problem.bias)
        self._kind = variant or "order"
        super().__init__(problem, **options)


class SuccessiveElimination(Elimination):
    """Successive elimination at the target fidelity only (SE).

    A baseline of Poiani et al. (2022). No bias is needed, and the union bound is over arms alone:
    d = delta / K.
    """

    @property
    def _target_only(self) -> bool:
        return True


class MaximumFidelityExploit(IISE):
    """IISE with thresholds near 0, so that each fidelity is explored as far as it goes (MFE).

    A baseline of Poiani et al. (2022). `fraction` is alpha_m as a share of the bias bound at
    fidelity m, in (0, 1]; for the other arguments see `IISE`.
    """

    def __init__(self, problem: Problem, *, fraction: float = 0.1, **options: Any) -> None:
        if not 0.0 < check_number("fraction", fraction) <= 1.0:
            raise ValueError(f"fraction must be in (0, 1], got {shown(fraction)}.")
        self._fraction = fraction
        super().__init__(problem, **options)

    def _thresholds(self, margins: FloatArray, costs: FloatArray) -> FloatArray:
        assert self.bias is not None
        bounds_over_margins = 0.5 if self.bias.kind == "max" else 1.0
        return self._fraction * bounds_over_margins * margins
