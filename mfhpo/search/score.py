"""Values on a scale on which bad ones, however bad they are, do not hide how good ones differ."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["scores"]

FloatArray = npt.NDArray[np.float64]

# Gaps to the best are as they are up to about so many times that of the median of so many first
# values; what is far beyond is hopeless.
_NEAR, _FIRST = 5.0, 20
_HOPELESS = 2.0  # logarithm from which on it hardly matters how far
_ROUNDING = 1e-12  # of the best value: what is nearer to it than this is equal to it


def scores(values: FloatArray) -> FloatArray:
    """Minus each value's gap to the best one, large gaps shortened, with mean 0 and unit variance.

    Some configurations of a space are hopeless, and how hopeless does not matter: a model of the
    values themselves would spend itself on them. Gaps are shortened to their logarithms, and those
    of the hopeless further. A scale on which differences among the very best count most (with a
    logarithm from a tenth of the median gap on) makes a search stay where it is: it finds out all
    of one good region, and not the better one elsewhere.

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
    [-1.47, -0.34, 0.71, 1.11]
    """
    best = values.max()
    gaps = best - values
    gaps[gaps <= _ROUNDING * abs(best)] = 0.0
    # A search comes to where gaps are as small as the noise; the first ones say what a gap is.
    typical = float(np.median(gaps[:_FIRST]))
    # With half of them at the best, the mean gap says so; with all, there is none.
    near = _NEAR * typical or _NEAR * float(gaps.mean()) or 1.0
    shortened = np.log1p(gaps / near)
    hopeless = np.maximum(shortened - _HOPELESS, 0.0)
    shortened = np.minimum(shortened, _HOPELESS) + np.log1p(hopeless)
    spread = float(shortened.std())
    scaled: FloatArray = (shortened.mean() - shortened) / (spread or 1.0)
    return scaled
