"""Values on a scale that tells good ones apart, however far off bad ones are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["scores"]

FloatArray = npt.NDArray[np.float64]

# Gaps to the best look alike below this share of the gap of the median of so many first values.
_NEAR, _FIRST = 0.1, 20
_ROUNDING = 1e-12  # of the best value: what is nearer to it than this is equal to it


def scores(values: FloatArray) -> FloatArray:
    """Minus the logarithm of each value's gap to the best one, with mean 0 and unit variance.

    Many configurations of a space are hopeless, and how hopeless does not matter, while among good
    ones small differences decide. A model of the values themselves would spend itself on the first.

    Parameters
    ----------
    values
        Larger is better, shape (n,), in the order in which they became known.

    Returns
    -------
    array of shape (n,)
        In the same order as the values.

    Examples
    --------
    >>> scores(np.array([0.1, 0.5, 0.8, 0.9])).round(2).tolist()
    [-1.14, -0.64, 0.28, 1.49]
    """
    best = values.max()
    gaps = best - values
    gaps[gaps <= _ROUNDING * abs(best)] = 0.0
    # A search comes to where gaps are as small as the noise; the first ones say what a gap is.
    typical = float(np.median(gaps[:_FIRST]))
    # With half of them at the best, the mean gap says so; with all, there is none.
    near = _NEAR * typical or _NEAR * float(gaps.mean()) or 1.0
    logarithms = -np.log((gaps + near) / near)
    spread = float(logarithms.std())
    scaled: FloatArray = (logarithms - logarithms.mean()) / (spread or 1.0)
    return scaled
