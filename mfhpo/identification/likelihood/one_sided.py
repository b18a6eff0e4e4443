"""Evidence of pairs of arms at one level, on the side where the leader is better.

The averages of `mfhpo.identification.likelihood.likelihood` and `mfhpo.knowledge.studentised` are
over means on both sides of the null hypothesis. Those on the other side, where the leader is worse
or the other arm better, only cost. Averaged over the means on one side alone, the likelihood ratio
of an arm is multiplied by 2 Phi(z), z being the distance of the sum of its values from the null
hypothesis in units of sqrt(n + rho) sigma: nearly 4 for the two arms of a pair that is nearly
decided. A part of the average is left to both sides. Without it, the evidence against means that
one of the two arms contradicts would vanish.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.studentised import LOG_WEIGHTS, SCALES, log_evidence, rounded

# The share of the average that is over both sides.
_BOTH_SIDES = 0.1

# What one side adds at most.
MOST_GAIN = float(np.log(_BOTH_SIDES + 4.0 * (1.0 - _BOTH_SIDES)))

# The minimum is looked for on ever finer grids: of where between the two means the null hypothesis
# has both, and of the logarithm of the precision, around where it is likely and, as little is known
# of the noise, where it is low. It is found to less than the slack.
_SHIFTS = np.linspace(-1.0, 1.0, 7)
_PRECISIONS = np.linspace(-1.0, 1.0, 5)
_LOW = -4.0
_ROUNDS = 10
_ZOOM = 0.6
_SLACK = 0.02

# So many standard deviations off, the squares cost more than the other side can save.
_REACH = 1.5

# Next to another arm's variance, this share of it is none.
_TINY = 1e-12

# Where the variance is known to be 0 one value says it all; finite gaps explain a finite part.
_LEAST_VARIANCE = 1e-200


# Of the average, what is over means of the other arm that may be far off: as if it was to be
# decided after one value in the place of 16. A large difference is seen by it at once.
_FAR_SHARE = 0.15
_FAR = 1.0 / 16.0


@dataclass(frozen=True)
class Pairs:
    """Pairs of a leader and another arm at one level; all arrays have shape (n,).

    Parameters
    ----------
    gaps
        By how much the leader's mean exceeds the least that the null hypothesis says, such as the
        other's mean less epsilon; positive.
    counts, variances
        Numbers of values, and the noise's variance, of the leader and of the other, shape (2, n).
    degrees
        Degrees of freedom of the variances; None where they are known.
    """

    gaps: FloatArray
    counts: FloatArray
    variances: FloatArray
    degrees: FloatArray | None

    def evidence(self, prior: float, wanted: float) -> FloatArray:
        """The logarithm of the average likelihood ratio, shape (n,), with the count rho `prior`.

        It may be less than that where it does not reach `wanted`.
        """
        found = np.full(len(self.gaps), -np.inf)
        for share, of_other in ((1.0 - _FAR_SHARE, prior), (_FAR_SHARE, _FAR * prior)):
            average = _Average(self, np.array([[prior], [of_other]]))
            part = average.evidence(wanted - math.log(share)) + math.log(share)
            np.maximum(found, part, out=found)
        return found


@dataclass(frozen=True)
class _Average:
    """The average with given counts rho of the leader and of the other, shape (2, 1)."""

    pairs: Pairs
    priors: FloatArray

    def evidence(self, wanted: float) -> FloatArray:
        """That over both sides where one side does not bring it to `wanted`."""
        penalties = (np.log1p(self.pairs.counts / self.priors) / 2.0).sum(axis=0)
        found: FloatArray = self._on_both_sides() - penalties
        close = np.flatnonzero(found >= wanted - MOST_GAIN)
        if close.size:
            found[close] = self._chosen(close)._on_one_side() - penalties[close]
        return found

    def _chosen(self, chosen: IntArray) -> "_Average":
        pairs = self.pairs
        some = Pairs(
            pairs.gaps[chosen],
            pairs.counts[:, chosen],
            pairs.variances[:, chosen],
            None if pairs.degrees is None else pairs.degrees[chosen],
        )
        return _Average(some, self.priors)

    def _explained(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What a squared distance of 1 has explained, and left, by twice the variance; the rest.

        Shape (2, n) and (n,). Where no noise is seen, the unit is arbitrary.
        """
        variances, degrees = self.pairs.variances, self.pairs.degrees
        if degrees is None:
            twice = 2.0 * np.maximum(variances, _LEAST_VARIANCE)
            rest = np.zeros(len(self.pairs.gaps))
        else:
            largest = variances.max(axis=0)
            is_seen = largest > 0.0
            twice = 2.0 * np.where(is_seen, np.maximum(variances, _TINY * largest), 1.0)
            rest = np.where(is_seen, degrees / 2.0, 0.0)
        shrunk = self.pairs.counts / (self.pairs.counts + self.priors)
        return self.pairs.counts * shrunk / twice, self.priors * shrunk / twice, rest

    def _on_both_sides(self) -> FloatArray:
        explained, left, rest = self._explained()
        if self.pairs.degrees is None:
            shares = explained[0] / explained.sum(axis=0)
            return np.asarray(shares * explained[1] * self.pairs.gaps**2)
        return log_evidence(
            self._least_ratio(explained, left, rest), rounded(self.pairs.degrees + 2.0)
        )

    def _least_ratio(self, explained: FloatArray, left: FloatArray, rest: FloatArray) -> FloatArray:
        """The smallest ratio of what is explained to what is left, over all splits of the gap."""
        squares = self.pairs.gaps**2
        both = explained[0] * left[1] + explained[1] * left[0]
        # The ratio for which explained - ratio * (rest + left) has the minimum 0.
        a = left[0] * left[1] * squares + rest * left.sum(axis=0)
        b = squares * both + rest * explained.sum(axis=0)
        c = explained[0] * explained[1] * squares
        return np.asarray(2.0 * c / (b + np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))))

    def _on_one_side(self) -> FloatArray:
        explained, left, rest = self._explained()
        gaps, n = self.pairs.gaps, len(self.pairs.gaps)
        totals = explained.sum(axis=0)
        parts = explained[1] / totals
        if self.pairs.degrees is None:
            starts = [(np.zeros(n), np.zeros(1))]
            exponents, scales = np.zeros((n, 1)), np.ones(1)
        else:
            degrees = rounded(self.pairs.degrees + 2.0)
            squares = (np.stack([parts, 1.0 - parts]) * gaps) ** 2
            apart = rest + (left * squares).sum(axis=0)
            ratios = (explained * squares).sum(axis=0) / apart
            # Where the precision would be if every scale could be chosen.
            centres = np.log(degrees / (2.0 * (1.0 + ratios) * apart))
            starts = [(centres, _PRECISIONS), (centres + _LOW, -_LOW * _PRECISIONS)]
            scales = SCALES
            exponents = LOG_WEIGHTS - degrees[:, None] / 2.0 * np.log(SCALES)
        rows, least = np.arange(n), np.full(n, np.inf)
        for centres, steps in starts:
            shifts, radius = np.zeros(n), 1.0
            for _ in range(_ROUNDS):
                logs = np.repeat(centres[:, None] + radius * steps, len(_SHIFTS), axis=1)
                shift = np.tile(shifts[:, None] + radius * _SHIFTS, len(steps))
                precisions = np.exp(logs)
                # Both the gap and the noise may be what is large.
                reach = 1.0 + _REACH / (gaps * np.sqrt(totals))[:, None] / np.sqrt(precisions)
                split = parts[:, None] + shift * reach
                values = self._averages(split, precisions, explained, left, rest, exponents, scales)
                best = values.argmin(axis=1)
                shifts, centres = shift[rows, best], logs[rows, best]
                radius *= _ZOOM
            np.minimum(least, values[rows, best], out=least)
        return np.asarray(least - _SLACK)

    def _averages(
        self,
        splits: FloatArray,
        precisions: FloatArray,
        explained: FloatArray,
        left: FloatArray,
        rest: FloatArray,
        exponents: FloatArray,
        scales: FloatArray,
    ) -> FloatArray:
        """The evidence at shares of the gap and precisions, shape (n, P) each."""
        parts = np.stack([splits, 1.0 - splits]) * self.pairs.gaps[:, None]
        squares = (explained[:, :, None] * parts**2).sum(axis=0)
        apart = rest[:, None] + (left[:, :, None] * parts**2).sum(axis=0)
        # Axes: pair, point, scale of the alternative.
        distances = np.sqrt(2.0 * explained)[:, :, None] * parts
        one, two = distances[..., None] * np.sqrt(precisions[..., None] / scales)
        sides = _BOTH_SIDES + 4.0 * (1.0 - _BOTH_SIDES) * ndtr(one) * ndtr(two)
        fit = apart * precisions
        logs = exponents[:, None] + fit[..., None] * (1.0 - 1.0 / scales)
        largest = logs.max(axis=2)
        average = np.log((np.exp(logs - largest[..., None]) * sides).sum(axis=2)) + largest
        return np.asarray(squares * precisions + average)
