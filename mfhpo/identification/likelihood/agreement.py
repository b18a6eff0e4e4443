"""Agreement of variances, where differences in the same blocks are compared.

Where they agree on one, the theorem of `mfhpo.knowledge.studentised` holds. Where they do not, a
pair's variance is a compromise, which no theorem covers; `make assumptions` measures what it is
worth ("quiet rivals", by blocks).
"""

import math

import numpy as np
from scipy.special import gammaln

from mfhpo.knowledge.arrays import FloatArray, IntArray

# Degrees of freedom that are tried; arms for which the last one does have one variance.
_DEGREES = np.append(2.0 ** np.arange(0, 11), 4096.0)

# Shared variances that are tried, over the pooled one.
_SCALES = np.geomspace(0.1, 3.0, 40)

# Of the logarithm of the likelihood: what may be lost by fewer degrees of freedom than fit best.
_CAUTION = 0.1


def agreement(squares: FloatArray, counts: IntArray) -> float:
    """Degrees of freedom that the other arms' variances are worth to an arm without repeats.

    The variances are taken as draws from a scaled inverse chi-squared distribution, whose degrees
    of freedom say how alike they are (Smyth 2004, "Linear models and empirical Bayes"). Of those
    that fit, by their likelihood, nearly as well as the best, the fewest are chosen; infinite where
    one variance for all does, 0 where nothing is known. The arguments have shape (K,): sums of
    squares around the arms' means, and numbers of values.
    """
    repeated = counts > 1
    if repeated.any() and not squares[repeated].any():
        return math.inf
    repeated &= squares > 0.0
    if repeated.sum() < 2:
        return 0.0
    own, spread = counts[repeated] - 1.0, squares[repeated]
    degrees = _DEGREES[:, None, None]
    shared = degrees * (spread.sum() / own.sum() * _SCALES)[:, None]
    likelihoods = (
        gammaln((degrees + own) / 2.0)
        - gammaln(degrees / 2.0)
        + degrees / 2.0 * np.log(shared)
        - (degrees + own) / 2.0 * np.log(shared + spread)
    )
    fits = likelihoods.sum(axis=2).max(axis=1)
    fewest = int(np.argmax(fits >= fits.max() - _CAUTION))
    return math.inf if fewest == len(_DEGREES) - 1 else float(_DEGREES[fewest])
