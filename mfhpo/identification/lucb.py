"""LUCB across fidelities: the two leading arms are explored until they are told apart.

Paper 002 (Wang, Wu, Chen and Lui, "Multi-Fidelity Multi-Armed Bandits Revisited", NeurIPS 2023).
"""

import math
import warnings
from typing import Any

import numpy as np

from mfhpo._validation import check_choice, check_finite
from mfhpo.identification.best_arm import BestArmPolicy, only_steers
from mfhpo.identification.explore import (
    BY_INDEX,
    BY_RADIUS,
    BY_SWEEP,
    INDEX_AND_SWEEP,
    NOT_COMMITTED,
    TARGET_ONLY,
    Cells,
    Rules,
    commit_both,
    explored,
    out_of_the_race,
    target_bounds,
    top_two,
    usable_fidelities,
    weight_of_a_pull,
)
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.problem import Problem, Pull
from mfhpo.racing.answer import surest_by
from mfhpo.racing.options import Explore

_EXPLORE = {"A": BY_INDEX, "B": BY_SWEEP, "C": BY_RADIUS, "AB": INDEX_AND_SWEEP, "top": TARGET_ONLY}


class FidelityExhaustedWarning(UserWarning):
    """A cheap fidelity that the race would have gone on with cannot, or may not, decide it."""


class MFLUCB(BestArmPolicy):
    """LUCB with a choice of fidelities (Wang et al. 2023, Algorithm 1).

    Every arm's target mean has bounds from all fidelities at which it was seen: LCB is the largest
    mean - radius - xi_m, UCB the smallest mean + radius + xi_m (Eq. 4 and 5). The arms with the two
    largest UCB are pulled in turn until LCB of the first is within epsilon of UCB of the second. An
    arm whose UCB is below some LCB is out.

    Parameters
    ----------
    problem
        See `BestArmPolicy`. The bias bounds must be of kind "max", or None.
    explore
        See `mfhpo.racing.options.MFLUCBOptions`. "A" is EXPLORE-A: a race in which cheap fidelities
        tell nothing can cost many times what "top" does.
    best_at_most
        An upper bound on the mean of the best arm at the target, for A and B. None: the bound that
        the race has found so far. It chooses fidelities only: no certificate rests on it.
    second_at_least
        A lower bound on the mean of the second-best arm at the target, likewise.

    Raises
    ------
    ValueError
        For arguments out of range, and order bounds.

    Notes
    -----
    A fidelity that cannot tell the two leading arms apart is left for the next dearer one, with a
    `FidelityExhaustedWarning`; so is one that has cost 16 times what the target would need to
    resolve its bias. By the published rule, a race may never end.
    """

    _safeguard = True  # whether fidelities are left like this

    _saved = (*BestArmPolicy._saved, "_explorations", "_committed", "_exhausted")
    _certificate_reason = "its lower bound is within epsilon of every other arm's upper bound"

    def __init__(
        self,
        problem: Problem,
        *,
        explore: Explore = "C",
        best_at_most: float | None = None,
        second_at_least: float | None = None,
        **options: Any,
    ) -> None:
        check_choice("explore", explore, _EXPLORE)
        check_finite("best_at_most", best_at_most)
        check_finite("second_at_least", second_at_least)
        highest = math.inf if best_at_most is None else best_at_most
        if highest <= (-math.inf if second_at_least is None else second_at_least):
            raise ValueError(
                f"best_at_most={best_at_most!r} must exceed second_at_least={second_at_least!r}: "
                f"they bound the best and the second-best mean."
            )
        steers = only_steers(problem, options.get("estimated_bias", "steer"))
        if explore != "top" and problem.bias is not None and problem.bias.kind != "max":
            raise ValueError(
                "bias: LUCB needs bounds on every arm's own bias; declare Bias.max(...), or race "
                "with IISE, which takes order bounds."
            )
        self._explore = TARGET_ONLY if steers else _EXPLORE[explore]
        self._best_at_most = math.nan if best_at_most is None else float(best_at_most)
        self._second_at_least = math.nan if second_at_least is None else float(second_at_least)
        self._explorations = 0
        self._committed: IntArray = np.full(problem.n_arms, NOT_COMMITTED, dtype=np.int64)
        self._exhausted: BoolArray = np.zeros(problem.n_fidelities, dtype=bool)
        super().__init__(problem, **options)

    @property
    def _target_only(self) -> bool:
        return self._explore == TARGET_ONLY

    def _plan(self) -> None:
        assert self.bias is not None
        assert self._planned_costs is not None
        n_cells = self.problem.n_arms * self.problem.n_fidelities
        self._rules = Rules(
            explore=self._explore,
            bounds=np.array(self.bias.bounds),
            roots=np.sqrt(self._planned_costs),
            usable=usable_fidelities(self._planned_costs),
            scales=self._scales(),
            best_at_most=self._best_at_most,
            second_at_least=self._second_at_least,
            logarithm=math.log(4.0 / (self._evidence.noise.delta / n_cells)),
            epsilon=self.epsilon,
            safeguard=self._safeguard,
        )

    def _scales(self) -> FloatArray:
        scales = self._evidence.noise_scales()
        return np.where(np.isnan(scales), np.inf, 2.0 * scales)

    def _current_rules(self) -> Rules:
        return self._rules._replace(scales=self._scales())

    def _cells(self, counts: IntArray | None = None) -> Cells:
        seen = self._evidence.counts
        if counts is None:
            counts = seen
        arms = np.arange(len(seen))
        compared = list(self._compared_fidelities())
        means, radii = np.zeros(seen.shape), np.full(seen.shape, np.inf)
        means[:, compared] = self._evidence.all_means(arms)[:, compared]
        for m in compared:
            radii[:, m] = self._evidence.half_widths(arms, m, counts[:, m])
        radii[seen == 0] = np.inf
        return Cells(counts, seen, means, radii)

    def _take_note(self, arm: int) -> None:
        if self._piloting:
            self._explorations += self.problem.n_fidelities
            return
        self._explorations += weight_of_a_pull(self._rules, int(self._committed[arm]))

    def _judge_all(self) -> None:
        self._judge(self.problem.target)

    def _judge(self, fidelity: int) -> None:
        active = self._roster.active
        if self.winner is not None or active.sum() < 2:
            return
        rules, cells = self._current_rules(), self._cells()
        lows, highs = target_bounds(cells, rules.bounds, active)
        best, gone = out_of_the_race(lows, highs, active)
        if gone.any():
            self._roster.eliminate(np.flatnonzero(gone), best)
            lows[gone] = highs[gone] = -np.inf
        if active.sum() < 2:
            return
        leader, rival = top_two(highs, cells.counts)
        if lows[leader] >= highs[rival] - rules.epsilon:
            self._certificate = leader
            return
        commit_both(rules, cells, lows, highs, (leader, rival), self._committed)
        exhausted = self._exhausted.copy()
        self._explored(cells, lows, highs, exhausted, self._explorations)
        self._note_exhausted(exhausted)

    def _note_exhausted(self, exhausted: BoolArray) -> None:
        for m in np.flatnonzero(exhausted & ~self._exhausted).tolist():
            self._exhausted[m] = True
            warnings.warn(
                f"{self.labels.fidelity(m)} is left for the next dearer one: its bias of up to "
                f"{self._rules.bounds[m]:.4g} is too large to tell the leading arms apart there at "
                f"a reasonable cost. The certificate is as good, but a cheaper race may be had "
                f"with smaller bias bounds if they hold, with closer bounds on the two best means, "
                f"or with explore='C'",
                FidelityExhaustedWarning,
                stacklevel=5,
            )

    def _race_pull(self, counts: IntArray, arms: IntArray) -> Pull:
        cells = self._cells(counts)
        lows, highs = target_bounds(cells, self._rules.bounds, self._roster.active)
        under_way = sum(
            int(number) * weight_of_a_pull(self._rules, int(self._committed[arm]))
            for arm, number in enumerate((counts - cells.seen).sum(axis=1))
        )
        explorations = self._explorations + under_way
        return Pull(*self._explored(cells, lows, highs, self._exhausted.copy(), explorations))

    def _explored(
        self,
        cells: Cells,
        lows: FloatArray,
        highs: FloatArray,
        exhausted: BoolArray,
        explorations: int,
    ) -> tuple[int, int]:
        arms = top_two(highs, cells.counts)
        return explored(
            self._current_rules(),
            cells,
            lows,
            highs,
            arms,
            self._committed,
            exhausted,
            explorations,
        )

    def _explored_fidelity(self) -> int:
        pull = self._next_pull(self._evidence.counts)
        return self.problem.target if pull is None else pull.fidelity

    def _surest_arm(self) -> int:
        if self._piloting:
            return super()._surest_arm()
        lows, _ = target_bounds(self._cells(), self._rules.bounds, self._roster.active)
        return surest_by(lows[self.active], self._evidence, self.active)

    def _assumptions(self) -> tuple[str, ...]:
        parts = super()._assumptions()
        if self._explore not in (BY_INDEX, BY_SWEEP, INDEX_AND_SWEEP):
            return parts
        assumed = {
            "an upper bound on the best mean": self._best_at_most,
            "a lower bound on the second-best mean": self._second_at_least,
        }
        absent = [words for words, value in assumed.items() if math.isnan(value)]
        if not absent:
            return parts
        return (
            *parts,
            f"{' and '.join(absent)}: estimated as the race went; that only chose fidelities, the "
            f"certificate does not rest on it",
        )
