"""Elimination at the target level, by differences: the n-th value of one arm minus another's.

The n-th values of two arms are independent draws in the order in which evaluations were begun, so
their differences are a sample of their own, whatever the ratio of the arms' spreads. Its evidence
(`mfhpo.knowledge.studentised`) holds at all times.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mfhpo._validation import check_instance
from mfhpo.identification.likelihood.blocks import Blocks, first_in_turn, remaining_cost
from mfhpo.identification.likelihood.ties import Samples
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.noise import Gaussian
from mfhpo.problem import Problem, Pull, Recommendation
from mfhpo.racing.extra_pulls import usually_lacking
from mfhpo.racing.race import Race
from mfhpo.racing.rule import Expected, Known, Needs, Verdict

PRIOR = 0.5
"""The rho of evidence by differences, for gaps as large as the noise."""

_FIRST_LOOK = 2  # values of each arm before which nothing is decided

# By how many standard errors a winner is still ahead, by the values that it got alone, too: about
# as many as the evidence takes. With two, values that diverge now and then came too late in one
# race in twelve.
_CONFIRMED = 3.0


class NthValues:
    """The rule of `RoundElimination`."""

    def __init__(self, n_arms: int, finds_epsilon: bool) -> None:
        self._blocks, self._finds_epsilon = Blocks(n_arms, in_blocks=False), finds_epsilon
        self._confirmed = -1  # the winner by all of whose values all was judged again
        self.needs = Needs(
            "no other arm can be better by more than epsilon",
            pilot=False,
            judges_failures=True,
            leader=_leader,
            falls_short=self.falls_short,  # no function that a copy of the race would share
            words=self.words,
            intake=self._blocks,
        )

    def falls_short(self, known: Known, leader: int, others: IntArray, epsilon: float) -> float:
        """Return the missing evidence against others being better by epsilon, if above 0."""
        return float((known.threshold - self._evidence(known, leader, others, epsilon)).max())

    def plan(self, known: Known) -> None:
        """Do nothing: bias bounds and costs have no part here (see `Rule.plan`)."""

    def propose(self, known: Known, expected: Expected) -> Pull:
        """Return the next pull: of the leader, or of an arm that may be better."""
        arms, leader, target = known.arms, _leader(known), known.problem.target
        if self._blocks.n_values[arms].min() >= _FIRST_LOOK:
            others = arms[arms != leader]
            is_open = self._evidence(known, leader, others, known.epsilon) < known.threshold
            is_open |= ~self._is_ahead(known, leader, others, known.epsilon)
            arms = np.append(leader, others[is_open])
        counts = expected.counts[arms, target]
        fewest = int(counts.min())
        return Pull(first_in_turn(known, arms[counts == fewest], fewest), target)

    def verdict(self, known: Known, fidelity: int | None) -> Iterator[Verdict]:
        """Yield what the values say (see `Rule.verdict`)."""
        winner = known.winner
        if winner is None or fidelity is None:
            yield self._decide(known)
        elif self._confirmed != winner and not usually_lacking(known, winner):
            self._confirmed = winner
            yield Verdict(reinstates=True)
            yield self._decide(known)

    def _decide(self, known: Known) -> Verdict:
        arms = known.arms
        if len(arms) < 2 or self._blocks.n_values[arms].min() < _FIRST_LOOK:
            return Verdict()
        leader = _leader(known)
        others = arms[arms != leader]
        epsilon, wanted = known.scale if self._finds_epsilon else known.epsilon, known.threshold
        is_beaten = self._evidence(known, leader, others, epsilon) >= wanted
        is_beaten &= self._is_ahead(known, leader, others, epsilon)
        gone = is_beaten.copy()
        if epsilon > 0.0 and gone.any():
            gone &= self._evidence(known, leader, others, 0.0) >= wanted
        certified = leader if is_beaten.all() else None
        return Verdict(others[gone], leader, certified=certified, epsilon=epsilon)

    def _evidence(self, known: Known, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        """Return the logarithms of the evidence against others being better by epsilon, (n,)."""
        values = self._blocks.values
        if not values.size:
            return np.full(len(others), -np.inf)
        differences = Samples.of(values[leader] - values[others], values)
        return differences.evidence(epsilon, known.threshold, PRIOR)

    def _is_ahead(self, known: Known, leader: int, others: IntArray, epsilon: float) -> BoolArray:
        """Tell whether all values of a leader that has as many as it wants agree, shape (n,).

        Differences leave out the values that it got alone, which may show a rare divergence.
        """
        values = self._blocks.values
        if usually_lacking(known, leader):
            return np.ones(len(others), dtype=bool)
        compared = np.append(leader, others)
        means, counts = np.nanmean(values[compared], axis=1), self._blocks.n_values[compared]
        errors = np.nanvar(values[compared], axis=1, ddof=1) / counts
        leads = means[0] - means[1:] + epsilon
        return np.asarray(leads >= _CONFIRMED * np.sqrt(errors[0] + errors[1:]))

    def words(self, known: Known, usual: Recommendation) -> Recommendation:
        """Say what the race still costs, as evidence grows about as the counts do."""
        arm = usual.arm
        if arm is None or known.winner is not None:
            return usual
        others = known.arms[known.arms != arm]
        counts = np.minimum(self._blocks.n_values[others], self._blocks.n_values[arm])
        evidence = self._evidence(known, arm, others, known.epsilon)
        cost = remaining_cost(known, evidence, counts, PRIOR, math.inf)
        return replace(usual, remaining_cost=cost)


def _leader(known: Known) -> int:
    """Return the arm with the largest mean."""
    arms, target = known.arms, known.problem.target
    is_seen = known.evidence.counts[arms, target] > 0
    means = np.where(is_seen, known.evidence.means(arms, target), -np.inf)
    return int(arms[np.argmax(means)])


class RoundElimination(Race):
    """Elimination at the target level, where evaluations are independent.

    The leader and all that may still be better are evaluated in turn. Once the evidence against
    every other arm suffices, the leader alone goes on until it has as many values as other races
    want; then all is judged once more by these.

    A bias or a scale of the noise is not used. An epsilon of None is one standard deviation of an
    arm's values, as it is known at each time.
    """

    rule: NthValues

    def __init__(self, problem: Problem, *, epsilon: float | None = 0.0, **options: Any) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        rule = NthValues(problem.n_arms, finds_epsilon=epsilon is None)
        problem = replace(problem, bias=None, noise=Gaussian())
        super().__init__(problem, rule, epsilon=epsilon, **options)
