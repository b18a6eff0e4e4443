"""Evidence of pairs of arms at one level, on the side where the leader is better; known variances.

Means on the other side of the null hypothesis, where the leader is worse or the other arm better,
only cost. Averaged over the means on one side alone, the likelihood ratio of an arm is multiplied
by 2 Phi(z), z being the distance of the sum of its values from the null hypothesis in units of
sqrt(n + rho) sigma: nearly 4 for the two arms of a pair that is nearly decided. A part of the
average is left to both sides, or the evidence against means that one of the two arms contradicts
would vanish.
"""

import math

import numpy as np
from scipy.special import ndtr

from mfhpo.knowledge.arrays import FloatArray

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

# The share of the average that is over means of the other arm that may be far off, as if it was to
# be decided after one value in the place of 16.
_FAR_SHARE = 0.15
_FAR = 1.0 / 16.0

MOST_GAIN = math.log(_BOTH_SIDES + 4.0 * (1.0 - _BOTH_SIDES))
"""The most that one side adds."""


def evidence(
    gaps: FloatArray, counts: FloatArray, variances: FloatArray, prior: float, wanted: float
) -> FloatArray:
    """Return the logarithm of the average likelihood ratio of pairs, shape (n,).

    The leader's mean exceeds the least that the null hypothesis says by `gaps`, shape (n,).
    `counts` and `variances` of the noise are the leader's and the other's, shape (2, n). The result
    is minus infinity where nothing is known, and may be any number on the same side of `wanted`.
    """
    found = np.full(len(gaps), -np.inf)
    told = (gaps > 0.0) & (counts > 0).all(axis=0) & np.isfinite(variances).all(axis=0)
    gaps, counts = gaps[told], counts[:, told]
    twice = 2.0 * np.maximum(variances[:, told], _LEAST_VARIANCE)
    for share, of_other in ((1.0 - _FAR_SHARE, prior), (_FAR_SHARE, _FAR * prior)):
        priors = np.array([[prior], [of_other]])
        # What a squared distance of 1 explains, and what the average costs.
        explained = counts**2 / (counts + priors) / twice
        offset = math.log(share) - (np.log1p(counts / priors) / 2.0).sum(axis=0)
        least = _least(gaps, explained, wanted - offset)
        found[told] = np.fmax(found[told], least + offset)
    return found


def _least(gaps: FloatArray, explained: FloatArray, needed: FloatArray) -> FloatArray:
    """Return the least average, or what tells as well whether it is as `needed`, shape (n,)."""
    of_last = explained[0] / explained.sum(axis=0)
    found: FloatArray = of_last * explained[1] * gaps**2
    open_ = (found >= needed - MOST_GAIN) | ~np.isfinite(needed)
    if open_.any():
        found[open_] = _on_one_side(gaps[open_], explained[:, open_])
    return found


def _on_one_side(gaps: FloatArray, explained: FloatArray) -> FloatArray:
    total = explained.sum(axis=0)
    splits = explained[1] / total
    rows, shifts, radius = np.arange(len(splits)), np.zeros(len(splits)), 1.0
    # Both the gap and the noise may be what is large.
    reach = (1.0 + _REACH / (gaps * np.sqrt(total)))[:, None]
    least = np.full(len(splits), np.inf)
    for _ in range(_ROUNDS):
        tried = shifts[:, None] + radius * _SHIFTS
        values = _averages(gaps, explained, splits[:, None] + tried * reach)
        best = values.argmin(axis=1)
        shifts = tried[rows, best]
        np.minimum(least, values[rows, best], out=least)
        radius *= _ZOOM
    return np.asarray(least - _SLACK)


def _averages(gaps: FloatArray, explained: FloatArray, splits: FloatArray) -> FloatArray:
    """Return the evidence with the leader's mean at these shares of the gap, shape (n, X)."""
    explained = explained[:, :, None]
    parts = np.stack([splits, 1.0 - splits]) * gaps[:, None]
    sides = (2.0 * ndtr(np.sqrt(2.0 * explained) * parts)).prod(axis=0)
    squares = (explained * parts**2).sum(axis=0)
    return np.asarray(squares + np.log(_BOTH_SIDES + (1.0 - _BOTH_SIDES) * sides))
