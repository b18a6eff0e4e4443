"""What consumed time costs, and what a trial without a result is fined: functions of seconds.

Cost and penalty of Bengs and Hüllermeier ("Multi-Armed Bandits with Censored Consumption of
Resources", Machine Learning 2023), Section 2. Both are in the unit of the reward, and neither may
decrease.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mfhpo._validation import check_instance, check_nonnegative
from mfhpo.knowledge.arrays import FloatArray

# Seconds, any shape, to what is charged for them, the same shape.
Charge: TypeAlias = Callable[[FloatArray], FloatArray]

# Places at which a function is looked at for being monotone, between 0 and the largest limit.
_PLACES = 65


@dataclass(frozen=True)
class Linear:
    """So much for every second.

    Parameters
    ----------
    slope
        What a second costs, in the unit of the reward, at least 0.

    Examples
    --------
    >>> Linear(0.1)(np.array([0.0, 5.0]))
    array([0. , 0.5])
    """

    slope: float

    def __post_init__(self) -> None:
        check_nonnegative("slope", self.slope)

    def __call__(self, seconds: FloatArray) -> FloatArray:
        """Return the charge for so many seconds."""
        return self.slope * np.asarray(seconds, dtype=np.float64)


def par(factor: float) -> Linear:
    """Return the penalty of PAR-k: a trial without a result counts a multiple of its limit.

    Parameters
    ----------
    factor
        The multiple k, usually 10.

    Examples
    --------
    >>> par(10)(np.array([2.0]))
    array([20.])
    """
    return Linear(check_nonnegative("factor", factor))


def check_charge(name: str, charge: Charge, limits: FloatArray) -> FloatArray:
    """Return the charges at increasing limits (m,), or raise.

    TypeError for what is no function of an array; ValueError for charges that are negative,
    infinite or decrease.
    """
    right = "a function of seconds such as mfhpo.censored.Linear(0.1)"
    check_instance(name, charge, Callable, right)
    places = np.union1d(np.linspace(0.0, float(limits[-1]), _PLACES), limits)
    try:
        values = np.asarray(charge(places), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must take an array of seconds, but raises: {error}") from error
    if values.shape != places.shape:
        raise TypeError(
            f"{name} must give one value for each of an array of seconds, got shape "
            f"{values.shape} for {places.shape}; write it with NumPy functions."
        )
    for seconds, value in zip(places.tolist(), values.tolist(), strict=True):
        if not math.isfinite(value) or value < 0.0:
            raise ValueError(
                f"{name} must be finite and at least 0, got {value!r} at {seconds:.6g} seconds."
            )
    falls = np.flatnonzero(np.diff(values) < 0.0)
    if falls.size:
        at = int(falls[0])
        raise ValueError(
            f"{name} must not decrease with the seconds, but it falls from {values[at]:.6g} at "
            f"{places[at]:.6g} to {values[at + 1]:.6g} at {places[at + 1]:.6g} seconds."
        )
    return values[np.searchsorted(places, limits)]
