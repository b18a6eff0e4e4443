"""Evidence against a mean of bounded values, drawn without replacement, at all times at once.

The values lie in [0, 1] and come in random order from a set of N. If the mean of all is m, the next
one of them has, given the t values before it with the sum S, the expectation

    mu_t = (N m - S) / (N - t).

So whoever bets that the mean is larger, and has the capital product of ``1 + b_t (x_t - mu_t)``
with bets b_t that only look back, wins nothing on average as long as the mean is at most m: the
capital ever reaches 1 / level with probability at most level (Ville's inequality; Waudby-Smith and
Ramdas 2020, "Confidence sequences for sampling without replacement"). Without an end of the set,
mu_t is m. The capital is split among several bets, each cut where it would risk more than a share
of itself. It is then smaller for every larger m, so that bounds on the mean can be searched for.
"""

import math

import numpy as np

from mfhpo.knowledge.arrays import FloatArray

# Bets for differences of about 0.005 to 0.5 of the range; the last one is always cut.
_BETS = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, np.inf])

# The largest share of the capital that a bet may lose at once.
_MOST_LOST = 0.75

_ROUNDING = 1e-12  # of the range: sums of equal values differ by less

_HALVINGS = 30  # of the range, to find a bound


def log_evidence(values: FloatArray, mean: float, size: float) -> float:
    """Compute the logarithm of the most evidence so far that the mean is larger than `mean`.

    The `values`, shape (n,), are in the order in which they were drawn. The `size` of their set is
    infinite where they are drawn independently. The result is at least 0, and infinite where the
    values left cannot bring the mean down to `mean`.

    Examples
    --------
    >>> wins = np.ones(20)
    >>> round(log_evidence(wins, 0.5, math.inf), 1), round(log_evidence(wins, 0.5, 50), 1)
    (9.9, 15.3)
    >>> log_evidence(wins, 0.5, 39)
    inf
    """
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    if math.isinf(size):
        expected = np.full(n, mean)
    else:
        # The last value leaves nothing to draw from: the mean is known.
        if (size * mean - sums < -_ROUNDING * size).any():
            return math.inf
        expected = (size * mean - sums[:-1]) / (size - np.arange(n))
    expected = np.clip(expected, _ROUNDING, 1.0)
    bets = np.minimum(_BETS[:, None], _MOST_LOST / expected)
    capital = np.cumsum(np.log1p(bets * (values - expected)), axis=1)
    together = np.logaddexp.reduce(capital, axis=0) - math.log(len(_BETS))
    return float(together.max(initial=0.0))


def bounds(values: FloatArray, size: float, level: float) -> tuple[float, float]:
    """Return bounds on the mean of a set of values in [0, 1], of which some were drawn.

    Either is ever wrong with probability at most `level` / 2. See `log_evidence`.
    """
    if len(values) >= size:
        mean = float(np.mean(values))
        return mean, mean
    return _least(values, size, level), 1.0 - _least(1.0 - values, size, level)


def _least(values: FloatArray, size: float, level: float) -> float:
    wanted = math.log(2.0 / level)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if log_evidence(values, middle, size) >= wanted:
            low = middle
        else:
            high = middle
    return low
