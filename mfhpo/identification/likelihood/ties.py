"""Samples whose values may be equal by chance, as scores on few rows of data often are.

The variance of normal values needs no correction. Coarse values, of which more than half are equal,
have a variance that is 0 or far too small in most samples. So a variance is added for what the
equal ones may hide. Of n independent values, an event with a share above `unseen_share(n, level)`
is missing with probability below the level. So up to that share of the equal values may differ on
other replicates. They then differ by as much as the sample's other values, or as values of the race
where all are equal. Where nothing varies, nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray

_ROUNDING = 1e-14  # of the largest value: what means and differences of equal values vary by


@dataclass(frozen=True)
class Samples:
    """Several samples, one in each row; all arrays have shape (n,).

    The `variances` are 0 where rounding explains what values vary by. The `steps` are mean squares
    by which values differ from the most frequent one, where more than half are equal to it; else
    the variances. The variance that equal values may hide is `hidden`, for each unit of the share
    that may be unseen.
    """

    counts: IntArray
    means: FloatArray  # 0 where there is no value
    variances: FloatArray
    steps: FloatArray
    hidden: FloatArray

    @classmethod
    def of(cls, values: FloatArray, largest: float, usual: float) -> Samples:
        """Describe samples of values or of differences, shape (n, size), NaN where there is none.

        `largest` is the largest value that was rounded, and `usual` the step of samples without two
        different values (see `usual_step`).
        """
        rounding = _ROUNDING * largest
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
        return cls(counts, means, variances, steps, hidden)

    def hidden_at(self, level: float) -> FloatArray:
        """Return the variance that equal values may hide, up to probability `level`, (n,)."""
        unseen = 1.0 - level ** (1.0 / np.maximum(self.counts, 1))
        return np.multiply(unseen, self.hidden, out=np.zeros(len(unseen)), where=unseen > 0.0)

    @property
    def constant(self) -> BoolArray:
        """Which samples have no two different values."""
        return np.asarray(self.variances == 0.0)


def usual_step(values: FloatArray) -> float:
    """Return the mean step of the rows that vary, (K, n), NaN without a value; infinite if none."""
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    samples = Samples.of(values, largest, 0.0)
    return float(samples.steps[~samples.constant].mean()) if not samples.constant.all() else np.inf


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
