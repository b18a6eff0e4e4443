"""LUCB across fidelities: the two leading arms are explored until they are told apart.

Paper 002 (Wang, Wu, Chen and Lui, "Multi-Fidelity Multi-Armed Bandits Revisited", NeurIPS 2023).
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mfhpo._validation import check_choice, check_finite, check_instance
from mfhpo.identification import explore as duels
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.problem import Problem, Pull
from mfhpo.racing.evidence import surest_arm, surest_by
from mfhpo.racing.options import Explore
from mfhpo.racing.race import Race
from mfhpo.racing.rule import Expected, Known, Needs, Verdict

_EXPLORE = {
    "A": duels.BY_INDEX,
    "B": duels.BY_SWEEP,
    "C": duels.BY_RADIUS,
    "AB": duels.INDEX_AND_SWEEP,
    "top": duels.TARGET_ONLY,
}


class Lucb:
    """The rule of `MFLUCB`."""

    def __init__(
        self,
        problem: Problem,
        explore: Explore,
        best_at_most: float | None,
        second_at_least: float | None,
        safeguard: bool = True,
    ) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        check_choice("explore", explore, _EXPLORE)
        best = check_finite("best_at_most", best_at_most)
        second = check_finite("second_at_least", second_at_least)
        if best is not None and second is not None and best <= second:
            raise ValueError(
                f"best_at_most={best_at_most!r} must exceed second_at_least={second_at_least!r}: "
                f"they bound the best and the second-best mean."
            )
        if explore != "top" and problem.bias is not None and problem.bias.kind != "max":
            raise ValueError(
                "bias: LUCB needs bounds on every arm's own bias; declare Bias.max(...), or race "
                "with IISE, which takes order bounds."
            )
        self._explore = _EXPLORE[explore]
        self._best_at_most = math.nan if best is None else float(best)
        self._second_at_least = math.nan if second is None else float(second)
        self._safeguard = safeguard
        self.explorations = 0
        self.committed: IntArray = np.full(problem.n_arms, duels.NOT_COMMITTED, dtype=np.int64)
        self.needs = Needs(
            "its lower bound is within epsilon of every other arm's upper bound",
            target_only=explore == "top",
            note=self.note,
            leader=self.leader,
        )

    def plan(self, known: Known) -> None:
        """Gather what the decisions depend on (see `Rule.plan`)."""
        assert known.bias is not None
        self.rules = duels.Rules(
            explore=duels.TARGET_ONLY if known.target_only else self._explore,
            bounds=np.array(known.bias.bounds),
            roots=np.sqrt(known.costs),
            usable=duels.usable_fidelities(known.costs),
            scales=_scales(known),
            best_at_most=self._best_at_most,
            second_at_least=self._second_at_least,
            logarithm=math.log(4.0 / (known.evidence.noise.delta / known.evidence.counts.size)),
            epsilon=known.epsilon,
            safeguard=self._safeguard,
        )

    def note(self, known: Known, arm: int) -> None:
        """Count the explorations of a value's arm."""
        if known.piloting:
            self.explorations += known.problem.n_fidelities
            return
        self.explorations += duels.weight_of_a_pull(self.rules, int(self.committed[arm]))

    def cells(self, known: Known, counts: IntArray) -> duels.Cells:
        """Return what is known about every arm, with radii as if from `counts` values, (K, M)."""
        seen = known.evidence.counts
        arms = np.arange(len(seen))
        compared = list(known.compared)
        means, radii = np.zeros(seen.shape), np.full(seen.shape, np.inf)
        means[:, compared] = known.evidence.means(arms)[:, compared]
        for m in compared:
            radii[:, m] = known.evidence.half_widths(arms, m, counts[:, m])
        radii[seen == 0] = np.inf
        return duels.Cells(counts, seen, means, radii)

    def verdict(self, known: Known, fidelity: int | None) -> Iterator[Verdict]:
        """Yield who is out, and who is certified (see `Rule.verdict`)."""
        if fidelity is None:
            yield Verdict()
        active = known.roster.active
        if known.winner is not None or active.sum() < 2:
            return
        cells = self.cells(known, known.evidence.counts)
        lows, highs = duels.target_bounds(cells, self.rules.bounds, active)
        best, gone = duels.out_of_the_race(lows, highs, active)
        if gone.any():
            yield Verdict(np.flatnonzero(gone), best)
            lows[gone] = highs[gone] = -np.inf
        if active.sum() < 2:
            return
        duel = self._duel(known, cells, lows, highs)
        leader, rival = duel.arms
        if lows[leader] >= highs[rival] - duel.rules.epsilon:
            yield Verdict(certified=leader)
            return
        duels.commit(duel)

    def _duel(
        self, known: Known, cells: duels.Cells, lows: FloatArray, highs: FloatArray
    ) -> duels.Duel:
        rules = self.rules._replace(scales=_scales(known))
        arms = duels.top_two(highs, cells.counts)
        return duels.Duel(rules, cells, lows, highs, arms, self.committed)

    def propose(self, known: Known, expected: Expected) -> Pull:
        """Return the next pull (see `Rule.propose`)."""
        cells = self.cells(known, expected.counts)
        lows, highs = duels.target_bounds(cells, self.rules.bounds, known.roster.active)
        under_way = sum(
            int(number) * duels.weight_of_a_pull(self.rules, int(self.committed[arm]))
            for arm, number in enumerate((cells.counts - cells.seen).sum(axis=1))
        )
        duel = self._duel(known, cells, lows, highs)
        return Pull(*duels.explored(duel, self.explorations + under_way))

    def leader(self, known: Known) -> int:
        """Return the arm with the highest lower bound."""
        if known.piloting:
            return surest_arm(known.evidence, known.arms)
        cells = self.cells(known, known.evidence.counts)
        lows, _ = duels.target_bounds(cells, self.rules.bounds, known.roster.active)
        return surest_by(lows[known.arms], known.evidence, known.arms)


def _scales(known: Known) -> FloatArray:
    scales = known.evidence.noise_scales()
    return np.where(np.isnan(scales), np.inf, 2.0 * scales)


class MFLUCB(Race):
    """LUCB with a choice of fidelities (Wang et al. 2023, Algorithm 1).

    Every arm's target mean has bounds from all fidelities at which it was seen: LCB is the largest
    mean - radius - xi_m, UCB the smallest mean + radius + xi_m (Eq. 4 and 5). The arms with the two
    largest UCB are pulled in turn until LCB of the first is within epsilon of UCB of the second. An
    arm whose UCB is below some LCB is out.

    Parameters
    ----------
    problem
        See `Race`. The bias bounds must be of kind "max", or None (else ValueError).
    explore
        See `mfhpo.racing.options.MFLUCBOptions`.
    best_at_most, second_at_least
        Bounds on the means of the best and the second-best arm at the target, for A and B. None:
        what the race has found so far. They choose fidelities only: no certificate rests on them.

    Notes
    -----
    A fidelity that cannot tell the two leading arms apart is left for the next dearer one; so is
    one that has cost 16 times what the target would. By the published rule, a race may never end.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        explore: Explore = "C",
        best_at_most: float | None = None,
        second_at_least: float | None = None,
        **options: Any,
    ) -> None:
        rule = Lucb(problem, explore, best_at_most, second_at_least)
        super().__init__(problem, rule, **options)
