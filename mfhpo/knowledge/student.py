"""Evidence against a mean where the noise is normal and its variance is not known, at all times.

The n values of one configuration have the mean m, and squares R around it. Against the true mean
mu, with d = m - mu, the likelihood ratio averaged over standard deviations (by the right Haar
measure) and over effects of ``(alternative - mu) / sigma ~ N(0, 1 / rho)`` is

    sqrt(rho / (n + rho)) ((n + rho) V / ((n + rho) V - (n d)^2))^(n / 2),  V = R + n d^2

(Lai 1976; Wang and Ramdas 2024, "Anytime-valid t-tests and confidence sequences"). It is a
nonnegative martingale of mean 1 in the filtration of the configuration's own values up to scale, so
it ever reaches 1 / level with probability at most level (Ville's inequality), whatever decides how
many values there are. Only the configuration's own values enter: nothing is supposed about the
spread of the others.

Effects of one sign alone multiply it by 2 T(t), T being Student's distribution with n degrees of
freedom and ``t = n d sqrt(n) / sqrt((n + rho) R + rho n d^2)``. A part of the average is left to
both signs, so that evidence never vanishes where a mean contradicts the null hypothesis.

Two configurations. The values of one are independent of those of the other, and each logarithm of
the evidence has a supremum that is at most exponential. So the sum of the two exceeds y at any
numbers of values, however these are chosen, with probability at most ``(1 + y) exp(-y)``.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import lambertw, stdtr

from mfhpo.knowledge.arrays import FloatArray

BOTH_SIDES = 0.1
"""The share of the average that is over effects of both signs."""


def log_evidence(
    distances: FloatArray, counts: FloatArray, squares: FloatArray, prior: float
) -> FloatArray:
    """Compute the logarithm of the evidence against means at signed distances below the values'.

    It is large where a distance is large and positive, and 0 for counts below 2. `squares` are sums
    of squared deviations from the values' mean. A smaller `prior`, the rho above, suits larger
    effects.
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
