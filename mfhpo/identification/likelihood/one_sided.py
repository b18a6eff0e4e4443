"""Evidence of pairs of arms at one level, on the side where the leader is better; known variances.

The average of `mfhpo.identification.likelihood.likelihood` is over means on both sides of the null
hypothesis. Those on the other side, where the leader is worse or the other arm better, only cost.
Averaged over the means on one side alone, the likelihood ratio of an arm is multiplied by 2 Phi(z),
z being the distance of the sum of its values from the null hypothesis in units of sqrt(n + rho)
sigma: nearly 4 for the two arms of a pair that is nearly decided. A part of the average is left to
both sides. Without it, the evidence against means that one of the two arms contradicts would
vanish.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mfhpo.knowledge.arrays import BoolArray, FloatArray

# The share of the average that is over both sides.
_BOTH_SIDES = 0.1

# The minimum is looked for on ever finer grids of where between the two means the null hypothesis
# has both.
_SHIFTS = np.linspace(-1.0, 1.0, 7)
_ROUNDS = 12
_ZOOM = 0.7
_SLACK = 0.02

# So many standard deviations off, the squares cost more than the other side can save.
_REACH = 1.5

# Where the variance is known to be 0 one value says it all; finite gaps explain a finite part.
_LEAST_VARIANCE = 1e-200

# Of the average, what is over means of the other arm that may be far off: as if it was to be
# decided after one value in the place of 16. A large difference is seen by it at once.
_FAR_SHARE = 0.15
_FAR = 1.0 / 16.0

MOST_GAIN = math.log(_BOTH_SIDES + 4.0 * (1.0 - _BOTH_SIDES))
"""The most that one side adds."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of a leader and another arm at one level.

    The leader's mean exceeds the least that the null hypothesis says, such as the other's mean less
    epsilon, by positive `gaps`, shape (n,).
    """

    gaps: FloatArray
    counts: FloatArray  # of the leader and of the other, shape (2, n), as below
    variances: FloatArray  # of the noise

    def evidence(self, prior: float, wanted: float) -> FloatArray:
        """Return the logarithm of the average likelihood ratio, (n,), with the count rho `prior`.

        It is exact for a `wanted` of minus infinity. Otherwise it may be any number on the same
        side of `wanted`.
        """
        found: FloatArray = np.full(len(self.gaps), -np.inf)
        for share, of_other in ((1.0 - _FAR_SHARE, prior), (_FAR_SHARE, _FAR * prior)):
            average = _Average(self, np.array([[prior], [of_other]]))
            part = average.evidence(wanted - math.log(share)) + math.log(share)
            found = np.where(part > found, part, found)
        return np.asarray(found)


@dataclass(frozen=True)
class _Average:
    """The average with a count rho for each row of counts, shape (2, 1)."""

    pairs: Pairs
    priors: FloatArray

    def evidence(self, wanted: float) -> FloatArray:
        """Return at least `wanted` if and only if the average does; else any lower bound."""
        penalties = (np.log1p(self.pairs.counts / self.priors) / 2.0).sum(axis=0)
        hopeful = wanted - MOST_GAIN + penalties
        found = self._on_both_sides()
        open_ = (found >= hopeful) | ~np.isfinite(hopeful)
        # What is left to both sides alone may do.
        sure = found + math.log(_BOTH_SIDES)
        is_sure = open_ & (sure >= wanted + penalties) & math.isfinite(wanted)
        found = np.where(is_sure, sure, found)
        open_ &= ~is_sure
        for least in (_Average._where_likely, _Average._on_one_side):
            if open_.any():
                found[open_] = least(self._chosen(open_))
                open_ &= found >= wanted + penalties
        return np.asarray(found - penalties)

    def _on_both_sides(self) -> FloatArray:
        explained = self._explained
        of_last = explained[0] / explained.sum(axis=0)
        return np.asarray(of_last * explained[1] * self.pairs.gaps**2)

    def _chosen(self, chosen: BoolArray) -> "_Average":
        pairs = self.pairs
        some = Pairs(pairs.gaps[chosen], pairs.counts[:, chosen], pairs.variances[:, chosen])
        return _Average(some, self.priors)

    @property
    def _explained(self) -> FloatArray:
        """The part of a squared distance of 1 that is explained, by twice the variance, (2, n)."""
        counts = self.pairs.counts
        twice = 2.0 * np.maximum(self.pairs.variances, _LEAST_VARIANCE)
        return np.asarray(counts**2 / (counts + self.priors) / twice)

    @property
    def _likely_split(self) -> FloatArray:
        """The share of the gap that is the leader's where both means are closest to the null."""
        explained = self._explained
        return np.asarray(explained[1] / explained.sum(axis=0))

    def _where_likely(self) -> FloatArray:
        """Return the evidence on one side at the minimum on both sides, never below it."""
        return self._averages(self._likely_split[:, None])[:, 0]

    def _on_one_side(self) -> FloatArray:
        splits = self._likely_split
        rows, shifts, radius = np.arange(len(splits)), np.zeros(len(splits)), 1.0
        # Both the gap and the noise may be what is large.
        unit = self.pairs.gaps * np.sqrt(self._explained.sum(axis=0))
        reach = (1.0 + _REACH / unit)[:, None]
        least = np.full(len(splits), np.inf)
        for _ in range(_ROUNDS):
            tried = shifts[:, None] + radius * _SHIFTS
            values = self._averages(splits[:, None] + tried * reach)
            best = values.argmin(axis=1)
            shifts = tried[rows, best]
            np.minimum(least, values[rows, best], out=least)
            radius *= _ZOOM
        return np.asarray(least - _SLACK)

    def _averages(self, splits: FloatArray) -> FloatArray:
        """Return the evidence with the leader's mean at these shares of the gap, shape (n, X)."""
        explained = self._explained[:, :, None]
        parts = np.stack([splits, 1.0 - splits]) * self.pairs.gaps[:, None]
        sides = (2.0 * ndtr(np.sqrt(2.0 * explained) * parts)).prod(axis=0)
        squares = (explained * parts**2).sum(axis=0)
        return np.asarray(squares + np.log(_BOTH_SIDES + (1.0 - _BOTH_SIDES) * sides))
