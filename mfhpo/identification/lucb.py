"""LUCB across fidelities: the two leading arms are explored until they are told apart.

Paper 002 (Wang, Wu, Chen and Lui, "Multi-Fidelity Multi-Armed Bandits Revisited", NeurIPS 2023).
"""

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from mfhpo._validation import check_choice, check_finite, check_flag, check_probability
from mfhpo.identification.best_arm import BestArmPolicy, only_steers
from mfhpo.identification.bounds.published_radius import PublishedRadius, published_radii
from mfhpo.identification.explore import (
    BY_INDEX,
    BY_RADIUS,
    BY_SWEEP,
    HELPERS,
    INDEX_AND_SWEEP,
    NOT_COMMITTED,
    PULLS,
    ROUNDS,
    TARGET_ONLY,
    commit_both,
    explored,
    out_of_the_race,
    run_race,
    target_bounds,
    time_of,
    top_two,
    usable_fidelities,
    weight_of_a_pull,
)
from mfhpo.identification.lucb_state import Cells, Race, Rules
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.problem import Problem, Pull
from mfhpo.racing.answer import surest_by
from mfhpo.racing.native import compiled
from mfhpo.racing.options import Explore, Schedule

_EXPLORE = {"A": BY_INDEX, "B": BY_SWEEP, "C": BY_RADIUS, "AB": INDEX_AND_SWEEP, "top": TARGET_ONLY}
_SCHEDULES = {None: 0, "pulls": PULLS, "rounds": ROUNDS}

# Values that `play` keeps ahead: in all (about), and for an arm at a fidelity at least and at most.
_TAPE, _SHORTEST_TAPE, _LONGEST_TAPE = 1 << 20, 16, 4096


class FidelityExhaustedWarning(UserWarning):
    """A cheap fidelity that the race would have gone on with cannot, or may not, decide it."""


# Arm, fidelity, number of its values so far, their sum, and how many values to add; gives the sum
# after each of these, shape (count,).
ArmRunningSums: TypeAlias = Callable[[int, int, int, float, int], FloatArray]


class MFLUCB(BestArmPolicy):
    """LUCB with a choice of fidelities (Wang et al. 2023, Algorithm 1).

    Every arm's target mean has bounds from all fidelities at which it was seen: LCB is the largest
    mean - radius - xi_m, UCB the smallest mean + radius + xi_m (Eq. 4 and 5). The arm with the
    largest UCB and the one with the second-largest are pulled in turn until LCB of the former is
    within epsilon of UCB of the latter. An arm whose UCB is below some LCB is out.

    Parameters
    ----------
    problem, **options
        See `BestArmPolicy`. The bias bounds must be of kind "max", or None.
    explore
        How a fidelity is chosen for an arm; see `mfhpo.racing.options.MFLUCBOptions`. "A" is
        EXPLORE-A: a race in which cheap fidelities tell nothing can cost many times what "top"
        does. Of 20 with three arms .1 apart, all equal at a fidelity that cost 100 times less, the
        median cost 1.3 times as much, and one 17 times as much as the mean of "top"; the mean of
        the others was at most 1.2 times that.
    best_at_most, second_at_least
        An upper bound on the mean of the best arm and a lower bound on that of the second-best, at
        the target, for A and B. None: the bounds that the race has found so far. They choose
        fidelities only: no certificate rests on them.
    ratio, schedule, safeguard
        See `MFLUCBOptions`. The ratio is the C of Remark A.2. With a published schedule, every arm
        is first pulled once at every fidelity, as in the paper. The safeguard also leaves a
        fidelity that has cost 16 times what the target would need to resolve its bias.

    Raises
    ------
    ValueError
        For arguments out of range, order bounds, or a schedule without a declared noise scale.
    """

    _saved = (*BestArmPolicy._saved, "_explorations", "_committed", "_exhausted")
    _certificate_reason = "its lower bound is within epsilon of every other arm's upper bound"

    def __init__(
        self,
        problem: Problem,
        *,
        explore: Explore = "C",
        best_at_most: float | None = None,
        second_at_least: float | None = None,
        ratio: float = 0.5,
        schedule: Schedule | None = None,
        safeguard: bool = True,
        **options: Any,
    ) -> None:
        check_choice("explore", explore, _EXPLORE)
        check_choice("schedule", schedule, _SCHEDULES)
        check_probability("ratio", ratio)
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
        self._factor = (1.0 + ratio) / (1.0 - ratio)
        self._schedule = _SCHEDULES[schedule]
        self._safeguard = check_flag("safeguard", safeguard)
        self._published: list[PublishedRadius] = []
        if schedule is not None:
            if options.get("radius") is not None:
                raise ValueError("radius and schedule exclude each other; leave one of them out.")
            self._published = published_radii(problem, self._explore == TARGET_ONLY)
            options = options | {"radius": self._published}
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
        target_only = self._explore == TARGET_ONLY and not self._published
        n_cells = self.problem.n_arms * (1 if target_only else self.problem.n_fidelities)
        self._level = self._evidence.noise.delta / n_cells
        self._rules = Rules(
            explore=self._explore,
            bounds=np.array(self.bias.bounds),
            roots=np.sqrt(self._planned_costs),
            usable=usable_fidelities(self._planned_costs),
            scales=self._scales(),
            best_at_most=self._best_at_most,
            second_at_least=self._second_at_least,
            factor=self._factor,
            logarithm=math.log(4.0 / self._level),
            epsilon=self.epsilon,
            safeguard=self._safeguard,
            schedule=self._schedule,
        )
        self._set_time()

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
        self._set_time()

    def _set_time(self) -> None:
        for radius in self._published:
            radius.time = (
                1.0 if self._piloting else time_of(self._rules, self.pulls, self._explorations)
            )

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
        explored(
            rules,
            cells,
            lows,
            highs,
            (leader, rival),
            active,
            self._committed,
            exhausted,
            self._explorations,
        )
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
        rules, cells = self._current_rules(), self._cells(counts)
        active = self._roster.active
        lows, highs = target_bounds(cells, rules.bounds, active)
        under_way = sum(
            int(number) * weight_of_a_pull(rules, int(self._committed[arm]))
            for arm, number in enumerate((counts - cells.seen).sum(axis=1))
        )
        arm, fidelity = explored(
            rules,
            cells,
            lows,
            highs,
            top_two(highs, counts),
            active,
            self._committed,
            self._exhausted.copy(),
            self._explorations + under_way,
        )
        return Pull(arm, fidelity)

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

    # Whole races, for simulations.

    def play(self, running_sums: ArmRunningSums, max_pulls: int | None = None) -> None:
        """Run the race to its end: the same as asking and telling one pull at a time, but fast.

        The loop is compiled where numba is installed. The bias bounds are audited once, at the end,
        or after `max_pulls` in all; what contradicts them, the next call goes on with. A ValueError
        says that a pilot is needed, costs are measured, the radius depends on the values, or there
        is a budget: then use `ask` and `tell`.
        """
        if self._piloting or self._evidence.depends_on_values or self.problem.costs is None:
            raise ValueError(
                "play needs declared bias, costs, epsilon and noise, and a radius that does not "
                "depend on the values; use ask and tell."
            )
        if math.isfinite(self.budget):
            raise ValueError(f"play needs budget=None, got {self.budget:g}; use ask and tell.")
        self._waits_for_audit = False  # sums do not show the spread that it compares
        if self.winner is not None or not self.active.size:
            return
        n_arms, n_fidelities = self._evidence.counts.shape
        arms = np.arange(n_arms)
        start = self._evidence.counts.copy()
        origin = np.stack([self._evidence.sums(arms, m) for m in range(n_fidelities)], axis=1)
        length = min(_LONGEST_TAPE, max(_SHORTEST_TAPE, _TAPE // start.size))
        cells = self._cells(start.copy())
        race = Race(
            cells=cells._replace(seen=cells.counts),
            active=self._roster.active.copy(),
            by=np.full(n_arms, -1, dtype=np.int64),
            committed=self._committed.copy(),
            exhausted=self._exhausted.copy(),
            clock=np.array([self.pulls, self._explorations]),
            widths=self._radii_by_count(int(start.max()) + length),
            tape=np.zeros((n_arms, n_fidelities, length)),
            start=start,
            ready=np.zeros_like(start),
        )
        counts = race.cells.counts
        run = compiled(run_race, *HELPERS)
        most = math.inf if max_pulls is None else float(max_pulls)
        while True:
            arm, m = run(self._rules, race, self._level, most)
            if arm < 0:
                break
            count = int(counts[arm, m])
            if count + 1 >= race.widths.shape[1]:
                race = race._replace(widths=self._radii_by_count(2 * count + length))
            if count - start[arm, m] >= race.ready[arm, m]:
                if count > start[arm, m]:
                    origin[arm, m] = race.tape[arm, m, count - start[arm, m] - 1]
                ready = min(length, max(_SHORTEST_TAPE, count))
                race.tape[arm, m, :ready] = running_sums(
                    arm, m, count, float(origin[arm, m]), ready
                )
                start[arm, m], race.ready[arm, m] = count, ready
        self._tell_played(race, origin)
        if m >= 0 and self._certificate is None:
            self._certificate = int(m)
        for fidelity in range(n_fidelities):
            self._audit_bias(fidelity)
        self._judge_all()

    def _radii_by_count(self, most: int) -> FloatArray:
        """The radius after 0, 1, ..., `most` values, shape (M, most + 1), without `growth`."""
        counts = np.arange(most + 1)
        widths = np.full((self.problem.n_fidelities, most + 1), np.inf)
        for m in self._compared_fidelities():
            if self._published:
                widths[m, 1:] = self._published[m].at_time_0(counts[1:])
            else:
                widths[m] = self._evidence.radius_after(counts, m)
        return widths

    def _tell_played(self, race: Race, origin: FloatArray) -> None:
        counts = race.cells.counts
        arms = np.arange(len(counts))
        sums = origin.copy()
        fresh = np.nonzero(counts > race.start)
        last = (*fresh, counts[fresh] - race.start[fresh] - 1)
        sums[fresh] = race.tape[last]
        for m in range(counts.shape[1]):
            self._take_sums(arms, m, counts[:, m], sums[:, m])
        self._explorations = int(race.clock[1])
        self._set_time()
        gone = self._roster.active & ~race.active
        if gone.any():
            self._roster.eliminate(np.flatnonzero(gone), race.by[gone])
        self._committed = race.committed
        self._note_exhausted(race.exhausted)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state (see `Policy.load_state_dict`)."""
        super().load_state_dict(state)
        self._set_time()
