"""Parts that a claim about these data leaves out: the excess of a winner's mean, and new data.

The excess comes from being chosen by the same evaluations. The mean that came out largest is, on
average, too large by

    E[Y_w - mu_w | Y_w > Y_i for all i],    Y_i ~ N(mu_i, v_i) independent,

where v_i is the variance of the mean Y_i. The true means mu_i are not known. The observed means
spread more than the true ones, so that the excess would come out too small with these. Empirical
Bayes moves them towards their weighted mean, by the positive-part estimate of DerSimonian and Laird
(1986) of how much the true ones spread. That is too much where one configuration is far ahead, so
the observed means are moved two thirds of that way.

This is no exact correction. For fixed numbers of values, its tests hold it to half a standard error
of bias; the plain mean has up to 1.4. It ignores that a race stops once the winner looks good.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from mfhpo.knowledge.arrays import FloatArray

# How far the observed means are moved. Measured: the bias that is left with ties is then about as
# large as the one of the other sign where one configuration is three standard errors ahead.
_SHARE = 2.0 / 3.0

# The least variance, as a share of the largest: smaller ones change nothing but the rounding.
_LEAST_SHARE = 1e-6

# Points of the standard normal at which the expectation is summed, in standard deviations.
_POINTS = np.linspace(-7.0, 7.0, 281)


def excess(means: npt.ArrayLike, variances: npt.ArrayLike, winner: int) -> float:
    """Return by how much the winner's mean is too large on average, having been chosen for it.

    `means` are the observed ones, larger is better, with the `variances` of these means, (K,).
    """
    y, v = np.asarray(means, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    rivals = np.flatnonzero((y <= y[winner]) & (np.arange(len(y)) != winner))
    if not rivals.size or not (v > 0.0).all():
        return 0.0
    v = np.maximum(v, _LEAST_SHARE * v.max())
    likely = y + _SHARE * (_shrunk(y, v) - y)
    scale = float(np.sqrt(v[winner]))
    ahead = likely[winner] + scale * _POINTS[:, None] - likely[rivals]
    weights = np.exp(-0.5 * _POINTS**2) * ndtr(ahead / np.sqrt(v[rivals])).prod(axis=1)
    return scale * float(_POINTS @ weights / weights.sum())


def excess_of(values: Sequence[FloatArray | Sequence[float]], winner: int) -> float:
    """Return the excess of the winner's mean, given the values of each configuration.

    Without a spread of its own, a configuration gets the others' mean variance.
    """
    counts = np.array([np.size(each) for each in values])
    own = np.array([np.var(each, ddof=1) if np.ptp(each) > 0.0 else 0.0 for each in values])
    if not own.any():
        return 0.0
    own[own == 0.0] = own[own > 0.0].mean()
    return excess([np.mean(each) for each in values], own / counts, winner)


def excess_in_blocks(values: FloatArray, winner: int, size: float = math.inf) -> float:
    """Return the excess of the winner's mean, given values in its blocks (K, B), NaN without one.

    The blocks are drawn from `size` ones. Their effect on all alike has no part in the choice. So
    the means are over shared blocks, with the variance that is left of rows and blocks.
    """
    shared = values[:, ~np.isnan(values).any(axis=0)]
    n_rows, n_shared = shared.shape
    if n_rows < 2 or n_shared < 2:
        return 0.0
    apart = shared - shared.mean(axis=0)
    left = apart - apart.mean(axis=1, keepdims=True)
    variance = float((left**2).sum()) / ((n_rows - 1) * (n_shared - 1))
    variance *= max(0.0, 1.0 - n_shared / size)
    of_shared = excess(apart.mean(axis=1), np.full(n_rows, variance / n_shared), winner)
    return of_shared * float(n_shared / values.shape[1])


def _shrunk(means: FloatArray, variances: FloatArray) -> FloatArray:
    """Return the means, moved towards their weighted mean as far as noise explains their spread."""
    weights = 1.0 / variances
    total = weights.sum()
    centre = weights @ means / total
    surplus = weights @ (means - centre) ** 2 - (len(means) - 1)
    spread = max(0.0, float(surplus / (total - weights @ weights / total)))
    weights = 1.0 / (variances + spread)
    centre = weights @ means / weights.sum()
    return np.asarray(centre + spread / (spread + variances) * (means - centre))


# Scores that differ by no more than this share of the largest are equal.
_ROUNDING = 1e-12


def interval_for_new_data(
    scores: Sequence[float], test_per_train: float, delta: float
) -> tuple[float, float]:
    """Return an approximate interval for the expected score on new data of the same kind.

    Scores of one setting on J splits of the same data are not independent, because the splits share
    samples. The corrected resampled variance of their mean is (1 / J + n_test / n_train) * s^2 for
    scores of variance s^2 (Nadeau and Bengio 2003, Section 4.1); Student's t has J - 1 degrees of
    freedom. Equal scores say nothing about the spread: the interval is infinite.
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
