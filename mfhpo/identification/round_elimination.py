"""Elimination at the target level, by differences: the n-th value of one arm minus another's.

The leader and all that may still be better are evaluated in rounds, each of them once a round. The
n-th value of one arm minus the n-th of another is an independent draw, however the evaluations
overlap, so that the evidence of one sample says how two arms compare
(`mfhpo.identification.likelihood.blocks`). Nothing is supposed about the ratio of two arms' spreads
but where the squares of others count. Each pair is judged at the threshold ln((K - 1) / delta):
only the comparisons with the best arm can certify a wrong one.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mfhpo._validation import check_instance
from mfhpo.identification.likelihood.blocks import (
    LEAST_ARMS,
    MOST_RATIO_OF_PAIRS,
    Blocks,
    first_in_turn,
)
from mfhpo.knowledge.arrays import BoolArray, IntArray
from mfhpo.knowledge.noise import Gaussian
from mfhpo.problem import Problem, Pull
from mfhpo.racing.answer import surest_at_target
from mfhpo.racing.parts.measuring import usually_lacking
from mfhpo.racing.race import Race
from mfhpo.racing.rule import Expected, Known, Needs, Verdict, Words

# Rounds before which nothing is decided.
_FIRST_LOOK = 2

# By how many standard errors a winner is still ahead, by the values that it got alone, too.
_CONFIRMED = 2.0


class SingleRounds:
    """The rule of `RoundElimination`."""

    def __init__(self, n_arms: int, finds_epsilon: bool) -> None:
        self.values = Blocks(n_arms, in_blocks=False)
        self._finds_epsilon = finds_epsilon
        self._design: IntArray = np.arange(n_arms)  # the arms of the round under way
        self._is_confirmed = False  # whether all was judged again by all values of a winner
        self.needs = Needs(
            "no other arm can be better by more than epsilon",
            pilot=False,
            judges_failures=True,
            leader=self.leader,
            falls_short=self.falls_short,
            words=self.words,
            intake=self.values,
        )

    def plan(self, known: Known) -> None:
        """Do nothing: bias bounds and costs have no part here (see `Rule.plan`)."""

    def propose(self, known: Known, expected: Expected) -> Pull:
        """Return the next pull of the round (see `Rule.propose`)."""
        arms, target = self._in_round(known), known.problem.target
        counts = expected.counts[arms, target]
        fewest = int(counts.min())
        return Pull(first_in_turn(known, arms[counts == fewest], fewest), target)

    def _in_round(self, known: Known) -> IntArray:
        """Return the arms of the round under way that are still in the race, shape (n,)."""
        design = self._design[known.roster.active[self._design]]
        return design if design.size else known.arms

    def falls_short(self, known: Known, leader: int, epsilon: float) -> float:
        """Return the missing evidence against another arm being better by epsilon, if above 0."""
        if len(self.values.rounds) < _FIRST_LOOK:
            return math.inf
        others, wanted = known.arms[known.arms != leader], _threshold(known)
        return wanted - float(self.values.evidence(leader, others, epsilon, wanted).min())

    def verdict(self, known: Known, fidelity: int | None) -> Iterator[Verdict]:
        """Yield what complete rounds say (see `Rule.verdict`)."""
        if fidelity is None:
            yield self._decide(known)
        while known.certified is None and len(arms := self._in_round(known)) > 1:
            n_rounds = len(self.values.rounds)
            if self.values.n_values[arms].min() <= n_rounds:
                return
            self.values.complete_round(n_rounds, arms)
            yield self._decide(known)
        winner = known.winner
        if winner is not None and not (self._is_confirmed or usually_lacking(known, winner)):
            self._is_confirmed = True
            yield Verdict(reinstates=True)
            yield self._decide(known)

    def _decide(self, known: Known) -> Verdict:
        """Return what all complete rounds say, and choose the arms of the next one."""
        active, n_rounds = known.arms, len(self.values.rounds)
        self._design = active.copy()
        if n_rounds < _FIRST_LOOK or len(active) < 2:
            return Verdict()
        epsilon = known.scale if self._finds_epsilon else known.epsilon
        leader, wanted = self.leader(known), _threshold(known)
        others = active[active != leader]
        is_beaten = self.values.evidence(leader, others, epsilon, wanted) >= wanted
        is_beaten &= self._is_ahead(known, leader, others, epsilon)
        is_worse = self.values.evidence(leader, others, 0.0, wanted) >= wanted
        gone, certified = others[is_beaten & is_worse], None
        if is_beaten.all():
            certified = leader
        else:
            self._design = np.append(leader, others[~is_beaten])
        return Verdict(gone, leader, certified=certified, epsilon=epsilon)

    def _is_ahead(self, known: Known, leader: int, others: IntArray, epsilon: float) -> BoolArray:
        """Tell whether all values of a leader that has as many as it wants agree, shape (n,).

        Rounds leave out the values that it got alone, which may show a rare divergence.
        """
        if usually_lacking(known, leader):
            return np.ones(len(others), dtype=bool)
        values, counts = self.values.values, self.values.n_values
        errors = np.nanvar(values, axis=1, ddof=1) / counts
        means = np.nanmean(values, axis=1)
        spread = np.sqrt(errors[leader] + errors[others])
        return np.asarray(means[leader] - means[others] + epsilon >= _CONFIRMED * spread)

    def leader(self, known: Known) -> int:
        """Return the arm with the largest mean among those that took part in every round."""
        arms, n_rounds = known.arms, len(self.values.rounds)
        seen = arms[self.values.n_values[arms] >= n_rounds]
        if not n_rounds or not seen.size:
            return surest_at_target(known.evidence, arms, known.bias)
        means = self.values.values[seen, :n_rounds].mean(axis=1)
        return int(seen[np.argmax(means)])

    def words(self, known: Known, usual: Words, arm: int | None) -> Words:
        """Say what the comparisons rest on, and what they still cost."""
        conditions = usual.conditions
        if known.problem.n_arms >= LEAST_ARMS:
            spread = (
                f"the differences of two configurations spread at most {MOST_RATIO_OF_PAIRS:g} "
                f"times as much as those of others, or visibly more"
            )
            conditions = (*conditions, spread)
        remaining = usual.remaining_cost
        if arm is not None and known.winner is None:
            remaining = self._remaining_cost(known, arm)
        return replace(usual, conditions=conditions, remaining_cost=remaining)

    def _remaining_cost(self, known: Known, leader: int) -> float | None:
        """Guess the remaining cost: evidence grows about as the rounds do."""
        n_rounds, others = len(self.values.rounds), known.arms[known.arms != leader]
        if n_rounds < _FIRST_LOOK:
            return None
        wanted = _threshold(known)
        evidence = self.values.evidence(leader, others, known.epsilon, wanted)
        price = self.values.price_of_average(n_rounds)
        if not (evidence + price > 0.0).all():
            return None
        more = n_rounds * np.maximum((wanted + price) / (evidence + price) - 1.0, 0.0)
        return float(more.sum() + more.max()) * float(known.spending.all()[-1])


def _threshold(known: Known) -> float:
    """Return what the evidence against an arm must reach: ln((K - 1) / delta)."""
    return math.log(max(1, known.problem.n_arms - 1) / known.delta)


class RoundElimination(Race):
    """Elimination in rounds at the target level, where evaluations are independent.

    It is what `certify` uses where nothing is known about the noise and candidates share no
    replicates. Once the evidence against every other arm suffices, the leader alone goes on until
    it has as many values as other races want.

    Parameters
    ----------
    problem
        Of its costs the last one matters. A bias or a scale of the noise is not used.
    epsilon
        See `Race`. None: one standard deviation of an arm's values, as it is known after each round
        from the second on.
    **options
        See `Race`.

    Examples
    --------
    >>> import numpy as np
    >>> from mfhpo import Observation, Problem
    >>> policy = RoundElimination(Problem(3, costs=(1.0,)), epsilon=0.05, measure=2)
    >>> means, rng = [0.2, 0.9, 0.5], np.random.default_rng(0)
    >>> while not policy.finished:
    ...     [pull] = policy.ask()
    ...     policy.tell(pull, Observation(rng.normal(means[pull.arm], 0.1)))
    >>> policy.recommend().arm, policy.recommend().certified
    (1, True)
    """

    rule: SingleRounds

    def __init__(self, problem: Problem, *, epsilon: float | None = 0.0, **options: Any) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        rule = SingleRounds(problem.n_arms, finds_epsilon=epsilon is None)
        problem = replace(problem, bias=None, noise=Gaussian())
        super().__init__(problem, rule, epsilon=epsilon, **options)
