"""The contract between a race and the rule that decides it: propose pulls, give verdicts.

A rule decides, nothing else. The race (`mfhpo.racing.race`) keeps the evidence, the roster,
failures and costs, pilots what is not declared, measures the winner and words the answer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Bias, Kind
from mfhpo.policy import Labels
from mfhpo.problem import Observation, Problem, Pull
from mfhpo.racing.answer import surest_arm
from mfhpo.racing.evidence import Evidence
from mfhpo.racing.roster import Roster


@dataclass
class Known:
    """What a rule decides by. The race alone changes it.

    Attributes
    ----------
    problem, delta, seed
        What is declared, the error probability, and the seed.
    target_only, compared
        Whether only values at the target are evidence, and at which fidelities values are.
    evidence, roster
        What the values say about every arm, and who is in the race.
    bias, costs
        Bias bounds in force, and costs to plan with, shape (M,); None before they are estimated.
    found_epsilon
        The tolerance in force; None before it is found out.
    certified
        The arm that a verdict certified; None if there is none.
    pulls, told
        Number of values, and how often values were told; a simulation tells many at once.
    most_blocks
        How many replicates there are; None: as many as are wanted.
    lacking
        How many pulls an arm lacks for a certificate, by fidelity, if nobody else decides.
    prices, paid
        What a pull costs at each fidelity as known so far, shape (M,), and what was paid.
    """

    problem: Problem
    delta: float
    seed: int
    target_only: bool
    compared: tuple[int, ...]
    evidence: Evidence
    roster: Roster
    bias: Bias | None
    found_epsilon: float | None
    piloting: bool
    costs: FloatArray = field(default_factory=lambda: np.zeros(0))
    labels: Labels = field(default_factory=Labels)
    certified: int | None = None
    pulls: int = 0
    told: int = 0
    most_blocks: int | None = None
    lacking: Callable[[int], dict[int, int]] = field(default=lambda arm: {})
    prices: Callable[[], FloatArray] = field(default=lambda: np.zeros(0))
    paid: Callable[[], float] = field(default=lambda: 0.0)

    @property
    def arms(self) -> IntArray:
        """The arms in the race, shape (n,); not to be written to."""
        return self.roster.arms

    @property
    def epsilon(self) -> float:
        """The tolerance in force; 0 before it is found out."""
        return self.found_epsilon or 0.0

    @property
    def winner(self) -> int | None:
        """The arm that was certified, or the only one left after the pilot; or None."""
        if self.certified is not None:
            return self.certified
        arms = self.roster.arms
        return int(arms[0]) if len(arms) == 1 and not self.piloting else None

    @property
    def levels(self) -> slice:
        """The fidelities that are compared."""
        return slice(self.problem.target if self.target_only else 0, None)

    @property
    def scale(self) -> float:
        """The standard deviation of values at the target; 0 if nothing is known."""
        return float(np.nan_to_num(self.evidence.noise_scale(self.problem.target)))


@dataclass
class Expected:
    """What there will be when all pulls under way have given values.

    `counts` has shape (K, M), and is that of the evidence itself where nothing is under way.
    """

    counts: IntArray
    pulls: list[Pull]

    def add(self, pull: Pull) -> None:
        """Take in one more pull under way."""
        self.counts[pull.arm, pull.fidelity] += 1
        self.pulls.append(pull)


@dataclass(frozen=True)
class Verdict:
    """What a rule has found out. The race applies it before it asks for the next one.

    Attributes
    ----------
    eliminated, by
        Arms that leave, shape (n,), and who was found to be better than each.
    fidelity, excess
        Where that was seen, and by how much bounds are apart, shape (n,), if other bias bounds can
        undo it.
    certified
        The arm that the race may end with from now on; None: none.
    epsilon
        The tolerance in force from now on; None: the same as before.
    reinstates
        Whether all arms that were eliminated come back.
    frees
        Whether values that waited for their block are due.
    """

    eliminated: IntArray | None = None
    by: IntArray | int = -1
    fidelity: int = -1
    excess: FloatArray | float = 0.0
    certified: int | None = None
    epsilon: float | None = None
    reinstates: bool = False
    frees: bool = False


class Rule(Protocol):
    """Decides a race by what is known; it holds its settings and what it derived."""

    def plan(self, known: Known) -> None:
        """Derive what depends on bias bounds, costs and noise; again when these change."""

    def propose(self, known: Known, expected: Expected) -> Pull | None:
        """Return the next pull; asking changes nothing. None: nothing is left to evaluate."""

    def verdict(self, known: Known, fidelity: int | None) -> Iterable[Verdict]:
        """Yield what follows from a new value at a fidelity; None: judge all anew."""


@dataclass(frozen=True)
class Words:
    """What an answer says; `remaining_cost` is None if unknown."""

    reason: str
    conditions: tuple[str, ...]
    assumptions: tuple[str, ...]
    notices: tuple[str, ...]
    remaining_cost: float | None


class Intake(Protocol):
    """Keeps what was evaluated in blocks, before the race learns it."""

    in_blocks: bool
    in_order: bool  # whether values wait for those of earlier blocks

    def accept(self, known: Known, pull: Pull, observation: Observation) -> bool:
        """Note an evaluation; False: it is paid for, and says nothing. Or raise ValueError."""

    def due(self, known: Known, arm: int) -> Iterator[float]:
        """Yield the arm's values whose turn it is, as long as the race learns each."""

    def failures(self, arm: int) -> int:
        """Return how many failures may make an arm leave."""

    def n_values(self) -> IntArray:
        """Return how many values each arm gave, shape (K,)."""

    def failing(self, known: Known) -> list[int]:
        """Return the arms that are in the race and failed in some block."""

    def lost_leader(self, known: Known, failures: IntArray, winner: int) -> int | None:
        """Return an arm that left for failures, and was or would be the best."""


def _surest_arm(known: Known) -> int:
    return surest_arm(known.evidence, known.arms)


def _goes_on(known: Known) -> str:
    return ""


@dataclass(frozen=True)
class Needs:
    """What a rule needs from the race that runs it.

    Attributes
    ----------
    reason
        What a certificate rests on that is given while several arms are left, in words; of a rule
        that certifies nothing, what it is for.
    certifies
        Whether the rule is after a certificate.
    target_only
        Whether only values at the target are evidence, even if bias bounds are declared.
    kind
        The kind of bias bounds to estimate.
    variances
        Whether likelihood ratios decide beside intervals.
    pilot, estimates_bias
        Whether a pilot is needed, and whether it estimates the bias; None: if it was not declared.
    pilot_at
        The fidelities of the pilot; None: all that are compared.
    judges_failures
        Whether to ask for a verdict after failures, too.
    waits
        Whether a certificate waits for values that show what a few cannot.
    proposes_to_the_end
        Whether the rule also proposes the pulls of a winner.
    note
        Called with the arm of each value before anything is judged.
    leader
        Returns the best arm so far.
    audited
        Returns the arm to be evaluated where it shows whether bias bounds hold; None: none yet.
    lacking
        Returns what a winner lacks, given what it usually does.
    falls_short
        Returns the evidence that is missing against others being better than an arm by epsilon, if
        above 0; None: only intervals tell.
    summary
        Returns count, mean and radius of an arm at the target, None: as usual.
    end
        Says why there is nothing left to do; empty while there is.
    words
        Returns the words of an answer about an arm, given the usual ones.
    intake
        Keeps values in blocks.
    """

    reason: str
    certifies: bool = True
    target_only: bool = False
    kind: Kind = "max"
    variances: bool = False
    pilot: bool | None = None
    estimates_bias: bool | None = None
    pilot_at: tuple[int, ...] | None = None
    judges_failures: bool = False
    waits: bool = True
    proposes_to_the_end: bool = False
    note: Callable[[Known, int], None] | None = None
    leader: Callable[[Known], int] = _surest_arm
    audited: Callable[[], int | None] | None = None
    lacking: Callable[[Known, int, Mapping[int, int]], dict[int, int]] | None = None
    falls_short: Callable[[Known, int, float], float] | None = None
    summary: Callable[[Known, int], tuple[int, float, float] | None] | None = None
    end: Callable[[Known], str] = _goes_on
    words: Callable[[Known, Words, int | None], Words] | None = None
    intake: Intake | None = None
