"""An interval for the score on new data of the same kind, beside the one about the data at hand."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

# Scores that differ by no more than this share of the largest are equal.
_ROUNDING = 1e-12


def interval_for_new_data(
    scores: Sequence[float], test_per_train: float, delta: float
) -> tuple[float, float]:
    """Return an approximate interval for the expected score on new data of the same kind.

    Scores on splits of the same data are not independent, because the splits share samples. The
    corrected resampled variance of their mean is (1 / J + n_test / n_train) * s^2 for J scores of
    variance s^2 (Nadeau and Bengio 2003, Section 4.1); Student's t has J - 1 degrees of freedom.

    Parameters
    ----------
    scores
        Of one setting on random splits, shape (J,).
    test_per_train
        Test samples of a split by its training samples.
    delta
        About the probability that the interval misses, in (0, 1).

    It is infinite for fewer than two scores, and for equal ones: they say nothing about the spread.
    """
    n = len(scores)
    rounding = _ROUNDING * float(np.abs(scores).max(initial=0.0))
    if n < 2 or not np.ptp(scores) > rounding:
        return -math.inf, math.inf
    variance = (1.0 / n + test_per_train) * float(np.var(scores, ddof=1))
    half = float(stdtrit(n - 1, 1.0 - float(delta) / 2.0)) * math.sqrt(variance)
    mean = float(np.mean(scores))
    return mean - half, mean + half


def new_data_in_words(
    interval: tuple[float, float], delta: float, n_splits: int | None = None
) -> str:
    """Return two lines: what the data at hand say, split so often or at random, and new ones."""
    low, high = interval
    said = "nothing is known yet"
    if math.isfinite(high - low):
        said = (
            f"in [{low:.5g}, {high:.5g}], wrong with probability about {delta:g} "
            f"(approximate: corrected resampled variance, Nadeau and Bengio 2003)"
        )
    splits = "random" if n_splits is None else f"these {n_splits}"
    return (
        f"  these data  interval and claim are about {splits} splits of these data\n"
        f"  new data    the score on new data of the same kind: {said}"
    )
