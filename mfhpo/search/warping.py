"""Numbers on the scale on which they matter, which need not be the one that they are given on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["warp", "warp_with_slopes"]

FloatArray = npt.NDArray[np.float64]

_END = 1e-6  # distance from an end of a range below which places are not told from each other


def warp(places: FloatArray, exponents: FloatArray) -> FloatArray:
    """Places in ranges from 0 to 1, stretched where little steps matter.

    A weight decay that is given from 1e-5 to 0.1, evenly, acts by orders of magnitude all the same:
    half of them are in the lowest hundredth of the range, which is hardly more than a point to a
    model with one scale for all of it. The distribution function of Kumaraswamy,
    ``1 - (1 - x^a)^b``, stretches the lower end where `a` is below 1, the upper end where `b` is,
    and leaves places as they are where both are 1.

    Places that are nearer to an end than 1e-6 count as that far from it, so that an end moves
    inwards when it is stretched; what is outside of the range stays as far outside.

    Parameters
    ----------
    places
        Shape (n, d).
    exponents
        Logarithms of all `a`, then of all `b`, shape (2 d,), from -3 to 3.

    Returns
    -------
    array of shape (n, d)

    References
    ----------
    Snoek, Swersky, Zemel and Adams, Input warping for Bayesian optimization of non-stationary
    functions, ICML 2014.

    Examples
    --------
    >>> places = np.array([[0.0], [0.001], [0.1], [1.0]])
    >>> warp(places, np.log([0.2, 1.0])).round(2).ravel().tolist()
    [0.06, 0.25, 0.63, 1.0]
    """
    return warp_with_slopes(places, exponents)[0]


def warp_with_slopes(
    places: FloatArray, exponents: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Warped places, and their derivatives by the logarithms of `a` and of `b`, shape (n, d)."""
    a, b = np.exp(exponents).reshape(2, -1)
    inside = np.clip(places, _END, 1.0 - _END)
    outside = places - np.clip(places, 0.0, 1.0)
    power = inside**a
    rest = 1.0 - power
    left = rest**b
    by_a = a * b * left / rest * power * np.log(inside)
    by_b = -b * left * np.log(rest)
    return 1.0 - left + outside, by_a, by_b
