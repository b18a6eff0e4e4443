"""Samples whose values may be equal by chance, as scores on few rows of data often are.

Coarse values, of which more than half are equal, have a variance that is 0 or far too small in most
samples. So a variance is added for what the equal ones may hide. Of n independent values, an event
with a share above ``1 - level^(1/n)`` is missing with probability below the level. So up to that
share of the equal values may differ on other replicates, by as much as the sample's other values,
or as values of the race where all are equal. Where nothing varies, nothing is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.studentised import log_evidence

_ROUNDING = 1e-14  # of the largest value: what means and differences of equal values vary by


@dataclass(frozen=True)
class Samples:
    """Several samples, one in each row; all arrays have shape (n,)."""

    counts: IntArray
    means: FloatArray  # 0 where there is no value
    variances: FloatArray  # 0 where rounding explains what values vary by
    hidden: FloatArray  # that equal values may hide, for each unit of the share that may be unseen

    @classmethod
    def of(cls, values: FloatArray, seen: FloatArray) -> Samples:
        """Describe samples of values or of differences, shape (n, size), NaN where there is none.

        They come from what was `seen` in the race, shape (K, size). Samples without two different
        values may hide the mean step of the arms that vary.
        """
        rounding = _ROUNDING * float(np.nanmax(np.abs(seen), initial=0.0))
        of_race, steps = _described(seen, rounding, 0.0)
        varies = of_race.variances != 0.0
        usual = float(steps[varies].mean()) if varies.any() else np.inf
        return _described(values, rounding, usual)[0]

    def hidden_at(self, level: float) -> FloatArray:
        """Return the variance that equal values may hide, up to probability `level`, (n,)."""
        unseen = 1.0 - level ** (1.0 / np.maximum(self.counts, 1))
        return np.multiply(unseen, self.hidden, out=np.zeros(len(unseen)), where=unseen > 0.0)

    def squares_at(self, wanted: float) -> FloatArray:
        """Return sums of squares with what equal values may hide at this logarithm, shape (n,)."""
        variances = self.variances + self.hidden_at(math.exp(-wanted))
        variances[self.counts <= 1] = 0.0  # else unknown
        return (self.counts - 1.0) * variances

    def evidence(self, epsilon: float, wanted: float, prior: float) -> FloatArray:
        """Compute the logarithms of the evidence against means below -epsilon, shape (n,).

        It is minus infinity where nothing is known, or a mean seems to be below. What is `wanted`
        of it says how unlikely differences must be that are not seen among equal ones.
        """
        gaps, squares = self.means + epsilon, self.squares_at(wanted)
        told = (gaps > 0.0) & (self.counts > 1) & np.isfinite(squares) & (squares > 0.0)
        found = np.full(len(gaps), -np.inf)
        counts = self.counts[told].astype(float)
        found[told] = log_evidence(gaps[told], counts, squares[told], prior)
        return found


def _described(values: FloatArray, rounding: float, usual: float) -> tuple[Samples, FloatArray]:
    """Return samples and steps, (n,), which are `usual` where no two values differ.

    Steps are mean squares by which values differ from the most frequent one, where more than half
    are equal to it; else the variances.
    """
    present = ~np.isnan(values)
    counts = present.sum(axis=1)
    means = np.where(present, values, 0.0).sum(axis=1) / np.maximum(counts, 1)
    errors = np.where(present, values - means[:, None], 0.0)
    variances = (errors**2).sum(axis=1) / np.maximum(counts - 1, 1)
    sizes, modes = _most_frequent(values, rounding)
    others = counts - sizes
    variances = np.where(others <= 0, 0.0, variances)
    apart = np.where(present, values - modes[:, None], 0.0)
    squares = (apart**2).sum(axis=1) / np.maximum(others, 1)
    often = 2 * sizes > counts
    steps = np.where(others > 0, np.where(often, squares, variances), usual)
    hidden = np.where(often, sizes / np.maximum(counts, 1) * steps, 0.0)
    return Samples(counts, means, variances, hidden), steps


def _most_frequent(values: FloatArray, rounding: float) -> tuple[IntArray, FloatArray]:
    """Return the count of each row's most frequent value, and the value, shape (n,) each."""
    ordered = np.sort(values, axis=1)  # NaN come last, and are equal to nothing
    at = np.arange(values.shape[1])
    begins = np.ones(ordered.shape, dtype=bool)
    begins[:, 1:] = ~(np.diff(ordered, axis=1) <= rounding)
    lengths = at - np.maximum.accumulate(np.where(begins, at, 0), axis=1) + 1
    last = np.argmax(lengths, axis=1)
    rows = np.arange(len(values))
    return lengths[rows, last], ordered[rows, last]
