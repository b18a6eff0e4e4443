"""Evidence against means where the noise is normal and its variance unknown, valid at any time.

By a configuration's own values
-------------------------------
The n values of one configuration have the mean m, and squares R around it. Against the true mean
mu, with d = m - mu, the likelihood ratio averaged over standard deviations (by the right Haar
measure) and over effects of ``(alternative - mu) / sigma ~ N(0, 1 / rho)`` is

    sqrt(rho / (n + rho)) ((n + rho) V / ((n + rho) V - (n d)^2))^(n / 2),  V = R + n d^2

(Lai 1976; Wang and Ramdas 2024, "Anytime-valid t-tests and confidence sequences"). It is a
nonnegative martingale of mean 1 in the filtration of the configuration's own values up to scale, so
it ever reaches 1 / level with probability at most level (Ville's inequality), whatever decides how
many values there are.

Effects of one sign alone multiply it by 2 T(t), T being Student's distribution with n degrees of
freedom and ``t = n d sqrt(n) / sqrt((n + rho) R + rho n d^2)``. A part of the average is left to
both signs, so that evidence never vanishes where a mean contradicts the null hypothesis.

Two configurations. The values of one are independent of those of the other, and each logarithm of
the evidence has a supremum that is at most exponential. So the sum of the two exceeds y at any
numbers of values, however these are chosen, with probability at most ``(1 + y) exp(-y)``.

By those of others, too
-----------------------
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

As sigma may be any, what counts is the minimum over u, F(Q / R) (`log_evidence_of_ratios`). f is
convex, so F increases and is concave.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import fdtri, lambertw, logsumexp, stdtr

from mfhpo.knowledge.arrays import BoolArray, FloatArray, IntArray

BOTH_SIDES = 0.1
"""The share of the average that is over effects of both signs."""

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


def log_evidence(
    distances: FloatArray, counts: FloatArray, squares: FloatArray, prior: float
) -> FloatArray:
    """Compute the logarithm of the evidence against means at signed distances below the values'.

    It is 0 for counts below 2. A smaller `prior`, the rho above, suits larger effects.
    """
    n = np.maximum(counts, 1.0)
    moved = n * distances**2
    left = (n + prior) * squares + prior * moved
    is_spread = left > 0.0
    left = np.where(is_spread, left, 1.0)
    ratios = np.where(is_spread, (n + prior) * (squares + moved) / left, 1.0)
    t = np.where(is_spread, n * distances * np.sqrt(n / left), 0.0)
    sides = BOTH_SIDES + (1.0 - BOTH_SIDES) * 2.0 * stdtr(n, t)
    found = (n * np.log(ratios) + np.log(prior / (n + prior))) / 2.0 + np.log(sides)
    return np.where(counts < 2.0, 0.0, found)


@lru_cache(maxsize=64)
def wanted_of_two(level: float) -> float:
    """Return the y with ``(1 + y) exp(-y) = level``."""
    return -1.0 - float(np.real(lambertw(-level / math.e, -1)))


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


def log_evidence_of_ratios(ratios: FloatArray, degrees: FloatArray) -> FloatArray:
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
    """Compute it by the squares of other values, too, with `degrees` of freedom (-inf without)."""
    moved = counts * distances**2
    explained = counts * moved / (counts + prior)
    left = squares + of_others + moved - explained
    degrees = np.where(degrees > 0.0, rounded(degrees + counts), 0.0)
    ratios = explained / np.where(left > 0.0, left, 1.0)
    return log_evidence_of_ratios(ratios, degrees) - np.log1p(counts / prior) / 2.0


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
