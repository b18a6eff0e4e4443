"""Numbers on the scale on which they matter, which need not be the one that they are given on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["warped", "warped_with_slopes"]

FloatArray = npt.NDArray[np.float64]

_END = 1e-6  # as near to its ends as a number is told from them
_FAR = 3.0  # of a logarithm: far beyond what a fit comes to


def warped(places: FloatArray, logs: FloatArray) -> FloatArray:
    """Places in ranges from 0 to 1, stretched where little steps matter.

    A weight decay that is drawn evenly from 1e-5 to 0.1 acts by orders of magnitude all the same:
    nearly all of them are in the lowest hundredth of the range, and for a model with one scale
    for all of it what is there is a point. The distribution function of Kumaraswamy,
    ``1 - (1 - x^a)^b``, stretches the lower end where `a` is below 1, the upper end where `b` is,
    and leaves places as they are where both are 1.

    Parameters
    ----------
    places
        From 0 to 1, shape (n, d).
    logs
        Logarithms of all `a`, then of all `b`, shape (2 d,).

    Returns
    -------
    array of shape (n, d)
        From 0 to 1.

    References
    ----------
    Snoek, Swersky, Zemel and Adams, Input warping for Bayesian optimization of non-stationary
    functions, ICML 2014.

    Examples
    --------
    >>> places = np.array([[0.0], [0.001], [0.1], [1.0]])
    >>> warped(places, np.log([0.2, 1.0])).round(2).ravel().tolist()
    [0.06, 0.25, 0.63, 1.0]
    """
    return warped_with_slopes(places, logs)[0]


def warped_with_slopes(
    places: FloatArray, logs: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Warped places, and their derivatives by the logarithms of `a` and of `b`, shape (n, d)."""
    a, b = np.exp(np.clip(logs, -_FAR, _FAR)).reshape(2, -1)
    inside = np.clip(places, _END, 1.0 - _END)
    power = inside**a
    rest = 1.0 - power
    left = rest**b
    by_a = a * b * left / rest * power * np.log(inside)
    by_b = -b * left * np.log(rest)
    return 1.0 - left, by_a, by_b
