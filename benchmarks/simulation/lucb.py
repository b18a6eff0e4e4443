"""Races of LUCB to their end, fast, and the radius that it was published with."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from benchmarks.simulation.compiled import compiled
from benchmarks.simulation.lucb_loop import HELPERS, PULLS, ROUNDS, Race, run_race, time_of, unseen
from benchmarks.simulation.published_radius import published_radii
from benchmarks.simulation.sums import needs_values, radius_after, take_sums
from mfhpo.identification.best_arm import only_steers
from mfhpo.identification.explore import Cells
from mfhpo.identification.lucb import MFLUCB
from mfhpo.knowledge.arrays import BoolArray, FloatArray
from mfhpo.problem import Problem

_SCHEDULES = {"pulls": PULLS, "rounds": ROUNDS}

# Values that `play` keeps ahead: in all (about), and for an arm at a fidelity at least and at most.
_TAPE, _SHORTEST_TAPE, _LONGEST_TAPE = 1 << 20, 16, 4096

# Arm, fidelity, number of its values so far, their sum, and how many values to add; gives the sum
# after each of these, shape (count,).
ArmRunningSums: TypeAlias = Callable[[int, int, int, float, int], FloatArray]


class PublishedLUCB(MFLUCB):
    """LUCB with the published radius, which grows with the number of pulls or rounds.

    Every arm is first pulled once at every fidelity, as in the paper, and no fidelity is left for
    not telling the two leading arms apart, so that a race may never end.

    Parameters
    ----------
    problem, **options
        See `MFLUCB`; the noise scale must be declared.
    schedule
        What the time in the radius counts.
    """

    _safeguard = False

    def __init__(
        self, problem: Problem, *, schedule: Literal["pulls", "rounds"], **options: Any
    ) -> None:
        if schedule not in _SCHEDULES:
            raise ValueError(f"schedule must be 'pulls' or 'rounds', got {schedule!r}.")
        self._schedule = _SCHEDULES[schedule]
        steers = only_steers(problem, options.get("estimated_bias", "steer"))
        target_only = steers or options.get("explore") == "top"
        self._published = published_radii(problem, target_only)
        super().__init__(problem, radius=self._published, **options)

    def _plan(self) -> None:
        super()._plan()
        self._set_time()

    def _take_note(self, arm: int) -> None:
        super()._take_note(arm)
        self._set_time()

    def _set_time(self) -> None:
        for radius in self._published:
            radius.time = 1.0
            if not self._piloting:
                radius.time = time_of(self._rules, self._schedule, self.pulls, self._explorations)
        self._evidence._is_stale[:] = True

    def _explored(
        self,
        cells: Cells,
        lows: FloatArray,
        highs: FloatArray,
        exhausted: BoolArray,
        explorations: int,
    ) -> tuple[int, int]:
        if cells.counts.min() == 0:
            arm, fidelity = unseen(self._rules, cells.counts, self._roster.active)
            if arm >= 0:
                return arm, fidelity
        return super()._explored(cells, lows, highs, exhausted, explorations)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state (see `Policy.load_state_dict`)."""
        super().load_state_dict(state)
        self._set_time()


def play(policy: MFLUCB, running_sums: ArmRunningSums, max_pulls: int | None = None) -> None:
    """Run the race to its end: the same as asking and telling one pull at a time, but fast.

    The loop is compiled where numba is installed. The bias bounds are audited once, at the end,
    or after `max_pulls` in all; what contradicts them, the next call goes on with. A ValueError
    says that a pilot is needed, costs are measured, the radius depends on the values, or there
    is a budget: then use `ask` and `tell`.
    """
    if needs_values(policy):
        raise ValueError(
            "play needs declared bias, costs, epsilon and noise, and a radius that does not "
            "depend on the values; use ask and tell."
        )
    if math.isfinite(policy.budget):
        raise ValueError(f"play needs budget=None, got {policy.budget:g}; use ask and tell.")
    policy._waits_for_audit = False  # sums do not show the spread that it compares
    if policy.winner is not None or not policy.active.size:
        return
    n_arms, n_fidelities = policy._evidence.counts.shape
    arms = np.arange(n_arms)
    start = policy._evidence.counts.copy()
    origin = np.stack([policy._evidence.sums(arms, m) for m in range(n_fidelities)], axis=1)
    length = min(_LONGEST_TAPE, max(_SHORTEST_TAPE, _TAPE // start.size))
    cells = policy._cells(start.copy())
    race = Race(
        cells=cells._replace(seen=cells.counts),
        active=policy._roster.active.copy(),
        by=np.full(n_arms, -1, dtype=np.int64),
        committed=policy._committed.copy(),
        exhausted=policy._exhausted.copy(),
        clock=np.array([policy.pulls, policy._explorations]),
        widths=_radii_by_count(policy, int(start.max()) + length),
        tape=np.zeros((n_arms, n_fidelities, length)),
        start=start,
        ready=np.zeros_like(start),
    )
    counts = race.cells.counts
    run = compiled(run_race, *HELPERS)
    most = math.inf if max_pulls is None else float(max_pulls)
    schedule = policy._schedule if isinstance(policy, PublishedLUCB) else 0
    level = policy._evidence.noise.delta / start.size
    while True:
        arm, m = run(policy._rules, race, schedule, level, most)
        if arm < 0:
            break
        count = int(counts[arm, m])
        if count + 1 >= race.widths.shape[1]:
            race = race._replace(widths=_radii_by_count(policy, 2 * count + length))
        if count - start[arm, m] >= race.ready[arm, m]:
            if count > start[arm, m]:
                origin[arm, m] = race.tape[arm, m, count - start[arm, m] - 1]
            ready = min(length, max(_SHORTEST_TAPE, count))
            race.tape[arm, m, :ready] = running_sums(arm, m, count, float(origin[arm, m]), ready)
            start[arm, m], race.ready[arm, m] = count, ready
    _tell_played(policy, race, origin)
    if m >= 0 and policy._certificate is None:
        policy._certificate = int(m)
    for fidelity in range(n_fidelities):
        policy._audit_bias(fidelity)
    policy._judge_all()


def _radii_by_count(policy: MFLUCB, most: int) -> FloatArray:
    """The radius after 0, 1, ..., `most` values, shape (M, most + 1), without `growth`."""
    counts = np.arange(most + 1)
    widths = np.full((policy.problem.n_fidelities, most + 1), np.inf)
    for m in policy._compared_fidelities():
        if isinstance(policy, PublishedLUCB):
            widths[m, 1:] = policy._published[m].at_time_0(counts[1:])
        else:
            widths[m] = radius_after(policy, counts, m)
    return widths


def _tell_played(policy: MFLUCB, race: Race, origin: FloatArray) -> None:
    counts = race.cells.counts
    arms = np.arange(len(counts))
    sums = origin.copy()
    fresh = np.nonzero(counts > race.start)
    last = (*fresh, counts[fresh] - race.start[fresh] - 1)
    sums[fresh] = race.tape[last]
    for m in range(counts.shape[1]):
        take_sums(policy, arms, m, counts[:, m], sums[:, m])
    policy._explorations = int(race.clock[1])
    if isinstance(policy, PublishedLUCB):
        policy._set_time()
    gone = policy._roster.active & ~race.active
    if gone.any():
        policy._roster.eliminate(np.flatnonzero(gone), race.by[gone])
    policy._committed = race.committed
    policy._note_exhausted(race.exhausted)
