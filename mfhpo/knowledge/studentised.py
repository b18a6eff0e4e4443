"""Evidence for other means where the noise's variance is not known, valid at any time.

The null hypothesis says that the means are given ones, and the standard deviation sigma is any. The
alternatives have the standard deviation s sigma with one of several s <= 1, and means that are
normal around the given ones with the variance (s sigma)^2 / rho. Of the arms whose means are
compared, let Q be what the alternatives explain of the squares around the given means, and R what
is left of these. Other arms have any means; let R include their squares around their own mean. With
u = R / (2 sigma^2), the logarithm of the average likelihood ratio is, but for
``-ln(1 + n / rho) / 2`` for each arm that is compared,

    u Q / R + f(u),    f(u) = ln sum_k p_k s_k^-D exp(u (1 - 1 / s_k^2)).

D is the number of values of the arms that are compared, plus ``n - (1 + 1/2 + ... + 1/n)`` for each
other arm with n values. Then each s gives a supermartingale for normal noise of one variance,
whatever rule chooses the arms: the value k + 1 of another arm has the squared distance g (k + 1) /
k from the mean of the k before it, and ``s^-(k / (k + 1)) exp(g (1 - 1 / s^2) / (2 sigma^2))`` has
an expectation of at most 1 whatever that mean was. By Ville's inequality the average ever reaches 1
/ level with probability at most level.

As sigma may be any, what counts is the minimum over u, F(Q / R) (`log_evidence`). f is convex, so F
increases and is concave.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import fdtri, logsumexp

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray

# The squares of s. Weights are Cauchy in ln(1 - s^2), so that each D finds an s that suits it.
_SHARES = np.geomspace(0.98, 0.002, 34)
SCALES = np.append(1.0 - _SHARES, 1.0)
_CAUCHY = 1.0 / (1.0 + np.log(_SHARES / 0.2) ** 2)
LOG_WEIGHTS = np.log(np.append(0.98 * _CAUCHY / _CAUCHY.sum(), 0.02))

# Degrees of freedom are rounded down to whole numbers, or to powers of this.
_STEP = 1.02
_WHOLE_UP_TO = 50.0

# Harmonic numbers are looked up.
_HARMONIC = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1, 1024))))


def credited(counts: IntArray) -> FloatArray:
    """Return degrees of freedom of other arms with so many values, n - (1 + ... + 1/n)."""
    few = counts < len(_HARMONIC)
    harmonic = _HARMONIC[np.where(few, counts, 0)]
    # Never less than the harmonic number.
    large = np.log(np.maximum(counts, 1)) + np.euler_gamma + 0.5 / np.maximum(counts, 1)
    return np.asarray(counts - np.where(few, harmonic, large))


def rounded(degrees: FloatArray) -> FloatArray:
    """Return degrees of freedom rounded down, so that few different ones occur."""
    steps = np.floor(np.log(np.maximum(degrees, 1.0)) / math.log(_STEP))
    return np.where(degrees < _WHOLE_UP_TO, np.floor(degrees), _STEP**steps)


@lru_cache(maxsize=1024)
def _curve(degrees: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return increasing u, f(u), and -f'(u), the ratio Q / R that has its minimum at u."""
    u = np.concatenate(([0.0], np.geomspace(1e-3, 500.0, 1500) * max(degrees, 1.0)))
    exponents = LOG_WEIGHTS - degrees / 2.0 * np.log(SCALES) + u[:, None] * (1.0 - 1.0 / SCALES)
    values = logsumexp(exponents, axis=1)
    slopes = (np.exp(exponents - values[:, None]) * (1.0 / SCALES - 1.0)).sum(axis=1)
    return u, values, slopes


def log_evidence(ratios: FloatArray, degrees: FloatArray) -> FloatArray:
    """Return F(Q / R) for rounded degrees of freedom D, shape (n,) each."""
    found = np.full(ratios.shape, -np.inf)
    for value in np.unique(degrees[degrees > 0.0]):
        u, values, slopes = _curve(float(value))
        same = degrees == value
        found[same] = np.interp(
            ratios[same], slopes[::-1], (values + slopes * u)[::-1], left=-np.inf
        )
    return found


def log_evidence_with_others(
    distances: FloatArray,
    counts: FloatArray,
    squares: FloatArray,
    of_others: FloatArray,
    degrees: FloatArray,
    prior: float,
) -> FloatArray:
    """Compute the logarithm of the evidence against means at distances from the values', (n,).

    See `mfhpo.knowledge.student.log_evidence`. `of_others` are squares of other values, with
    `degrees` of freedom; the evidence is minus infinity without these.
    """
    moved = counts * distances**2
    explained = counts * moved / (counts + prior)
    left = squares + of_others + moved - explained
    degrees = np.where(degrees > 0.0, rounded(degrees + counts), 0.0)
    ratios = explained / np.where(left > 0.0, left, 1.0)
    return log_evidence(ratios, degrees) - np.log1p(counts / prior) / 2.0


def spread_more(
    squares: FloatArray,
    repeats: IntArray,
    of_others: FloatArray,
    degrees: FloatArray,
    chance: float,
) -> BoolArray:
    """Find squares that are larger than others explain, by an F-test with this `chance`."""
    known = (repeats > 0) & (degrees >= 1.0)
    n, d = np.where(known, repeats, 1.0), np.where(known, degrees, 1.0)
    return np.asarray(known & (squares > n * of_others / d * fdtri(n, d, 1.0 - chance)))
