"""Whether values look as normal noise would make them: outliers, and skewness."""

import math
from collections.abc import Callable

from scipy.special import ndtr, stdtr

REMEDY = (
    "claims that rest on normal noise may be wrong; declare Bounded(0, 1) for accuracies, or "
    "evaluate more often"
)
"""What follows from a notice."""

NORMALITY_LEVEL = 0.001
"""Probability with which normal values of any of several configurations are found not to be."""

FEWEST_VALUES = 8
"""Fewer values show neither."""


def departure_in_words(
    count: int,
    mean: float,
    moments: tuple[float, float],
    ends: tuple[float, float],
    level: float,
    shown: Callable[[float], float] = float,
) -> str:
    """Say how the values of one configuration depart from normal ones; empty if not clearly.

    Grubbs' test (1950) judges the farthest value, D'Agostino's (1970) the skewness, each at half of
    the level. Both keep their level for small samples and small levels.

    `count` is at least `FEWEST_VALUES`, `moments` are the sums of squared and of cubed deviations
    from the mean, `ends` the smallest and the largest value; `shown` formats a value.
    """
    (squares, cubes), (low, high) = moments, ends
    if not squares > (1e-9 * max(abs(low), abs(high))) ** 2 * count:
        return ""
    deviation = math.sqrt(squares / (count - 1))
    farthest = high if high - mean > mean - low else low
    distance = abs(farthest - mean) / deviation
    room = (count - 1) ** 2 / count - distance**2
    t = distance * math.sqrt((count - 2) / room) if room > 1e-9 * count else math.inf
    if 2.0 * count * float(stdtr(count - 2, -t)) < level / 2.0:
        return (
            f"one of {count} values, {shown(farthest):.3g}, is an outlier, {distance:.2g} standard "
            f"deviations off"
        )
    skewness = (cubes / count) / (squares / count) ** 1.5
    if 2.0 * float(ndtr(-abs(_normal_score(skewness, count)))) >= level / 2.0:
        return ""
    if shown(1.0) < shown(0.0):
        skewness = -skewness
    return f"{count} values with skewness {skewness:.2g} are not normal"


def _normal_score(skewness: float, count: int) -> float:
    """Return a sample's skewness as a standard normal value, if values are normal; count >= 8."""
    n = float(count)
    scaled = skewness * math.sqrt((n + 1.0) * (n + 3.0) / (6.0 * (n - 2.0)))
    kurtosis = 3.0 * (n**2 + 27.0 * n - 70.0) * (n + 1.0) * (n + 3.0)
    kurtosis /= (n - 2.0) * (n + 5.0) * (n + 7.0) * (n + 9.0)
    spread = math.sqrt(2.0 * (kurtosis - 1.0)) - 1.0
    return math.asinh(scaled / math.sqrt(2.0 / (spread - 1.0))) / math.sqrt(0.5 * math.log(spread))
