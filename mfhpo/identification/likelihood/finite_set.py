"""Comparisons on a given set of replicates, such as five folds or the questions of a test.

The claim is about the mean over these replicates, whatever new ones would give. Arms that were
evaluated on all of them are compared exactly. That supposes that an arm always has the same value
on a replicate. So a few evaluations are made twice before it is said (`FiniteSet.repeats`). If one
gives another value, the race has no finite set of values: replicates come again, and differences
are evidence as without an end.

Before all were used, it depends on what is known about the values:

- `Bounded` values are evidence by bets on each pair's differences
  (`mfhpo.identification.likelihood.betting`), also where replicates have no end.
- Without bounds, nothing is known about replicates that are left. Of few, all are used. Of more
  than `FEW`, differences are taken as normal, as they are without an end.
"""

import math
from collections import Counter
from dataclasses import replace

import numpy as np

from mfhpo.identification.likelihood.betting import bounds, log_evidence
from mfhpo.identification.likelihood.blocks import (
    BLOCK_CONDITIONS,
    LEAST_ARMS,
    MOST_RATIO_OF_PAIRS,
    Blocks,
)
from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray
from mfhpo.knowledge.confidence import EmpiricalBernsteinRadius
from mfhpo.knowledge.fidelity import MOST_SHUFFLED
from mfhpo.knowledge.noise import Bounded, Noise
from mfhpo.problem import Recommendation
from mfhpo.racing.rule import Known
from mfhpo.racing.sentences import evaluations_to_see

FEW = 10
"""So many replicates without bounds or fewer are all used before anything is claimed."""

_ABOUT_OTHERS = (
    "what a replicate does to some of them only is independent between these",
    f"the differences of two spread at most {MOST_RATIO_OF_PAIRS:g} times as much as those of "
    f"others, or visibly more",
)
_SAME_VALUE = "a configuration always has the same value on a replicate"
_DRAWN_ANEW = "what is random on a replicate is drawn anew in each evaluation"

# Coarse values are often equal by chance. So many are repeated that one would have differed if such
# a share of all would, and on at least such a share of the replicates.
_SHARE_THAT_DIFFERS = 0.2
_REPEATED_SHARE = 0.1

_MOST_FAILED = 3  # second evaluations of an arm

_ROUNDING = 1e-12  # of the larger value: means of equal values differ by less


def most_repeated(n_replicates: int, delta: float) -> int:
    """Return how many evaluations are made twice, at most, before values are taken as fixed."""
    of_some = evaluations_to_see(_SHARE_THAT_DIFFERS, delta)
    return max(of_some, math.ceil(_REPEATED_SHARE * n_replicates))


class FiniteSet:
    """Comparisons of a race, by the number of its replicates and by bounds of the values.

    `random` says which values turned out to be random on `n_random` replicates, if any.
    """

    def __init__(self, blocks: Blocks, noise: Noise) -> None:
        self.blocks = blocks
        self.bounds = noise if isinstance(noise, Bounded) else None
        self.n_random: int | None = None
        self.random = ""

    def is_finite(self, known: Known) -> bool:
        """Tell whether the replicates have an end, and come in random order, none of them twice."""
        return known.most_blocks is not None and known.most_blocks <= MOST_SHUFFLED

    def size(self, known: Known) -> float:
        """Return how many replicates there are, but void ones; infinite without an end."""
        return self.blocks.most_values(known) if self.is_finite(known) else math.inf

    def rests_on_normality(self, known: Known) -> bool:
        """Tell whether differences are taken as normal."""
        few = self.is_finite(known) and (known.most_blocks or 0) <= FEW
        return self.bounds is None and not few

    def complete(self, known: Known) -> BoolArray:
        """Return which arms were evaluated on all replicates, shape (K,)."""
        if not self.is_finite(known):
            return np.zeros(len(self.blocks.values), dtype=bool)
        settled = (self.blocks.settled | self.blocks.void)[:, : known.most_blocks]
        return np.asarray(settled.sum(axis=1) == known.most_blocks)

    def repeats(self, known: Known) -> list[tuple[int, int]]:
        """Return the arms and blocks to evaluate twice before a winner's claim is made.

        They are one value of each arm that is compared, on different replicates, and more if any
        values are equal, as by chance. After a few failures, an arm has none.
        """
        pairs, again = self._pairs(known), self.blocks.again
        equal = Counter(arm for (arm, _), second in again.items() if second is not None)
        failed = Counter(arm for (arm, _), second in again.items() if second is None)
        wanted = self._n_wanted(known, pairs) - equal.total()
        found: list[tuple[int, int]] = []
        for arm, block in pairs:
            is_unseen = not equal[arm] and arm not in {each for each, _ in found}
            may_be = (arm, block) not in again and failed[arm] < _MOST_FAILED
            if may_be and (is_unseen or len(found) < wanted):
                found.append((arm, block))
        return found

    def _compared(self, known: Known) -> BoolArray:
        roster = known.roster
        return np.asarray(~(roster.withdrawn | roster.merged | roster.ruled_out))

    def _pairs(self, known: Known) -> list[tuple[int, int]]:
        """Return the arms and blocks that may be evaluated twice, each arm in turn.

        There are none while a winner's claim may rest on values that were not seen.
        """
        winner, n = known.winner, known.most_blocks
        is_known = winner is not None and (self.bounds is not None or self.complete(known)[winner])
        if winner is None or n is None or not (is_known and self.is_finite(known)):
            return []
        arms = np.flatnonzero(self._compared(known))
        leads = np.where(arms == winner, -np.inf, self.leads(winner, arms))
        arms = arms[np.argsort(leads, kind="stable")]
        seen = [np.flatnonzero(~np.isnan(self.blocks.values[arm, :n])).tolist() for arm in arms]
        turns = range(max(map(len, seen), default=0))
        return [
            (int(arm), blocks[(turn + place) % len(blocks)])
            for turn in turns
            for place, (arm, blocks) in enumerate(zip(arms, seen, strict=True))
            if turn < len(blocks)
        ]

    def _n_wanted(self, known: Known, pairs: list[tuple[int, int]]) -> int:
        """Return how many evaluations have to be made twice, with the same values."""
        least = len({arm for arm, _ in pairs})
        if len({self.blocks.values[pair] for pair in pairs}) == len(pairs):
            return least
        failed = sum(second is None for second in self.blocks.again.values())
        most = most_repeated(known.most_blocks or 1, known.delta)
        return max(least, min(most, len(pairs) - failed))

    def find_random(self, known: Known) -> bool:
        """Note a second value that differs from the first; return whether there is one."""
        value = known.labels.value
        for (arm, block), second in self.blocks.again.items() if self.is_finite(known) else ():
            first = float(self.blocks.values[arm, block])
            if second is not None and not math.isclose(first, second, rel_tol=_ROUNDING):
                self.n_random = known.most_blocks
                self.random = (
                    f"{known.labels.arm(arm)} gave {value(first):.6g} and then {value(second):.6g} "
                    f"on the same replicate: values are random there, so that no mean is exact, "
                    f"and evaluations on the {self.n_random} replicates may be repeated. Fix what "
                    f"is random, or seed it by the replicate"
                )
                return True
        return False

    def number(self, known: Known) -> int | None:
        """Return how many replicates the claim is about; None where they have no end."""
        return known.most_blocks if self.is_finite(known) else self.n_random

    def leads(self, leader: int, others: IntArray) -> FloatArray:
        """Return by how much a leader's mean is larger on shared replicates, (n,); NaN if none."""
        values = self.blocks.values
        found = values[leader] - values[others]
        counts = (~np.isnan(found)).sum(axis=1)
        leads = np.nansum(found, axis=1) / np.where(counts > 0, counts, np.nan)
        return np.where(np.abs(leads) <= self._rounding(leader, others), 0.0, leads)

    def _rounding(self, leader: int, others: IntArray) -> FloatArray:
        sizes = np.fmax.reduce(np.abs(self.blocks.values), axis=1, initial=0.0)
        return np.asarray(_ROUNDING * np.fmax(sizes[leader], sizes[others]))

    def evidence(
        self, known: Known, leader: int, others: IntArray, epsilon: float, wanted: float
    ) -> FloatArray:
        """Compute the logarithms of the evidence against others being better by epsilon, (n,).

        It is infinite where that is sure if values are fixed. For `wanted` see `Blocks.evidence`.
        """
        if self.rests_on_normality(known):
            found = self.blocks.evidence(leader, others, epsilon, wanted)
        elif self.bounds is not None:
            found = self._bets(known, self.bounds, leader, others, epsilon)
        else:
            found = np.full(len(others), -np.inf)
        exact = self.exact(known, leader, others)
        if exact.any():
            rounding = self._rounding(leader, others[exact])
            no_better = self.leads(leader, others[exact]) + epsilon >= -rounding
            found[exact] = np.where(no_better, np.inf, -np.inf)
        return found

    def worse(self, known: Known, leader: int, others: IntArray, wanted: float) -> BoolArray:
        """Tell which others are surely worse than a leader, (n,); equally good ones are not."""
        found = self.evidence(known, leader, others, 0.0, wanted) >= wanted
        return found & (~self.exact(known, leader, others) | (self.leads(leader, others) > 0.0))

    def exact(self, known: Known, leader: int, others: IntArray) -> BoolArray:
        """Tell which others are compared with a leader on all replicates, shape (n,)."""
        complete = self.complete(known)
        return np.asarray(complete[others] & complete[leader])

    def _bets(
        self, known: Known, within: Bounded, leader: int, others: IntArray, epsilon: float
    ) -> FloatArray:
        """Return the evidence of the first rounds that a leader and each other took part in."""
        values, reach = self.blocks.values, within.high - within.low
        counts, given_up = self.blocks.counts(), self.blocks.given_up & ~self.blocks.void
        found = []
        for other in others.tolist():
            rounds = self.blocks.rounds[: int(min(counts[leader], counts[other]))]
            differences = values[leader, rounds] - values[other, rounds]
            # A notice tells of values beyond the bounds, which are cut here.
            drawn = np.clip((differences / reach + 1.0) / 2.0, 0.0, 1.0)
            # The claim is about the replicates on which neither failed.
            failed = (given_up[leader] | given_up[other])[: known.most_blocks].sum()
            size = self.size(known) - int(failed)
            drawn, mean = drawn[~np.isnan(drawn)], (1.0 - epsilon / reach) / 2.0
            found.append(log_evidence(drawn, mean, size))
        return np.array(found)

    def rests_on_noise(self, known: Known) -> bool:
        """Tell whether replicates that were not used may differ from what was seen."""
        return self.rests_on_normality(known) and not self.is_exact(known)

    def is_exact(self, known: Known) -> bool:
        """Tell whether all arms that are compared were evaluated on all replicates, some twice."""
        compared = self._compared(known)
        is_complete = bool(compared.any() and self.complete(known)[compared].all())
        return is_complete and self.is_checked(known)

    def is_checked(self, known: Known) -> bool:
        """Tell whether the winner's claim rests on values that were seen to be fixed."""
        pairs = self._pairs(known)
        equal = {pair for pair, second in self.blocks.again.items() if second is not None}
        is_each_seen = {arm for arm, _ in pairs} <= {arm for arm, _ in equal}
        return bool(pairs) and is_each_seen and len(equal) >= self._n_wanted(known, pairs)

    def words(self, known: Known, usual: Recommendation) -> Recommendation:
        """Say what comparisons rest on."""
        is_finite, is_exact = self.is_finite(known), self.is_exact(known)
        conditions: tuple[str, ...] = (_SAME_VALUE,) if is_finite else BLOCK_CONDITIONS[:1]
        if self.n_random is not None:
            conditions = (_DRAWN_ANEW,)
        about = self.blocks.in_words(self.number(known))
        about += f": {len(self.blocks.rounds)} complete rounds"
        n_equal = sum(second is not None for second in self.blocks.again.values())
        if is_finite and n_equal:
            about += f"; evaluations made twice, with the same values: {n_equal}"
        if is_exact:
            usual = replace(usual, reason=f"all {known.most_blocks} replicates were used")
        elif self.bounds is not None:
            conditions = (*conditions, EmpiricalBernsteinRadius.assumption)
        elif self.rests_on_normality(known):
            conditions = (*conditions, *BLOCK_CONDITIONS[1 : 2 if is_finite else None])
            about += "; noise of differences: estimated for each pair"
            if known.problem.n_arms >= LEAST_ARMS:
                conditions = (*conditions, *_ABOUT_OTHERS)
                about += ", large ones also by those of others"
        notices = usual.notices if self.bounds is not None or self.rests_on_noise(known) else ()
        notices += (self.random,) * bool(self.random)
        return replace(usual, conditions=conditions, assumptions=(about,), notices=notices)

    def summary(self, known: Known, arm: int) -> tuple[int, float, float]:
        """Return count, mean and radius of an arm, 0 once it is complete."""
        count, mean, radius = known.evidence.summary(arm, known.problem.target)
        is_complete = bool(self.complete(known)[arm])
        if count and is_complete and self.is_checked(known):
            return count, mean, 0.0
        if not count or self.rests_on_normality(known):
            return count, mean, radius
        if self.bounds is None:
            return count, mean, math.inf  # nothing is known about replicates that are left
        low, reach = self.bounds.low, self.bounds.high - self.bounds.low
        out = self.blocks.void | self.blocks.given_up[arm]
        values = self.blocks.values[arm, ~out][:count]
        size = self.size(known) - int((out & ~self.blocks.void)[: known.most_blocks].sum())
        size = math.inf if is_complete else size  # whether values are fixed is not known
        level = known.delta / known.problem.n_arms
        ends = bounds(np.clip((values - low) / reach, 0.0, 1.0), size, level)
        lowest, highest = (low + reach * end for end in ends)
        return count, mean, max(mean - lowest, highest - mean)
