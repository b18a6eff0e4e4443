"""How places in a range from 0 to 1 are stretched to the scale on which they matter."""

import numpy as np

from mfhpo.knowledge.arrays import FloatArray

_END = 1e-6  # distance from an end of a range below which places are not told from each other


def warp(places: FloatArray, exponents: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Warp places by the distribution function of Kumaraswamy, ``1 - (1 - x^a)^b``.

    It stretches the lower end where `a` is below 1, the upper end where `b` is, and leaves places
    as they are where both are 1. Places nearer to an end than 1e-6 count as that far from it; what
    is outside the range stays as far outside.

    Parameters
    ----------
    places
        Shape (n, d).
    exponents
        Logarithms of all `a`, then of all `b`, shape (2 d,), from -3 to 3.

    Returns
    -------
    warped, by_a, by_b : arrays of shape (n, d)
        The places, and their derivatives by the logarithms of `a` and of `b`.

    References
    ----------
    Snoek, Swersky, Zemel and Adams, Input warping for Bayesian optimization of non-stationary
    functions, ICML 2014.

    Examples
    --------
    >>> places = np.array([[0.0], [0.001], [0.1], [1.0]])
    >>> warp(places, np.log([0.2, 1.0]))[0].round(2).ravel().tolist()
    [0.06, 0.25, 0.63, 1.0]
    """
    a, b = np.exp(exponents).reshape(2, -1)
    inside = np.clip(places, _END, 1.0 - _END)
    outside = places - np.clip(places, 0.0, 1.0)
    power = inside**a
    rest = 1.0 - power
    left = rest**b
    by_a = a * b * left / rest * power * np.log(inside)
    by_b = -b * left * np.log(rest)
    return 1.0 - left + outside, by_a, by_b
