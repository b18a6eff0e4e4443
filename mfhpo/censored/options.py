"""The options of policies that choose time limits: typed and documented once, for every library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias, TypedDict

import numpy as np

from mfhpo._validation import check_instance, check_nonnegative, shown, unwrapped
from mfhpo.knowledge.arrays import FloatArray

_N_LIMITS = 10
_MOST_LIMITS = 50


class LimitOptions(TypedDict, total=False):
    """Options of every policy that chooses time limits.

    The gain of a trial with value R that ends after C seconds is R - cost(C); of one that is
    stopped at its limit, the worst value minus penalty(limit). Where the objective is minimised,
    charges are added, and the worst value is the largest. Charges are checked up to the largest
    limit; while limits are derived, up to `longest`, or an hour.

    Parameters
    ----------
    cost
        What the seconds of a trial that ends in time cost, in the unit of the objective: a
        function of an array of seconds such as ``mfhpo.censored.Linear(0.1)``, which may not
        decrease. None: in proportion, so that the largest limit costs a tenth of the range of the
        values.
    penalty
        What a limit costs at which a trial is stopped, likewise. None: the same as `cost`.
    reward_range
        Least and largest value of the objective. None: of those seen so far, which makes the
        bounds approximate, and often too narrow in the first trials. Values outside a declared
        range count as the nearest one inside.
    horizon
        Number of trials, without those that fail, after which the race ends with its answer. None:
        no end.
    delta
        Probability that one of the intervals of gains in `recommendation` fails, in (0, 1); those
        of survival have the same for themselves. Approximate unless `reward_range` and the limits
        are declared.
    max_failures
        An arm leaves, with a warning, after so many trials in a row that fail: they raise, give
        NaN, infinity or no value, or are stopped by something other than their limit.
    """

    cost: Charge | None
    penalty: Charge | None
    reward_range: tuple[float, float] | None
    horizon: int | None
    delta: float
    max_failures: int


class RCUCBOptions(LimitOptions, total=False):
    """Options of `mfhpo.censored.RCUCB`, besides those of `LimitOptions`.

    `delta` has no part in the choices.

    Parameters
    ----------
    longest
        Limit in seconds of the trials that limits are derived from. None: they run to their end,
        so that one which hangs is not stopped.
    """

    longest: float | None


class ZoomingRCUCBOptions(LimitOptions, total=False):
    """Options of `mfhpo.censored.ZoomingRCUCB`, besides those of `LimitOptions`.

    `horizon` also sets how much is explored.

    Parameters
    ----------
    splits
        Parts into which an interval of limits is split, at least 2.
    smoothness
        How much the gain may fall over all limits up to the longest one, as a multiple of the range
        of the values: next to the best pair, the gain at a limit tau exceeds that at another by at
        most ``smoothness |tau - tau'| / longest`` times the range. A penalty that jumps breaks it.
    """

    splits: int
    smoothness: float


def check_limits(limits: Sequence[float] | int | None) -> Sequence[float] | int:
    """Return the limits, or how many to derive; raise for a number above 50."""
    if isinstance(limits, Integral) and limits > _MOST_LIMITS:
        number = shown(int(limits))
        raise ValueError(
            f"limits={number} is the number of limits to derive, at most {_MOST_LIMITS}; "
            f"for one limit of {number} seconds give limits=[{number}]."
        )
    return _N_LIMITS if limits is None else limits


def mirrored(options: Mapping[str, Any], sign: float) -> dict[str, Any]:
    """Return options for values that are maximised; `sign` is -1 to minimise."""
    bounds = options["reward_range"]
    if bounds is None or sign > 0.0:
        return dict(options)
    return {**options, "reward_range": (-bounds[1], -bounds[0])}


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
        What a second costs, in the unit of the reward, at least 0. As a penalty it is PAR-k: with
        10, a trial without a result counts ten times its limit.

    Examples
    --------
    >>> Linear(0.1)(np.array([0.0, 5.0]))
    array([0. , 0.5])
    """

    slope: float

    def __post_init__(self) -> None:
        check_nonnegative("slope", self.slope)
        object.__setattr__(self, "slope", unwrapped(self.slope))

    def __call__(self, seconds: FloatArray) -> FloatArray:
        """Return the charge for so many seconds."""
        return self.slope * np.asarray(seconds, dtype=np.float64)


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
    wrong = ~(np.isfinite(values) & (values >= 0.0))
    if wrong.any():
        raise ValueError(
            f"{name} must be finite and at least 0, got {values[wrong][0]} at "
            f"{places[wrong][0]:.6g} seconds."
        )
    falls = np.flatnonzero(np.diff(values) < 0.0)
    if falls.size:
        at = int(falls[0])
        raise ValueError(
            f"{name} must not decrease with the seconds, but it falls from {values[at]:.6g} at "
            f"{places[at]:.6g} to {values[at + 1]:.6g} at {places[at + 1]:.6g} seconds."
        )
    return values[np.searchsorted(places, limits)]
