"""How alike configurations are to a model: their distances, warped and scaled, and kernels."""

import numpy as np

from mfhpo.knowledge.arrays import FloatArray

FINER = 5
"""The rough part's share of the scales is one in so many."""
_END = 1e-6  # distance from an end of a range below which places are not told from each other


def warp(places: FloatArray, exponents: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Warp places (n, d) by the distribution function of Kumaraswamy, ``1 - (1 - x^a)^b``.

    It stretches the lower end where `a` is below 1, the upper end where `b` is (Snoek, Swersky,
    Zemel and Adams, Input warping for Bayesian optimization of non-stationary functions, ICML
    2014). The `exponents` are logarithms of all `a`, then of all `b`, shape (2 d,). Returns warped
    places, and derivatives by the logarithms of `a` and of `b`.
    """
    a, b = np.exp(exponents).reshape(2, -1)
    inside = np.clip(places, _END, 1.0 - _END)
    outside = places - np.clip(places, 0.0, 1.0)
    log = np.log(inside)
    power = np.exp(a * log)
    rest = 1.0 - power
    log_rest = np.log(rest)
    left = np.exp(b * log_rest)
    by_a = a * b * left / rest * power * log
    by_b = -b * left * log_rest
    return 1.0 - left + outside, by_a, by_b


# In place, because to allocate large arrays takes longer than to compute with them.


def five_halves(distance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the Matérn kernel of 5/2, and 3/5 of its derivative by a log scale."""
    change, kernel = three_halves(distance)
    kernel *= distance
    kernel *= distance
    kernel /= 3.0
    kernel += change
    return kernel, change


def three_halves(distance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the Matérn kernel of 3/2, and a fifth of its derivative by a log scale."""
    decay = -distance
    np.exp(decay, out=decay)
    kernel = distance + 1.0
    kernel *= decay
    return kernel, decay


def distances(features: FloatArray, others: FloatArray, scales: FloatArray) -> FloatArray:
    """Return distances times the square root of 5, shape (n, m)."""
    left, right = np.sqrt(5.0) * features / scales, np.sqrt(5.0) * others / scales
    squares: FloatArray = -2.0 * left @ right.T
    squares += (left**2).sum(axis=1)[:, None]
    squares += (right**2).sum(axis=1)
    np.maximum(squares, 1e-12, out=squares)
    return np.sqrt(squares, out=squares)
