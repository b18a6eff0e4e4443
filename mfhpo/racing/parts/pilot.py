"""The pilot: a few arms pulled at every fidelity, to find out what was not declared."""

from dataclasses import dataclass

import numpy as np

from mfhpo.knowledge.arrays import BoolArray, IntArray
from mfhpo.knowledge.bias import Bias, Kind, estimate_bias
from mfhpo.problem import Pull
from mfhpo.racing.evidence import Evidence


@dataclass(frozen=True)
class Pilot:
    """Which arms to pull how often, before the race."""

    # In random order, so that the biases of the first ones stand for those of all arms: the first
    # `n_arms` that are still in the race are the pilot's.
    order: tuple[int, ...]
    n_arms: int
    n_pulls: int  # of each of them at every fidelity, at least 2
    fidelities: tuple[int, ...]

    def arms(self, active: BoolArray) -> IntArray:
        """Return the pilot's arms, shape (min(P, number of active arms),)."""
        chosen = [arm for arm in self.order if active[arm]][: self.n_arms]
        return np.array(chosen, dtype=np.int64)

    def missing(self, counts: IntArray, active: BoolArray) -> list[Pull]:
        """Return the missing pulls, cheapest fidelity first, given counts of shape (K, M)."""
        pulls: list[Pull] = []
        arms = self.arms(active)
        for fidelity in self.fidelities:
            for repeat in range(self.n_pulls):
                behind = arms[counts[arms, fidelity] <= repeat]
                pulls.extend(Pull(int(arm), fidelity) for arm in behind)
        return pulls

    def next_pull(self, counts: IntArray, seen: IntArray, active: BoolArray) -> Pull:
        """Return the next pull, by the counts with what is under way, and by those seen."""
        missing = self.missing(counts, active)
        if missing:
            return missing[0]
        cheapest, arms = self.fidelities[0], np.flatnonzero(active)
        first = arms[np.argmin(counts[arms, cheapest])]
        if counts[first, cheapest] < self.n_pulls:
            return Pull(int(first), cheapest)
        # What is left is under way and may never come: pull it once more.
        return self.missing(seen, active)[0]

    def bias(self, evidence: Evidence, active: BoolArray, kind: Kind, level: float) -> Bias:
        """Return bias bounds for all arms, from the pilot's means (see `estimate_bias`)."""
        n_arms, n_fidelities = evidence.counts.shape
        arms = self.arms(active)
        if n_fidelities == 1:
            return Bias(kind, (0.0,), source="estimated")
        if len(arms) < 2:
            # One arm has no other to be compared with, and order bounds say no more than that:
            # nothing is claimed of its own bias.
            return Bias("order", (0.0,) * n_fidelities, source="estimated")
        means = np.stack([evidence.means(arms, m) for m in range(n_fidelities)], axis=1)
        return estimate_bias(means - means[:, -1:], kind, n_arms, level)
