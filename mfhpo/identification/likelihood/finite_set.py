"""Comparisons on a given set of replicates, such as five folds or the questions of a test.

The claim is about the mean over these replicates, whatever new ones would give. Arms that were
evaluated on all of them are compared exactly: nothing is uncertain but a tie, which is one. Before
that, it depends on what is known about the values:

- `Bounded` values are evidence by bets on each pair's differences
  (`mfhpo.identification.likelihood.betting`), as replicates come in random order. The same bets are
  valid where replicates have no end.
- Without bounds, nothing is known about replicates that are left. Of few, all are used. Of more
  than `FEW`, differences are taken as normal, as they are without an end.
"""

import math
from dataclasses import dataclass, replace

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

FEW = 10
"""So many replicates without bounds or fewer are all used before anything is claimed."""

_ABOUT_OTHERS = (
    "what a replicate does to some of them only is independent between these",
    f"the differences of two spread at most {MOST_RATIO_OF_PAIRS:g} times as much as those of "
    f"others, or visibly more",
)
_SAME_VALUE = "a configuration always has the same value on a replicate"

_ROUNDING = 1e-12  # of the largest value: means of equal values differ by less


@dataclass(frozen=True)
class FiniteSet:
    """Comparisons of a race, by the number of its replicates and by bounds of the values."""

    blocks: Blocks
    noise: Noise

    @property
    def is_bounded(self) -> bool:
        """True if bounds of the values are declared."""
        return isinstance(self.noise, Bounded)

    def is_finite(self, known: Known) -> bool:
        """Tell whether the replicates have an end, and come in random order, none of them twice."""
        return known.most_blocks is not None and known.most_blocks <= MOST_SHUFFLED

    def size(self, known: Known) -> float:
        """Return how many replicates there are, but void ones; infinite without an end."""
        return self.blocks.most_values(known) if self.is_finite(known) else math.inf

    def rests_on_normality(self, known: Known) -> bool:
        """Tell whether differences are taken as normal."""
        few = self.is_finite(known) and (known.most_blocks or 0) <= FEW
        return not (self.is_bounded or few)

    def complete(self, known: Known) -> BoolArray:
        """Return which arms were evaluated on all replicates, shape (K,)."""
        if not self.is_finite(known):
            return np.zeros(len(self.blocks.values), dtype=bool)
        settled = (self.blocks.settled | self.blocks.void)[:, : known.most_blocks]
        return np.asarray(settled.sum(axis=1) == known.most_blocks)

    def leads(self, leader: int, others: IntArray) -> FloatArray:
        """Return by how much a leader's mean is larger on shared replicates, (n,); NaN if none."""
        values = self.blocks.values
        found = values[leader] - values[others]
        counts = (~np.isnan(found)).sum(axis=1)
        leads = np.nansum(found, axis=1) / np.where(counts > 0, counts, np.nan)
        return np.where(np.abs(leads) <= self._rounding, 0.0, leads)

    @property
    def _rounding(self) -> float:
        return _ROUNDING * float(np.nanmax(np.abs(self.blocks.values), initial=0.0))

    def evidence(
        self, known: Known, leader: int, others: IntArray, epsilon: float, wanted: float
    ) -> FloatArray:
        """Compute the logarithms of the evidence against others being better by epsilon, (n,).

        It is infinite where that is sure. For `wanted` see `Blocks.evidence`.
        """
        if self.rests_on_normality(known):
            found = self.blocks.evidence(leader, others, epsilon, wanted)
        elif self.is_bounded:
            found = self._bets(known, leader, others, epsilon)
        else:
            found = np.full(len(others), -np.inf)
        exact = self.exact(known, leader, others)
        if exact.any():
            no_better = self.leads(leader, others[exact]) + epsilon >= -self._rounding
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

    def _bets(self, known: Known, leader: int, others: IntArray, epsilon: float) -> FloatArray:
        """Return the evidence of the first rounds that a leader and each other took part in."""
        assert isinstance(self.noise, Bounded)
        values, reach = self.blocks.values, self.noise.high - self.noise.low
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
        """Tell whether all arms that are compared were evaluated on all replicates."""
        roster = known.roster
        compared = ~(roster.withdrawn | roster.merged | roster.ruled_out)
        return bool(compared.any() and self.complete(known)[compared].all())

    def words(self, known: Known, usual: Recommendation) -> Recommendation:
        """Say what comparisons rest on."""
        is_finite, is_exact = self.is_finite(known), self.is_exact(known)
        conditions: tuple[str, ...] = (_SAME_VALUE,) if is_finite else BLOCK_CONDITIONS[:1]
        about = self.blocks.in_words(known.most_blocks if is_finite else None)
        about += f": {len(self.blocks.rounds)} complete rounds"
        if is_exact:
            usual = replace(usual, reason=f"all {known.most_blocks} replicates were used")
        elif self.is_bounded:
            conditions = (*conditions, EmpiricalBernsteinRadius.assumption)
        elif self.rests_on_normality(known):
            conditions = (*conditions, *BLOCK_CONDITIONS[1 : 2 if is_finite else None])
            about += "; noise of differences: estimated for each pair"
            if known.problem.n_arms >= LEAST_ARMS:
                conditions = (*conditions, *_ABOUT_OTHERS)
                about += ", large ones also by those of others"
        notices = usual.notices if self.is_bounded or self.rests_on_noise(known) else ()
        return replace(usual, conditions=conditions, assumptions=(about,), notices=notices)

    def summary(self, known: Known, arm: int) -> tuple[int, float, float]:
        """Return count, mean and radius of an arm, 0 once it is complete."""
        count, mean, radius = known.evidence.summary(arm, known.problem.target)
        if count and self.complete(known)[arm]:
            return count, mean, 0.0
        if not count or self.rests_on_normality(known):
            return count, mean, radius
        if not isinstance(self.noise, Bounded):
            return count, mean, math.inf  # nothing is known about replicates that are left
        low, reach = self.noise.low, self.noise.high - self.noise.low
        out = self.blocks.void | self.blocks.given_up[arm]
        values = self.blocks.values[arm, ~out][:count]
        size = self.size(known) - int((out & ~self.blocks.void)[: known.most_blocks].sum())
        level = known.delta / known.problem.n_arms
        ends = bounds(np.clip((values - low) / reach, 0.0, 1.0), size, level)
        lowest, highest = (low + reach * end for end in ends)
        return count, mean, max(mean - lowest, highest - mean)
