"""The noise, declared or estimated, and whether values look as it says."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

from scipy.special import chdtri, ndtr, stdtr

from mfhpo._validation import check_nonnegative, check_number, check_sequence, shown, unwrapped


@dataclass(frozen=True)
class SubGaussian:
    """Noise that is sub-Gaussian with a known scale.

    Parameters
    ----------
    sigma
        The scale, in the unit of the values, at least 0: one number, or one for each fidelity.
        Gaussian noise of standard deviation s has sigma = s; values within [a, b] have sigma = (b -
        a) / 2.
    """

    sigma: float | Sequence[float]

    def __post_init__(self) -> None:
        sigma: float | Sequence[float]
        if isinstance(unwrapped(self.sigma), Real):
            sigma = check_nonnegative("sigma", self.sigma)
        else:
            right = "a number or one for each level"
            listed = check_sequence("sigma", self.sigma, right)
            sigma = tuple(check_nonnegative(f"sigma[{m}]", value) for m, value in enumerate(listed))
            if not sigma:
                raise ValueError(f"sigma must be {right}, not empty, got {shown(self.sigma)}.")
        object.__setattr__(self, "sigma", sigma)

    def at(self, fidelity: int, n_fidelities: int) -> float:
        """Return the scale at one fidelity; ValueError if the number of scales differs."""
        if not isinstance(self.sigma, Sequence):
            return self.sigma
        if len(self.sigma) != n_fidelities:
            raise ValueError(
                f"sigma has {len(self.sigma)} values {list(self.sigma)} but there are "
                f"{n_fidelities} fidelities; give one number, or one for each fidelity."
            )
        return self.sigma[fidelity]


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise whose variance is unknown and may differ from arm to arm."""


@dataclass(frozen=True)
class Bounded:
    """Values that always lie within [low, high], whatever their distribution.

    This is the robust choice where an evaluation may diverge now and then: the claim is about the
    mean, divergences included, and supposes nothing but the bounds. It takes many more evaluations
    than normal noise.

    Parameters
    ----------
    low, high
        Bounds of the values, both finite, in their unit.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = check_number("low", self.low), check_number("high", self.high)
        if not -math.inf < low < high < math.inf:
            raise ValueError(
                f"low must be below high and both finite, got low={self.low!r}, high={self.high!r}."
            )
        object.__setattr__(self, "low", unwrapped(self.low))
        object.__setattr__(self, "high", unwrapped(self.high))


@dataclass(frozen=True)
class EstimatedNoise:
    """Nothing is declared: Gaussian noise, its variance estimated from each arm's own values."""


Noise: TypeAlias = SubGaussian | Gaussian | Bounded | EstimatedNoise


def declared_sigmas(noise: Noise, n_fidelities: int) -> list[float] | None:
    """Return the declared sub-Gaussian scales, (M,), or None; half the range for bounded values."""
    if isinstance(noise, SubGaussian):
        return [noise.at(fidelity, n_fidelities) for fidelity in range(n_fidelities)]
    if isinstance(noise, Bounded):
        return [(noise.high - noise.low) / 2.0] * n_fidelities
    return None


def within_range(interval: tuple[float, float], noise: Noise) -> tuple[float, float]:
    """Cut a finite interval of a mean to the declared range of the values."""
    low, high = interval
    if not isinstance(noise, Bounded) or math.isinf(high - low):
        return interval
    if low > noise.high or high < noise.low:
        return interval  # values beyond the range contradict it, which is said elsewhere
    return max(low, noise.low), min(high, noise.high)


class NoiseContradictedWarning(UserWarning):
    """Values spread more than the declared noise allows; it is taken to be larger."""


CONTRADICTED = "values spread more than the declared sigma allows; the noise was estimated instead"

# Probability with which a scale that is declared rightly is ever found to be too small.
_AUDIT_LEVEL = 0.01

# A scale that is half of the true one is noticed at so many degrees of freedom more often than not.
_LEAST_DEGREES = 8

# Degrees of freedom at the first look.
_FIRST_LOOK = 4

# Values that differ by no more than this share of their size are equal.
_ROUNDING = 1e-9


class NoiseAudit:
    """Whether values spread more around their arms' means than a declared scale allows.

    For normal noise, the sum of squares over the variance is at most chi-squared. It is compared
    with a quantile when its degrees of freedom reach 4, 8, 16, ..., the j-th time at level .01 / (j
    (j + 1)). A scale of 0 is contradicted by any spread beyond rounding.
    """

    def __init__(self, sigma: float) -> None:
        self._sigma = sigma
        self._squares = 0.0
        self._degrees = 0
        self._looks = 0
        self.contradicted = False

    @property
    def missing(self) -> int:
        """How many values more it takes to notice a scale that is far too small; 0 if enough."""
        return 0 if self._sigma == 0.0 else max(0, _LEAST_DEGREES - self._degrees)

    def add(self, squares: float, value: float) -> str:
        """Learn a further value of an arm, by growth of `squares`; tell a contradiction once."""
        if squares > (_ROUNDING * value) ** 2:
            self._squares += squares
        self._degrees += 1
        if self.contradicted or self._squares <= self._most():
            return ""
        self.contradicted = True
        seen = math.sqrt(self._squares / self._degrees)
        return (
            f"values spread by {seen:.3g} around their means, more than the declared "
            f"sigma={self._sigma:.3g} allows"
        )

    def _most(self) -> float:
        """Return what the sum of squares may reach, if it is looked at now."""
        if self._sigma == 0.0:
            return 0.0
        if self._degrees < _FIRST_LOOK << self._looks:
            return math.inf
        self._looks += 1
        level = _AUDIT_LEVEL / (self._looks * (self._looks + 1))
        return self._sigma**2 * float(chdtri(self._degrees, level))


REMEDY = (
    "claims that rest on normal noise may be wrong; declare Bounded(0, 1) for accuracies, or "
    "evaluate more often"
)

# Probability with which normal values of any of several configurations are found not to be; fewer
# values show neither.
NORMALITY_LEVEL = 0.001
FEWEST_VALUES = 8


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
    the level. `moments` are the sums of squared and of cubed deviations from the mean, `ends` the
    smallest and the largest value; `shown` undoes its sign.
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
