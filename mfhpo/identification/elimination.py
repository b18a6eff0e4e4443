"""SE, IISE, IISE-gamma and MFE eliminate level by level, with arms pulled in turn.

Poiani, Metelli, Restelli, "Multi-Fidelity Best-Arm Identification", NeurIPS 2022: Algorithm 1 and
the epsilon-optimal stop of Section 4.3.
"""

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np

from mfhpo._validation import check_choice, check_instance
from mfhpo.identification.bounds import (
    convenience_thresholds,
    costs_of_precision,
    select_fidelities,
)
from mfhpo.knowledge.arrays import BoolArray, IntArray
from mfhpo.knowledge.bias import Kind, check_variant
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Problem, Pull
from mfhpo.racing.options import Variant
from mfhpo.racing.race import Race
from mfhpo.racing.rule import Expected, Known, Needs, Verdict

_FRACTION = 0.1  # of the bias bounds, as thresholds of MFE


class LevelByLevel:
    """The rule of `IISE`; its thresholds may be a `fraction` of the bias bounds.

    With `preselect`, only fidelities that satisfy Assumption 1 are kept.
    """

    def __init__(
        self,
        problem: Problem,
        kind: Kind | None = None,
        *,
        preselect: bool = True,
        target_only: bool = False,
        fraction: float | None = None,
    ) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        check_variant(kind, problem.bias)
        self._preselect = preselect
        self._fraction = fraction
        self.needs = Needs(
            "its lower bound is within epsilon of every remaining arm's upper bound",
            kind=kind or "order",
            target_only=target_only,
        )

    def plan(self, known: Known) -> None:
        """Choose fidelities and thresholds (see `Rule.plan`)."""
        assert known.bias is not None
        costs = known.costs
        # An estimate from a pilot's few repeats would do more harm than good here.
        if isinstance(known.problem.noise, SubGaussian):
            costs = costs_of_precision(costs, known.evidence.noise_scales())
        self.margins = np.array(known.bias.margins)
        if known.target_only:
            self.margins[:-1] = np.inf
            chosen = self.margins == 0.0
        else:
            chosen = select_fidelities(self.margins, costs, self._preselect)
        kept = np.flatnonzero(chosen)
        kept = kept[np.argsort(costs[kept])]
        self.fidelities: list[int] = kept.tolist()
        self.alpha = np.full(len(costs), np.inf)
        if self._fraction is None:
            self.alpha[kept] = convenience_thresholds(
                self.margins[kept], costs[kept], known.epsilon
            )
        else:
            self.alpha[kept] = self._fraction * np.array(known.bias.bounds)[kept]

    def propose(self, known: Known, expected: Expected) -> Pull:
        """Return the next pull (see `Rule.propose`)."""
        arms, counts, seen = known.arms, expected.counts, known.evidence.counts
        fidelity, settled = self.phase(known, counts)
        if counts is not seen and counts[arms, fidelity].all():
            # All that is left of the phase is under way. One pull of each arm ahead of it is
            # work worth doing; more would only hide that one of those pulls may never come.
            reached, settled_there = self.phase(known, seen)
            if fidelity != reached:
                fidelity, settled, counts = reached, settled_there, seen
        behind = arms[~settled]
        return Pull(int(behind[np.argmin(counts[behind, fidelity])]), fidelity)

    def phase(self, known: Known, counts: IntArray) -> tuple[int, BoolArray]:
        """Return the fidelity that is explored and who is settled there, given counts (K, M)."""
        for fidelity in self.fidelities[:-1]:
            settled = self._settled(known, counts, fidelity)
            if not settled.all():
                return fidelity, settled
        return self.fidelities[-1], np.zeros(len(known.arms), dtype=bool)

    def _settled(self, known: Known, counts: IntArray, fidelity: int) -> BoolArray:
        """Return which arms are known well enough at a fidelity: 4 B <= alpha_m (Algorithm 1)."""
        arms = known.arms
        half = known.evidence.half_widths(arms, fidelity, counts[arms, fidelity])
        return np.asarray(4.0 * half <= self.alpha[fidelity])

    def verdict(self, known: Known, fidelity: int | None) -> Iterator[Verdict]:
        """Yield who is out by the bounds at a fidelity (see `Rule.verdict`)."""
        if fidelity is not None:
            yield from self._verdict_at(known, fidelity)
            return
        yield Verdict()
        for each in range(known.problem.n_fidelities):
            yield from self._verdict_at(known, each)

    def _verdict_at(self, known: Known, fidelity: int) -> Iterator[Verdict]:
        arms = known.arms
        if len(arms) < 2 or known.winner is not None:
            return
        means = known.evidence.means(arms, fidelity)
        half = known.evidence.half_widths(arms, fidelity)
        upper = means + half
        best = int(np.argmax(means - half))
        excess = means[best] - half[best] - upper
        others = np.arange(len(arms)) != best
        margin = self.margins[fidelity]
        gone = others & (excess >= margin)
        close = others & ~gone
        leader, certified = int(arms[best]), None
        if known.epsilon > 0.0 and close.any():
            is_close = bool((excess[close] + known.epsilon >= margin).all())
            certified = leader if is_close else None
        if gone.any():
            yield Verdict(arms[gone], leader, fidelity, excess[gone], certified)
        elif certified is not None:
            yield Verdict(certified=certified)


class IISE(Race):
    """Iterative imprecise successive elimination, Algorithm 1 of Poiani et al. (2022).

    Fidelities are explored from the cheapest to the dearest, with all remaining arms in turn. An
    arm leaves when another one's lower bound exceeds its upper bound by the margin of the fidelity
    (2 xi_m or gamma_m). A fidelity is done with once four times the radius is at most its threshold
    alpha_m. The race ends with one arm, or when the leader is within epsilon of every other. With
    order bounds gamma_m it is IISE-gamma (Section 5), which is never dearer.

    Parameters
    ----------
    variant
        See `mfhpo.racing.options.IISEOptions`. A ValueError says that it contradicts the declared
        bounds. "se" is SE, and "mfe" is MFE with alpha_m a tenth of the bias bound.
    """

    def __init__(self, problem: Problem, *, variant: Variant | None = None, **options: Any) -> None:
        check_choice("variant", variant, (None, *get_args(Variant)))
        kind = None if variant == "se" or variant == "mfe" else variant
        fraction = _FRACTION if variant == "mfe" else None
        rule = LevelByLevel(problem, kind, target_only=variant == "se", fraction=fraction)
        super().__init__(problem, rule, **options)
