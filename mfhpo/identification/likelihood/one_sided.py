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
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from mfhpo.knowledge.arrays import BoolArray, FloatArray
from mfhpo.knowledge.studentised import LOG_WEIGHTS, SCALES, log_evidence, rounded

# The share of the average that is over both sides.
_BOTH_SIDES = 0.1

# The minimum is looked for on ever finer grids: of where between the two means the null hypothesis
# has both, and of the logarithm of the precision, around where it is likely and, while little is
# known of the noise, where it is low. Of 1,100 random pairs, 3 missed it by more than the slack,
# none by more than .06.
_SHIFTS = np.linspace(-1.0, 1.0, 7)
_PRECISIONS = np.linspace(-1.0, 1.0, 5)
_LOW = -4.0
_LITTLE = 70.0
_ROUNDS = 12
_ZOOM = 0.7
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


def most_gain(n_means: int) -> float:
    """What one side adds at most, for so many means that are compared."""
    return math.log(_BOTH_SIDES + 2.0**n_means * (1.0 - _BOTH_SIDES))


@dataclass(frozen=True)
class Pairs:
    """Pairs of a leader and another arm at one level; all arrays have shape (n,).

    Parameters
    ----------
    gaps
        By how much the leader's mean exceeds the least that the null hypothesis says, such as the
        other's mean less epsilon; positive.
    counts, variances
        Numbers of values, and the noise's variance, of the leader and of the other, shape (2, n);
        or of their differences, one for each block in which both were evaluated, shape (1, n).
    degrees
        Degrees of freedom of the variances; None where they are known.
    """

    gaps: FloatArray
    counts: FloatArray
    variances: FloatArray
    degrees: FloatArray | None

    def evidence(self, prior: float, wanted: float) -> FloatArray:
        """The logarithm of the average likelihood ratio, shape (n,), with the count rho `prior`.

        It reaches `wanted` where that does, and may be another number on the same side of it; minus
        infinity works it out.
        """
        found: FloatArray = np.full(len(self.gaps), -np.inf)
        for share, of_other in ((1.0 - _FAR_SHARE, prior), (_FAR_SHARE, _FAR * prior)):
            average = _Average(self, np.array([[prior], [of_other]])[-len(self.counts) :])
            part = average.evidence(wanted - math.log(share)) + math.log(share)
            found = np.where(part > found, part, found)
        return np.asarray(found)


@dataclass(frozen=True)
class _Average:
    """The average with given counts rho for each row of counts, shape (2 or 1, 1)."""

    pairs: Pairs
    priors: FloatArray

    def evidence(self, wanted: float) -> FloatArray:
        """At least `wanted` if and only if the average is; elsewhere a bound is enough."""
        penalties = (np.log1p(self.pairs.counts / self.priors) / 2.0).sum(axis=0)
        hopeful = wanted - most_gain(len(self.priors)) + penalties
        found = self._at_most()
        open_ = (found >= hopeful) | ~np.isfinite(hopeful)
        found[open_] = self._chosen(open_)._on_both_sides()
        open_ &= found >= hopeful
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

    def _at_most(self) -> FloatArray:
        """What the evidence on both sides is at most: that of a variance as it is estimated."""
        explained, _, rest = self._explained
        of_last = 1.0 if len(explained) == 1 else explained[0] / explained.sum(axis=0)
        found = of_last * explained[-1] * self.pairs.gaps**2
        degrees = self._degrees
        if degrees is None:
            return np.asarray(found)
        with np.errstate(divide="ignore"):
            return np.asarray(found * (degrees / (2.0 * rest)))

    def _chosen(self, chosen: BoolArray) -> "_Average":
        pairs = self.pairs
        some = Pairs(
            pairs.gaps[chosen],
            pairs.counts[:, chosen],
            pairs.variances[:, chosen],
            None if pairs.degrees is None else pairs.degrees[chosen],
        )
        return _Average(some, self.priors)

    @cached_property
    def _explained(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What a squared distance of 1 has explained, and left, by twice the variance; the rest.

        Shape of the counts, and (n,). Where no noise is seen, the unit is arbitrary.
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

    @cached_property
    def _degrees(self) -> FloatArray | None:
        """The degrees of freedom with those of the means that are compared, rounded."""
        degrees = self.pairs.degrees
        return None if degrees is None else rounded(degrees + float(len(self.priors)))

    def _on_both_sides(self) -> FloatArray:
        explained, left, rest = self._explained
        squares, degrees = self.pairs.gaps**2, self._degrees
        if degrees is None:
            return self._at_most()
        if len(explained) == 1:
            return log_evidence(explained[0] * squares / (rest + left[0] * squares), degrees)
        return log_evidence(self._least_ratio(explained, left, rest), degrees)

    def _least_ratio(self, explained: FloatArray, left: FloatArray, rest: FloatArray) -> FloatArray:
        """The smallest ratio of what is explained to what is left, over all splits of the gap."""
        squares = self.pairs.gaps**2
        both = explained[0] * left[1] + explained[1] * left[0]
        # The ratio for which explained - ratio * (rest + left) has the minimum 0.
        a = left[0] * left[1] * squares + rest * left.sum(axis=0)
        b = squares * both + rest * explained.sum(axis=0)
        c = explained[0] * explained[1] * squares
        return np.asarray(2.0 * c / (b + np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))))

    def _where_likely(self) -> FloatArray:
        """The evidence on one side where the minimum on both sides is about, never below it."""
        splits, centres, _ = self._start()
        return self._averages(splits[:, None], np.exp(centres)[:, None])[:, 0]

    def _start(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Shares of the gap and logarithms of the precision, and what squares explain in all."""
        explained, left, rest = self._explained
        totals = explained.sum(axis=0)
        # Where both means are closest to the null hypothesis.
        splits = explained[1] / totals if len(explained) == 2 else np.ones(len(totals))
        degrees = self._degrees
        if degrees is None:
            return splits, np.zeros(len(totals)), totals
        squares = self._parts(splits[:, None])[:, :, 0] ** 2
        apart = rest + (left * squares).sum(axis=0)
        ratios = (explained * squares).sum(axis=0) / apart
        # Where the precision would be if every scale could be chosen.
        return splits, np.log(degrees / (2.0 * (1.0 + ratios) * apart)), totals

    def _on_one_side(self) -> FloatArray:
        splits, centre, totals = self._start()
        n = len(splits)
        degrees = self._degrees
        starts = [(centre, np.zeros(1) if degrees is None else _PRECISIONS)]
        if degrees is not None and degrees.min() < _LITTLE:
            starts.append((centre + _LOW, -_LOW * _PRECISIONS))
        shifts_tried = _SHIFTS if len(self.priors) == 2 else np.zeros(1)
        rows, least = np.arange(n), np.full(n, np.inf)
        for centres, steps in starts:
            shifts, radius = np.zeros(n), 1.0
            for _ in range(_ROUNDS):
                logs = np.repeat(centres[:, None] + radius * steps, len(shifts_tried), axis=1)
                shift = np.tile(shifts[:, None] + radius * shifts_tried, len(steps))
                precisions = np.exp(logs)
                # Both the gap and the noise may be what is large.
                unit = self.pairs.gaps * np.sqrt(totals)
                reach = 1.0 + _REACH / unit[:, None] / np.sqrt(precisions)
                values = self._averages(splits[:, None] + shift * reach, precisions)
                best = values.argmin(axis=1)
                shifts, centres = shift[rows, best], logs[rows, best]
                radius *= _ZOOM
            np.minimum(least, values[rows, best], out=least)
        return np.asarray(least - _SLACK)

    def _parts(self, splits: FloatArray) -> FloatArray:
        """The distances of each mean from the null hypothesis, for shares of the gap (n, X)."""
        shares = np.stack([splits, 1.0 - splits])[: len(self.priors)]
        return np.asarray(shares * self.pairs.gaps[:, None])

    def _averages(self, splits: FloatArray, precisions: FloatArray) -> FloatArray:
        """The evidence at shares of the gap and precisions, shape (n, P) each."""
        explained, left, rest = self._explained
        degrees = self._degrees
        exponents, scales = np.zeros((len(rest), 1)), np.ones(1)
        if degrees is not None:
            exponents, scales = LOG_WEIGHTS - degrees[:, None] / 2.0 * np.log(SCALES), SCALES
        parts = self._parts(splits)
        squares = (explained[:, :, None] * parts**2).sum(axis=0)
        apart = rest[:, None] + (left[:, :, None] * parts**2).sum(axis=0)
        # Axes: mean, pair, point, scale of the alternative.
        distances = np.sqrt(2.0 * explained)[:, :, None] * parts
        roots = np.sqrt(precisions[..., None] / scales)
        sides = (2.0 * ndtr(distances[..., None] * roots)).prod(axis=0)
        sides = _BOTH_SIDES + (1.0 - _BOTH_SIDES) * sides
        fit = apart * precisions
        logs = exponents[:, None] + fit[..., None] * (1.0 - 1.0 / scales)
        largest = logs.max(axis=2)
        average = np.log((np.exp(logs - largest[..., None]) * sides).sum(axis=2)) + largest
        return np.asarray(squares * precisions + average)
