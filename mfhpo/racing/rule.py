"""The contract between a race and the rule that decides it: propose pulls, give verdicts.

A rule decides, nothing else. The race (`mfhpo.racing.race`) keeps the evidence, the roster,
failures and costs, pilots what is not declared, measures the winner and words the answer.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.bias import Bias, Kind
from mfhpo.problem import Labels, Observation, Problem, Pull, Recommendation
from mfhpo.racing.evidence import Evidence, surest_arm

# A race in which so many repeats, and one for each arm, were all equal will never tell arms apart.
_REPEATS_TO_SEE_NOISE = 10


class Roster:
    """Which of K arms are active, eliminated (by a comparison) or withdrawn (without one).

    An elimination remembers its grounds, so that it can be undone when they fall away. Of masks
    (K,), `merged` left as the repeat of another arm, `ruled_out` was eliminated for good as its
    mean is -inf, `led` was withdrawn for its failures while nobody was seen to be better.
    """

    def __init__(self, n_arms: int) -> None:
        self.active: BoolArray = np.ones(n_arms, dtype=bool)
        self.withdrawn: BoolArray = np.zeros(n_arms, dtype=bool)
        self.merged, self.ruled_out, self.led = (self.withdrawn.copy() for _ in range(3))
        self.failures: IntArray = np.zeros(n_arms, dtype=np.int64)  # in a row, where it counts
        self._exit_fidelity: IntArray = np.full(n_arms, -1, dtype=np.int64)
        self._exit_by: IntArray = np.full(n_arms, -1, dtype=np.int64)
        self._exit_excess: FloatArray = np.zeros(n_arms)

    def eliminate(
        self,
        arms: IntArray,
        by: IntArray | int,
        fidelity: int = -1,
        excess: FloatArray | float = 0.0,
    ) -> None:
        """Note that `by` was found to be better than these arms."""
        self.active[arms] = False
        self._exit_fidelity[arms] = fidelity
        self._exit_by[arms] = by
        self._exit_excess[arms] = excess

    def withdraw(self, arm: int) -> None:
        """Take an arm out for good, and put back the arms that it had eliminated."""
        self.withdrawn[arm] = True
        self._take_out(arm)

    def rule_out(self, arm: int) -> None:
        """Eliminate an arm whose mean is -inf, and put back the arms that it had eliminated."""
        self.ruled_out[arm] = True
        self._take_out(arm)

    def _take_out(self, arm: int) -> None:
        self.active[arm] = False
        self._restore(self._exit_by == arm)

    def merge(self, arm: int, into: int) -> None:
        """Take an arm out that is the same as another; what it had eliminated stays eliminated.

        It comes back if the other one was withdrawn; so do arms that would eliminate each other.
        """
        self.merged[arm] = True
        self.active[arm] = False
        beaten = self._exit_by == arm
        self._exit_by[beaten] = into
        if self.withdrawn[into]:
            self._restore(beaten)
            return
        better, line = int(self._exit_by[into]), [into]
        while better not in (-1, *line):
            line.append(better)
            better = int(self._exit_by[better])
        if better == into:
            self._restore(np.isin(np.arange(len(beaten)), line))

    def rivals(self, arm: int) -> IntArray:
        """Return the other arms that were not taken out without a comparison, shape (n,)."""
        others = ~(self.withdrawn | self.merged)
        others[arm] = False
        return np.flatnonzero(others)

    def beaten_by(self, arm: int) -> int | None:
        """Return the arm that was found to be better than an eliminated one, if one was."""
        by = int(self._exit_by[arm])
        return None if by < 0 else by

    @property
    def is_lonely(self) -> bool:
        """True if arms left, all of them without a comparison."""
        return bool(self.withdrawn.any() and not self.eliminated.any())

    @property
    def eliminated(self) -> BoolArray:
        """Which arms were eliminated by a comparison, shape (K,)."""
        return ~(self.active | self.withdrawn | self.merged)

    def restore_unsupported(self, margins: FloatArray) -> None:
        """Put back the arms whose elimination does not exceed the margins of its level, (M,)."""
        at = self._exit_fidelity
        self._restore((at < 0) | (self._exit_excess < margins[np.maximum(at, 0)]))

    def restore_eliminated(self) -> None:
        """Put back all arms that were eliminated by a comparison."""
        self._restore(np.ones(len(self.active), dtype=bool))

    def _restore(self, chosen: BoolArray) -> None:
        back = chosen & self.eliminated & ~self.ruled_out
        self.active[back] = True
        self._exit_fidelity[back] = -1
        self._exit_by[back] = -1


class Costs:
    """The costs of a race, declared or measured, its `budget` (or infinity), and what was paid.

    Costs that are known are added up in `sums`, and their number is in `counts`, shape (M,).
    """

    def __init__(self, problem: Problem, budget: float | None) -> None:
        self.budget = math.inf if budget is None else budget
        self.paid = 0.0
        self.sums: FloatArray = np.zeros(problem.n_fidelities)
        self.counts: IntArray = np.zeros(problem.n_fidelities, dtype=np.int64)
        self._declared = problem.costs

    def all(self) -> FloatArray:
        """Return costs of pulls, (M,): declared, or the mean of what was paid (0 at first)."""
        if self._declared is not None:
            return np.array(self._declared)
        return np.asarray(self.sums / np.maximum(1, self.counts))

    def of(self, fidelity: int) -> float:
        """Return the cost of a pull at a fidelity."""
        return float(self.all()[fidelity])

    def known(self, fidelity: int, observation: Observation) -> float | None:
        """Return the cost of a pull, None if nobody knows, as for a dead worker; or ValueError."""
        if observation.cost is not None:
            return float(observation.cost)
        if self._declared is not None:
            return self._declared[fidelity]
        if observation.has_value:
            raise ValueError("cost=None: the problem's costs are measured; tell what was paid.")
        return None

    def pay(self, fidelity: int, cost: float | None) -> None:
        """Pay for a pull; None: its cost is not known."""
        self.paid += self.of(fidelity) if cost is None else cost
        if cost is not None:
            self.sums[fidelity] += cost
            self.counts[fidelity] += 1

    def to_plan_with(self) -> FloatArray:
        """Return the costs to plan with, shape (M,): later measurements must not move a plan."""
        paid = self.all()
        # A coarse clock measures 0; a fidelity must not be pulled for ever for being free.
        paid[paid == 0.0] = 1e-3 * paid.max() if paid.any() else 1.0
        return paid


@dataclass(frozen=True)
class Needs:
    """The needs of a rule, which the race that runs it meets."""

    # What a certificate rests on that is given while several arms are left, in words; of a rule
    # that certifies nothing, what it is for.
    reason: str
    certifies: bool = True
    target_only: bool = False  # whether only values at the target are evidence
    kind: Kind = "max"  # of bias bounds that are estimated
    variances: bool = False  # whether likelihood ratios decide beside intervals
    pilot: bool | None = None  # whether there is one; None: if something was not declared
    estimates_bias: bool | None = None  # whether it estimates the bias; None: if not declared
    pilot_at: tuple[int, ...] | None = None  # its fidelities; None: all that are compared
    judges_failures: bool = False  # whether to ask for a verdict after failures, too
    waits: bool = True  # whether a certificate waits for values that show what a few cannot
    proposes_to_the_end: bool = False  # whether the rule also proposes the pulls of a winner
    # Called with the arm of each value before anything is judged.
    note: Callable[["Known", int], None] = lambda known, arm: None
    # Returns the best arm so far.
    leader: Callable[["Known"], int] = lambda known: surest_arm(known.evidence, known.arms)
    # Returns the arm to be evaluated where it shows whether bias bounds hold; None: none yet.
    audited: Callable[[], int | None] = lambda: None
    # Returns what a winner lacks, given what it usually does.
    lacking: Callable[["Known", int, dict[int, int]], dict[int, int]] = lambda known, arm, usual: (
        usual
    )
    # Returns the evidence that is missing against others being better than an arm by epsilon, which
    # may be negative.
    falls_short: Callable[["Known", int, IntArray, float], float] | None = None
    # Returns count, mean and radius of an arm at the target, None: as usual.
    summary: Callable[["Known", int], tuple[int, float, float] | None] | None = None
    # Returns how many replicates a claim is about; None: they have no end.
    replicates: Callable[["Known"], int | None] = lambda known: None
    # Returns arms and blocks with a value that are to be evaluated once more.
    repeats: Callable[["Known"], list[tuple[int, int]]] = lambda known: []
    # Tells whether nothing about a claim is uncertain.
    is_exact: Callable[["Known"], bool] = lambda known: False
    # Tells whether it rests on a noise that equal values would hide.
    rests_on_noise: Callable[["Known"], bool] = lambda known: True
    # Says why there is nothing left to do; empty while there is.
    end: Callable[["Known"], str] = lambda known: ""
    # Returns the answer in the rule's words, given the usual one.
    words: Callable[["Known", Recommendation], Recommendation] = lambda known, usual: usual
    intake: "Intake | None" = None  # keeps values in blocks


@dataclass
class Known:
    """The knowledge that a rule decides by. The race alone changes it."""

    problem: Problem
    needs: Needs
    spending: Costs
    delta: float
    seed: int
    target_only: bool  # whether only values at the target are evidence
    compared: tuple[int, ...]  # the fidelities whose values are
    levels: slice  # the same
    evidence: Evidence
    roster: Roster
    bias: Bias | None  # the bounds in force; None before they are estimated
    bias_level: float  # the error probability of those that a pilot estimates
    found_epsilon: float | None  # the tolerance in force; None before it is found out
    piloting: bool
    audits_bias: bool  # whether values are compared with the bias bounds
    measure: int  # number of evaluations that the winner gets at the target
    waits: bool  # whether a certificate waits for values that show what a few cannot
    max_failures: int
    failures: IntArray  # pulls that failed, shape (K, M)
    stops: IntArray  # pulls that were stopped at a limit, shape (K, M)
    # Whether it waits for repeats that show whether a declared sigma is too small.
    waits_for_repeats: bool = True
    costs: FloatArray = field(default_factory=lambda: np.zeros(0))  # to plan with, shape (M,)
    labels: Labels = field(default_factory=Labels)
    certified: int | None = None  # the arm that a verdict certified
    n_pilot: int = 0  # number of the pilot's arms
    pulls: int = 0  # number of values
    told: int = 0  # how often values were told; a simulation tells many at once
    most_blocks: int | None = None  # how many replicates there are; None: as many as are wanted
    baseline: int | None = None  # the arm that is in use today
    duel: tuple[int, ...] = ()  # a winner and the baseline, if the race goes on with these alone

    @property
    def arms(self) -> IntArray:
        """The arms in the race, shape (n,)."""
        return np.flatnonzero(self.roster.active)

    @property
    def missing(self) -> IntArray:
        """The pulls without a value, shape (K, M): an arm that gives none cannot be compared."""
        return np.asarray(self.failures + self.stops)

    @property
    def epsilon(self) -> float:
        """The tolerance in force; 0 before it is found out."""
        return self.found_epsilon or 0.0

    @property
    def winner(self) -> int | None:
        """The arm that was certified, or the only one left after the pilot; or None."""
        if self.certified is not None or not self.needs.certifies:
            return self.certified
        arms = self.arms
        return int(arms[0]) if len(arms) == 1 and not self.piloting else None

    @property
    def threshold(self) -> float:
        """The least evidence against a single arm that counts: ln((K - 1) / delta)."""
        return math.log(max(1, self.problem.n_arms - 1) / self.delta)

    @property
    def hides_noise(self) -> bool:
        """True if enough repeats at a level were all equal, and say nothing about noise."""
        if not self.needs.certifies or not self.needs.rests_on_noise(self):
            return False
        noise, least = self.evidence.noise, max(_REPEATS_TO_SEE_NOISE, self.problem.n_arms)
        if not any(noise.is_estimated_at(m) and noise.is_hidden(m, least) for m in self.compared):
            return False
        # Coarse scores are often equal on a few replicates.
        of_each = int(self.evidence.counts[self.arms, self.problem.target].min(initial=least))
        return self.needs.intake is None or of_each >= _REPEATS_TO_SEE_NOISE

    @property
    def scale(self) -> float:
        """The standard deviation of values at the target; 0 if nothing is known."""
        return float(np.nan_to_num(self.evidence.noise.scale(self.problem.target)))


@dataclass
class Expected:
    """The counts once all pulls under way have given values.

    `counts` has shape (K, M), and is that of the evidence itself where nothing is under way.
    """

    counts: IntArray
    pulls: list[Pull] = field(default_factory=list)

    def add(self, pull: Pull) -> None:
        """Take in one more pull under way."""
        self.counts[pull.arm, pull.fidelity] += 1
        self.pulls.append(pull)


@dataclass(frozen=True)
class Verdict:
    """A finding of a rule. The race applies it before it asks for the next one."""

    eliminated: IntArray | None = None  # arms that leave, shape (n,)
    by: IntArray | int = -1  # who was found to be better than each
    fidelity: int = -1  # where, if other bias bounds can undo it
    excess: FloatArray | float = 0.0  # by how much their bounds are apart there, shape (n,)
    certified: int | None = None  # whom the race may end with from now on
    epsilon: float | None = None  # the tolerance from now on; None: as before
    reinstates: bool = False  # whether all arms that were eliminated come back
    frees: bool = False  # whether values that waited for their block are due
    is_endless: bool = False  # whether replicates turned out to have no end


class Rule(Protocol):
    """Decides a race by what is known; it holds its settings and what it derived."""

    needs: Needs

    def plan(self, known: Known) -> None:
        """Derive what depends on bias bounds, costs and noise; again when these change."""

    def propose(self, known: Known, expected: Expected) -> Pull | None:
        """Return the next pull; asking changes nothing. None: nothing is left to evaluate."""

    def verdict(self, known: Known, fidelity: int | None) -> Iterable[Verdict]:
        """Yield what follows from a new value at a fidelity; None: judge all anew."""


class Intake(Protocol):
    """Keeps what was evaluated in blocks, before the race learns it."""

    in_blocks: bool
    in_order: bool  # whether values wait for those of earlier blocks
    failed: IntArray  # how often an arm failed in a block, shape (K, B)

    def accept(self, known: Known, pull: Pull, observation: Observation) -> bool:
        """Note an evaluation; False: it is paid for, and says nothing. Or raise ValueError."""

    def due(self, known: Known, arm: int) -> Iterator[float]:
        """Yield the arm's values whose turn it is, as long as the race learns each."""

    def failures_of(self, arm: int) -> int:
        """Return how many failures may make an arm leave."""

    @property
    def n_values(self) -> IntArray:
        """Number of values of each arm, shape (K,)."""

    def lost_leader(self, roster: Roster, missing: IntArray, winner: int) -> int | None:
        """Return an arm that left for failures, and was or would be the best."""
