"""Whether values look as normal noise would make them: outliers, and clear departures from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, stdtr

__all__ = ["FOR_OUTLIERS", "NORMALITY_LEVEL", "REMEDY", "departure_in_words", "notices_of"]

FloatArray = npt.NDArray[np.float64]

REMEDY = (
    "claims that rest on normal noise may be wrong; declare Bounded(0, 1) for accuracies, or "
    "evaluate more often"
)
"""What follows from a notice."""

NORMALITY_LEVEL = 0.001
"""Probability with which normal values of any of several configurations are found not to be."""

FOR_OUTLIERS = 8
"""Fewer values do not show an outlier."""

_FOR_SHAPE = 20


def notices_of(values: Sequence[npt.ArrayLike], names: Sequence[str]) -> tuple[str, ...]:
    """What is to be said of configurations whose values are clearly not normal.

    Parameters
    ----------
    values
        The values of each configuration, in any unit, shape (n_i,) each.
    names
        How they are called.

    Returns
    -------
    tuple of str
        One sentence for each of them, the most conspicuous kind of departure first; empty if there
        is none.

    Examples
    --------
    >>> steady = [0.93, 0.94, 0.92, 0.93, 0.92, 0.94, 0.93, 0.92, 0.94]
    >>> notices_of([[*steady, 0.03], steady], ["trial 3", "trial 8"])[0].split(", 2")[0]
    'trial 3: one of 10 values, 0.03, is an outlier'
    """
    notices = []
    for name, given in zip(names, values, strict=True):
        array = np.asarray(given, dtype=np.float64)
        if len(array) < FOR_OUTLIERS:
            continue
        deviations = array - array.mean()
        moments = [float((deviations**power).sum()) for power in (2, 3, 4)]
        words = departure_in_words(
            len(array),
            float(array.mean()),
            moments,
            float(array.min()),
            float(array.max()),
            NORMALITY_LEVEL / len(values),
        )
        if words:
            notices.append(f"{name}: {words}; {REMEDY}")
    return tuple(notices)


def departure_in_words(
    count: int,
    mean: float,
    moments: Sequence[float],
    low: float,
    high: float,
    level: float,
    shown: Callable[[float], float] = float,
) -> str:
    """How the values of one configuration depart from normal ones; empty if not clearly.

    The farthest value is compared with what is left by Grubbs' test (1950), the shape by the
    statistic of Jarque and Bera (1980).

    Parameters
    ----------
    count, mean
        Number of values and their mean.
    moments
        Sums of squared, cubed and fourth powers of the deviations from the mean.
    low, high
        The smallest and the largest value.
    level
        Probability with which normal values are found to depart.
    shown
        Makes of a value what is shown of it.
    """
    squares, cubes, fourths = moments
    if count < FOR_OUTLIERS or not squares > (1e-9 * max(abs(low), abs(high))) ** 2 * count:
        return ""
    deviation = math.sqrt(squares / (count - 1))
    farthest = high if high - mean > mean - low else low
    distance = abs(farthest - mean) / deviation
    room = (count - 1) ** 2 / count - distance**2
    t = math.inf
    if room > 1e-9 * count:
        t = distance * math.sqrt((count - 2) / room)
    if 2.0 * count * float(stdtr(count - 2, -t)) < level:
        return (
            f"one of {count} values, {shown(farthest):.3g}, is an outlier, {distance:.2g} standard "
            f"deviations off"
        )
    if count < _FOR_SHAPE:
        return ""
    skewness = (cubes / count) / (squares / count) ** 1.5
    kurtosis = (fourths / count) / (squares / count) ** 2
    if float(chdtrc(2, count / 6.0 * (skewness**2 + (kurtosis - 3.0) ** 2 / 4.0))) >= level:
        return ""
    return f"{count} values with skewness {skewness:.2g} and kurtosis {kurtosis:.2g} are not normal"
