"""SE, IISE, IISE-gamma and MFE eliminate level by level, with arms pulled in turn.

Paper 003 (Poiani, Metelli, Restelli, "Multi-Fidelity Best-Arm Identification", NeurIPS 2022):
Algorithm 1 and the epsilon-optimal stop of Section 4.3.
"""

from typing import Any

import numpy as np

from mfhpo._validation import check_flag, check_instance, check_number, shown
from mfhpo.identification.best_arm import BestArmPolicy
from mfhpo.identification.bounds.thresholds import (
    convenience_thresholds,
    costs_of_precision,
    select_fidelities,
)
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

    def _phase(self, counts: IntArray, arms: IntArray) -> int:
        for fidelity in self._fidelities[:-1]:
            if not self._settled(counts, arms, fidelity).all():
                return fidelity
        return self._fidelities[-1]

    def _settled(self, counts: IntArray, arms: IntArray, fidelity: int) -> BoolArray:
        """Return which arms are known well enough at a fidelity: 4 B <= alpha_m (Algorithm 1)."""
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
        self._alpha[kept] = self._thresholds(self._margins[kept], costs[kept])


class IISE(Elimination):
    """Iterative imprecise successive elimination, and its order version.

    It is Algorithm 1 of Poiani et al. (2022). With max bounds xi_m it is IISE; with order bounds
    gamma_m it is IISE-gamma (Section 5), which is never dearer: gamma_m <= 2 xi_m.

    Parameters
    ----------
    variant
        "max" or "order": the kind of bounds to estimate when none are declared. A ValueError says
        that it contradicts the declared ones.
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

    A baseline of Poiani et al. (2022).

    Parameters
    ----------
    fraction
        alpha_m as a share of the bias bound at fidelity m, in (0, 1].
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
