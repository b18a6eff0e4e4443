"""Races of LUCB to their end, fast, and the radius that it was published with."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from benchmarks.simulation.compiled import compiled
from benchmarks.simulation.lucb_loop import (
    HELPERS,
    PULLS,
    ROUNDS,
    Played,
    run_race,
    time_of,
    unseen,
)
from benchmarks.simulation.published_radius import PublishedRadius, published_radii
from benchmarks.simulation.sums import needs_values, radius_after, take_sums
from mfhpo.identification.lucb import Lucb
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.problem import Problem, Pull
from mfhpo.racing.options import Explore
from mfhpo.racing.race import Race, only_steers
from mfhpo.racing.rule import Expected, Known

_SCHEDULES = {"pulls": PULLS, "rounds": ROUNDS}

# Values that `play` keeps ahead: in all (about), and for an arm at a fidelity at least and at most.
_TAPE, _SHORTEST_TAPE, _LONGEST_TAPE = 1 << 20, 16, 4096

# Arm, fidelity, number of its values so far, their sum, and how many values to add; gives the sum
# after each of these, shape (count,).
ArmRunningSums: TypeAlias = Callable[[int, int, int, float, int], FloatArray]


class PublishedRule:
    """The rule of LUCB, with a radius whose time moves on.

    Attributes
    ----------
    lucb, radii, schedule
        The rule that decides, the radius of every fidelity, and what their time counts.
    """

    def __init__(self, lucb: Lucb, radii: Sequence[PublishedRadius], schedule: int) -> None:
        self.lucb = lucb
        self.radii = radii
        self.schedule = schedule
        self.needs = replace(lucb.needs, note=self.note)
        self.verdict = lucb.verdict

    def plan(self, known: Known) -> None:
        """See `Rule.plan`."""
        self.lucb.plan(known)
        self.set_time(known)

    def propose(self, known: Known, expected: Expected) -> Pull:
        """Return the first usable pair without a pull, or what the rule wants."""
        arm, fidelity = unseen(self.lucb.rules, expected.counts, known.roster.active)
        return Pull(arm, fidelity) if arm >= 0 else self.lucb.propose(known, expected)

    def note(self, known: Known, arm: int) -> None:
        """See `Needs.note`."""
        self.lucb.note(known, arm)
        self.set_time(known)

    def set_time(self, known: Known) -> None:
        """Let the radii know the time."""
        lucb = self.lucb
        for radius in self.radii:
            radius.time = 1.0
            if not known.piloting:
                radius.time = time_of(lucb.rules, self.schedule, known.pulls, lucb.explorations)


class PublishedLUCB(Race):
    """LUCB with the published radius, which grows with the number of pulls or rounds.

    Every arm is first pulled once at every fidelity, as in the paper, and no fidelity is left for
    not telling the two leading arms apart, so that a race may never end.

    Parameters
    ----------
    problem, explore, best_at_most, second_at_least, **options
        See `MFLUCB`; the noise scale must be declared.
    schedule
        What the time in the radius counts.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        schedule: Literal["pulls", "rounds"],
        explore: Explore = "C",
        best_at_most: float | None = None,
        second_at_least: float | None = None,
        **options: Any,
    ) -> None:
        if schedule not in _SCHEDULES:
            raise ValueError(f"schedule must be 'pulls' or 'rounds', got {schedule!r}.")
        steers = only_steers(problem, options.get("estimated_bias", "steer"))
        radii = published_radii(problem, steers or explore == "top")
        lucb = Lucb(
            problem,
            explore,
            best_at_most,
            second_at_least,
            safeguard=False,
        )
        rule = PublishedRule(lucb, radii, _SCHEDULES[schedule])
        super().__init__(problem, rule, radius=radii, **options)


def play(policy: Race, running_sums: ArmRunningSums, max_pulls: int | None = None) -> None:
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
    policy.known.waits = False  # sums do not show the spread that it compares
    if policy.winner is not None or not policy.active.size:
        return
    lucb = _lucb_of(policy)
    n_arms, n_fidelities = policy.known.evidence.counts.shape
    arms = np.arange(n_arms)
    start = policy.known.evidence.counts.copy()
    origin = np.stack([policy.known.evidence.sums[arms, m] for m in range(n_fidelities)], axis=1)
    length = min(_LONGEST_TAPE, max(_SHORTEST_TAPE, _TAPE // start.size))
    cells = lucb.cells(policy.known, start.copy())
    race = Played(
        cells=cells._replace(seen=cells.counts),
        active=policy.known.roster.active.copy(),
        by=np.full(n_arms, -1, dtype=np.int64),
        committed=lucb.committed.copy(),
        clock=np.array([policy.pulls, lucb.explorations]),
        widths=_radii_by_count(policy, int(start.max()) + length),
        tape=np.zeros((n_arms, n_fidelities, length)),
        start=start,
        ready=np.zeros_like(start),
    )
    counts = race.cells.counts
    run = compiled(run_race, *HELPERS)
    most = math.inf if max_pulls is None else float(max_pulls)
    schedule = policy.rule.schedule if isinstance(policy.rule, PublishedRule) else 0
    level = policy.known.evidence.noise.delta / start.size
    while True:
        arm, m = run(lucb.rules, race, schedule, level, most)
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
    if m >= 0 and policy.known.certified is None:
        policy.known.certified = int(m)
    for fidelity in range(n_fidelities):
        policy.course.audit_bias(fidelity)
    policy.course.judge(policy.problem.target)


def _lucb_of(policy: Race) -> Lucb:
    rule = policy.rule
    if isinstance(rule, PublishedRule):
        return rule.lucb
    assert isinstance(rule, Lucb)
    return rule


def _radii_by_count(policy: Race, most: int) -> FloatArray:
    """The radius after 0, 1, ..., `most` values, shape (M, most + 1), without `growth`."""
    counts = np.arange(most + 1)
    widths = np.full((policy.problem.n_fidelities, most + 1), np.inf)
    for m in policy.known.compared:
        if isinstance(policy.rule, PublishedRule):
            widths[m, 1:] = policy.rule.radii[m].at_time_0(counts[1:])
        else:
            widths[m] = radius_after(policy, counts, m)
    return widths


def _tell_played(policy: Race, race: Played, origin: FloatArray) -> None:
    counts = race.cells.counts
    arms = np.arange(len(counts))
    sums = origin.copy()
    fresh = np.nonzero(counts > race.start)
    last = (*fresh, counts[fresh] - race.start[fresh] - 1)
    sums[fresh] = race.tape[last]
    for m in range(counts.shape[1]):
        take_sums(policy, arms, m, counts[:, m], sums[:, m])
    lucb = _lucb_of(policy)
    lucb.explorations = int(race.clock[1])
    if isinstance(policy.rule, PublishedRule):
        policy.rule.set_time(policy.known)
    gone = policy.known.roster.active & ~race.active
    if gone.any():
        policy.known.roster.eliminate(np.flatnonzero(gone), race.by[gone])
    lucb.committed = race.committed
