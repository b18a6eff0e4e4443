"""A race at the target level that is looked at a few times, as in a group-sequential design.

Intervals that hold at all times are much wider after five evaluations of an unknown noise.

Why it is valid. A look rests on the first so many values of each arm, in the order in which
evaluations were begun. So the values behind each mean are independent. Each arm has a variance and
a Student interval of its own. For the difference of two, the same quantile is taken with the sum of
both variances, which is conservative for every ratio of these (Mickey and Brown 1966). In blocks,
the differences of two arms in the same ones are independent values themselves. Each look takes half
of what is left of the error probability delta, and the last one that is planned nine tenths,
divided among the K - 1 comparisons with the best arm, each on one side. So with probability
1 - delta the best is never found worse, and whoever is within epsilon of all that are left is
within epsilon of the best. The intervals of the arms' own means, at the same level divided among
the K arms and on two sides, are another event of the same probability.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from mfhpo._validation import check_count, check_instance
from mfhpo.identification.likelihood.blocks import BLOCK_CONDITIONS, Blocks, exists, first_in_turn
from mfhpo.identification.likelihood.ties import Samples
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.confidence import share_of_look
from mfhpo.knowledge.noise import EstimatedNoise, Gaussian, declared_sigmas
from mfhpo.problem import Problem, Pull, Recommendation
from mfhpo.racing.race import Race
from mfhpo.racing.rule import Expected, Known, Needs, Verdict

FIRST_LOOK = 5
"""Evaluations of each arm before the first look, by default."""

LEAST_FIRST_LOOK = 2
"""Fewer do not show any noise."""

_ROUNDING = 1e-9  # of a radius: a lead that is no larger is a tie


class Looks:
    """The rule of `GroupSequential`."""

    def __init__(
        self, n_arms: int, sigma: float | None, first_look: int, finds_epsilon: bool, blocks: bool
    ) -> None:
        self._blocks = Blocks(n_arms, in_blocks=blocks)
        self._sigma = sigma
        self._first_look = self._planned_look = first_look
        self._finds_epsilon = finds_epsilon
        self.looks = self._looks_given_up = 0  # the first so many say nothing any more
        self.planned_looks: int | None = None  # an open number
        # How many of the values of each arm its last look took.
        self._looked_at: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._leader: int | None = None  # of the last look, if it is still in the race

        self.needs = Needs(
            "no other arm can be better by more than epsilon",
            pilot=False,
            judges_failures=True,
            waits=False,
            proposes_to_the_end=blocks,
            leader=self.leader,
            lacking=self.lacking,
            summary=self.summary,
            end=self.end,
            words=self.words,
            intake=self._blocks,
        )

    def plan(self, known: Known) -> None:
        """Give up a declared sigma once it is contradicted, and what the looks said by it."""
        if self._sigma is not None and known.evidence.noise.widened:
            self._sigma = None
            self._looks_given_up = self.looks

    # Pulls.

    def propose(self, known: Known, expected: Expected) -> Pull | None:
        """Return the next pull, in blocks with its own (see `Rule.propose`)."""
        arms = known.arms if known.winner is None else np.array([known.winner])
        taken, closed = self._settled(known, expected.pulls)[arms], self._blocks.closed(arms)
        taken[:, : closed.shape[1]] |= closed
        firsts = np.argmin(taken, axis=1)
        block = int(firsts.min())
        if not exists(known, block):
            return None
        arm = first_in_turn(known, arms[firsts == block], block)
        return Pull(arm, known.problem.target, block=block if self._blocks.in_blocks else None)

    def lacking(self, known: Known, winner: int, usual: Mapping[int, int]) -> dict[int, int]:
        """Return what a winner lacks until the first look."""
        target = known.problem.target
        missing = usual.get(target, 0) - (self._planned_look - self._first_look)
        return {target: missing} if missing > 0 else {}

    def end(self, known: Known) -> str:
        """Say why there are too few replicates for another look; the first one may be earlier."""
        size = self._size(self.looks) if self.looks else min(self._first_look, LEAST_FIRST_LOOK)
        most = self._blocks.most_values(known)
        return f"a further look takes more than the {most:g} replicates" if size > most else ""

    def looks_with(self, known: Known, pending: Sequence[Pull] = ()) -> int:
        """Return the number of looks if all that is under way gives values."""
        looks, winner = self.looks, known.winner
        if not known.arms.size or (winner is not None and self._looked_at[winner]):
            return looks
        counts = self._expected(known, pending)[known.arms]
        while (counts >= self._size(looks)).all():
            looks += 1
        return looks

    def missing(self, known: Known, pending: Sequence[Pull] = ()) -> int:
        """Return how many evaluations the next look needs, or the look after it if none."""
        size = self._size(self.looks_with(known, pending))
        return int(np.maximum(size - self._expected(known, pending)[known.arms], 0).sum())

    def _expected(self, known: Known, pending: Sequence[Pull] = ()) -> IntArray:
        """Return each arm's number of values after pulls under way, settled ones in blocks."""
        settled = self._settled(known, pending)
        counted = np.delete(settled, np.flatnonzero(self._blocks.void), axis=1)
        return np.asarray(np.argmin(counted, axis=1))

    def _settled(self, known: Known, pending: Sequence[Pull]) -> BoolArray:
        """Return where arms will have a value or never will, after pulls under way, (K, B)."""
        n_arms, n_blocks = self._blocks.values.shape
        settled = np.zeros((n_arms, n_blocks + len(pending) + 1), dtype=bool)
        settled[:, :n_blocks] = self._blocks.settled
        for pull in pending:
            block = int(np.argmin(settled[pull.arm])) if pull.block is None else pull.block
            if block < settled.shape[1] and exists(known, block):
                settled[pull.arm, block] |= pull.fidelity == known.problem.target
        return settled

    def _size(self, look: int) -> int:
        return self._first_look << look

    # Verdicts.

    def verdict(self, known: Known, fidelity: int | None) -> Iterator[Verdict]:
        """Yield what looks say that are due (see `Rule.verdict`)."""
        if fidelity is None:
            if self._leader is not None and not known.roster.active[self._leader]:
                self._leader = None
            yield self._certificate(known)
        self._blocks.set_aside(known.arms)
        most = self._blocks.most_values(known)
        if not self.looks and most < self._first_look:
            # So few replicates were not planned for. Which are void does not depend on values.
            self._first_look = max(LEAST_FIRST_LOOK, int(most))
        while self.looks_with(known) > self.looks:
            yield from self._look(known)
            self._blocks.set_aside(known.arms)

    def _certificate(self, known: Known) -> Verdict:
        if self.behind(known) > known.epsilon:
            # An arm may be back that was not compared with the leader.
            return Verdict()
        if len(known.arms) > 1 and not known.evidence.noise.unaudited:
            return Verdict(certified=self._leader)
        return Verdict(certified=known.certified)

    def _look(self, known: Known) -> Iterator[Verdict]:
        arms = known.arms
        self._looked_at[arms] = self._size(self.looks)
        self.looks += 1
        looked_at = np.flatnonzero(~self._blocks.void)[: self._size(self.looks - 1)]
        standings = self._blocks.standings(arms, looked_at)
        leader = self._leader = int(arms[np.argmax(standings)])
        if len(arms) == 1:
            return
        epsilon = None
        if self._finds_epsilon:
            samples = self._at_look(arms)
            several = samples.counts >= LEAST_FIRST_LOOK
            epsilon = math.sqrt(samples.variances[several].mean()) if several.any() else 0.0
        gone = arms[:0]
        if not known.evidence.noise.unaudited:  # else a declared sigma may be far too small
            others, ahead, radii = self._lead(known)
            gone = others[ahead > radii]
        yield Verdict(gone, leader, certified=known.certified, epsilon=epsilon)
        yield self._certificate(known)

    def _at_look(self, arms: IntArray) -> Samples:
        return self._samples(self._blocks.first_values(arms, int(self._looked_at[arms[0]])))

    def _samples(self, values: FloatArray) -> Samples:
        seen = self._blocks.values[:, ~self._blocks.void]
        looked_at = np.where(np.arange(seen.shape[1]) < self._looked_at[:, None], seen, np.nan)
        return Samples.of(values, looked_at)

    def _differences(self, leader: int, others: IntArray, size: int) -> Samples:
        """Return the leader's differences to others at a look; in blocks, within the same ones."""
        values = self._blocks.first_values(np.append(leader, others), size)
        if self._blocks.in_blocks:
            return self._samples(values[0] - values[1:])
        own = self._samples(values)
        return Samples(
            counts=own.counts[1:],
            means=own.means[0] - own.means[1:],
            variances=own.variances[0] + own.variances[1:],
            hidden=own.hidden[0] + own.hidden[1:],
        )

    def _radii(
        self, known: Known, size: int, samples: Samples, shares: int, of_two: bool = False
    ) -> FloatArray:
        """Return one-sided radii; the level of the look with so many values is divided equally."""
        look = (size // self._first_look).bit_length()
        level = share_of_look(look, self.planned_looks) * known.delta / shares
        counts = samples.counts
        if look <= self._looks_given_up:
            return np.full(counts.shape, np.inf)
        if self._sigma is not None:
            times = 2.0 if of_two else 1.0
            width = self._sigma * math.sqrt(2.0 * times * math.log(1.0 / level) / size)
            return np.full(counts.shape, width)
        quantiles = -stdtrit(np.maximum(counts - 1, 1), level)
        variances = samples.variances + samples.hidden_at(level)
        radii = quantiles * np.sqrt(variances / np.maximum(counts, 1))
        return np.where(counts >= LEAST_FIRST_LOOK, radii, np.inf)

    def _lead(self, known: Known) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the others, the leader's lead, and its radius, infinite if not compared."""
        leader = self._leader
        others = known.arms[known.arms != leader]
        ahead, radii = np.zeros(len(others)), np.full(len(others), np.inf)
        if leader is None:
            return others, ahead, radii
        size = int(self._looked_at[leader])
        compared = self._looked_at[others] == size
        if compared.any():
            ahead[compared], radii[compared] = self._leads(known, leader, others[compared], size)
        return others, ahead, radii

    def _leads(
        self, known: Known, arm: int, others: IntArray, size: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return an arm's leads, and their radii, at the look with so many values, (n,) each."""
        differences = self._differences(arm, others, size)
        shares = known.problem.n_arms - 1
        return differences.means, self._radii(known, size, differences, shares, of_two=True)

    def behind(self, known: Known) -> float:
        """Return by how much others may be better than the last look's leader, infinite if none."""
        _, ahead, radii = self._lead(known)
        return math.inf if self._leader is None else float((radii - ahead).max(initial=0.0))

    def lead(self, known: Known, arm: int, other: int) -> float:
        """Return the least by which an arm exceeds another, by the last look at both."""
        size = int(min(self._looked_at[arm], self._looked_at[other]))
        if not size:
            return -math.inf
        [ahead], [radius] = self._leads(known, arm, np.array([other]), size)
        return float(ahead - radius)

    # Answers.

    def leader(self, known: Known) -> int:
        """Return the last look's leader, or the first arm that gave a value."""
        active, target = known.arms, known.problem.target
        if self._leader is not None:
            return self._leader
        seen = active[known.evidence.counts[active, target] > 0]
        if not seen.size or not (self.looks or self.end(known)):
            return int(np.append(seen, active)[0])
        return int(seen[np.argmax(known.evidence.means(seen, target))])

    def summary(self, known: Known, arm: int) -> tuple[int, float, float] | None:
        """Return count, mean and radius of an arm at its last look, if there was one."""
        size = int(self._looked_at[arm])
        if not size or known.roster.withdrawn[arm]:
            return None
        sample = self._at_look(np.array([arm]))
        [radius] = self._radii(known, size, sample, 2 * known.problem.n_arms).tolist()
        count = int(sample.counts[0])
        return count, float(sample.means[0]) if count else math.nan, radius

    def words(self, known: Known, usual: Recommendation) -> Recommendation:
        """Say when the looks are, and what the next one still costs."""
        about = f"{self._blocks.in_words()}; " if self._blocks.in_blocks else ""
        looks = f"{about}looks after {self._first_look}, {self._size(1)}, ... evaluations of each"
        return replace(
            usual,
            reason=self._reason(known, usual),
            conditions=BLOCK_CONDITIONS if self._blocks.in_blocks else usual.conditions,
            assumptions=(looks, *usual.assumptions),
            remaining_cost=self._remaining_cost(known, usual.arm),
        )

    def _reason(self, known: Known, usual: Recommendation) -> str:
        if usual.arm is None or known.winner is not None or self.end(known):
            return usual.reason
        look = f"look is after {self._size(self.looks)} evaluations of each"
        if not self.looks:
            return f"nothing can be said yet; the first {look}"
        why = usual.reason
        if known.evidence.noise.unaudited:
            why = "too few repeats to see whether the declared sigma is too small"
        return f"{why}; the next {look}"

    def _remaining_cost(self, known: Known, arm: int | None) -> float | None:
        """Guess the remaining cost: radii shrink as the root of the count, the lead stays."""
        if known.winner is not None or arm is None or known.found_epsilon is None:
            return None
        _, ahead, radii = self._lead(known)
        worst = int(np.argmax(radii - ahead))
        radius = float(radii[worst])
        if not math.isfinite(radius):
            return None
        lead = min(float(ahead[worst]), radius) + known.epsilon
        if lead <= _ROUNDING * radius:
            return math.inf
        looks = max(1, math.ceil(2.0 * math.log2(max(1.0, radius / lead))))
        size = self._size(self.looks - 1 + looks)
        if size > self._blocks.most_values(known):
            return math.inf
        missing = np.maximum(size - self._expected(known)[known.arms], 0)
        return float(missing.sum()) * float(known.spending.all()[-1])


class GroupSequential(Race):
    """A race at the target level that is looked at a few times.

    The arms that are left are evaluated in rounds, each in a random order. Each look takes twice as
    many evaluations of each arm as the one before; it may eliminate arms and certify the leader.
    Before the first look the answer is the first arm that gave a value. The race ends with the
    certificate, for which a winner is evaluated until the first look. A declared sigma that the
    values contradict is given up, with a warning.

    Parameters
    ----------
    problem
        Of its costs the last one matters. A bias is not used.
    epsilon
        See `Race`. None: the declared scale of the noise, or else the root of the arms' mean
        variance, as it is known at each look.
    first_look
        Evaluations of each arm before the first look; a single one without noise.
    blocks
        Whether pulls carry a block, whose replicate all arms share (see `BlockElimination`). What
        is declared of the noise is not used then.
    """

    rule: Looks

    def __init__(
        self,
        problem: Problem,
        *,
        epsilon: float | None = 0.0,
        first_look: int = FIRST_LOOK,
        blocks: bool = False,
        **options: Any,
    ) -> None:
        check_instance("problem", problem, Problem, "a mfhpo.Problem")
        if blocks or isinstance(problem.noise, EstimatedNoise):
            problem = replace(problem, noise=Gaussian())
        sigmas = declared_sigmas(problem.noise, problem.n_fidelities)
        sigma = None if sigmas is None else sigmas[problem.target]
        check_count("first_look", first_look, LEAST_FIRST_LOOK)
        size = 1 if sigma == 0.0 else first_look
        if epsilon is None:
            epsilon = sigma
        rule = Looks(problem.n_arms, sigma, size, epsilon is None, blocks)
        problem = replace(problem, bias=None)
        super().__init__(problem, rule, epsilon=epsilon, measure=size, **options)
