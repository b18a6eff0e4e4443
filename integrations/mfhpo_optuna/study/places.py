"""Between Optuna's values, numbers in [0, 1), and the places of a search's model."""

import math
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mfhpo.search import Numeric, OneOf, Point, place_in_range

_WITHOUT_STEPS = Numeric()


def drawn(seed: int, number: int, name: str, distribution: BaseDistribution) -> Any:
    """Draw a value of a parameter for a trial or an arm; the same whoever asks."""
    key = [seed, number, zlib.crc32(name.encode())]
    return from_unit(float(np.random.default_rng(key).random()), distribution)


def from_unit(unit: float, distribution: BaseDistribution) -> Any:
    """Map `unit`, uniform in [0, 1), to a value that follows the distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(unit * len(distribution.choices))]
    if isinstance(distribution, IntDistribution):
        first, last, every = distribution.low, distribution.high, distribution.step
        if distribution.log:
            return min(last, max(first, round(_log_scale(unit, first - 0.5, last + 0.5))))
        return first + every * int(unit * ((last - first) // every + 1))
    if isinstance(distribution, FloatDistribution):
        low, high = distribution.low, distribution.high
        if distribution.step is not None:
            steps = int(unit * (math.floor((high - low) / distribution.step + 1e-9) + 1))
            return min(high, low + distribution.step * steps)
        value = _log_scale(unit, low, high) if distribution.log else low + unit * (high - low)
        return min(high, max(low, value))
    raise TypeError(f"cannot draw from a {type(distribution).__name__}.")


def _log_scale(unit: float, low: float, high: float) -> float:
    return math.exp(math.log(low) + unit * (math.log(high) - math.log(low)))


def kind_of(distribution: BaseDistribution) -> Numeric | OneOf | None:
    """Return what a parameter is to a model; None if there is nothing to choose."""
    if distribution.single():
        return None
    if isinstance(distribution, CategoricalDistribution):
        return OneOf(len(distribution.choices))
    if isinstance(distribution, (IntDistribution, FloatDistribution)) and distribution.step:
        return _stepwise(distribution)
    return _WITHOUT_STEPS


@lru_cache(maxsize=256)
def _stepwise(distribution: IntDistribution | FloatDistribution) -> Numeric:
    return Numeric.stepwise(
        lambda place: value_at(place, distribution), lambda value: place_of(value, distribution)
    )


def place_of(value: Any, distribution: BaseDistribution) -> float:
    """Return where a value lies in its range, from 0 to 1, or the index of a choice."""
    if isinstance(distribution, CategoricalDistribution):
        return float(distribution.to_internal_repr(value))
    if isinstance(distribution, (IntDistribution, FloatDistribution)):
        half = (distribution.step or 0.0) / 2.0  # a value with steps lies in the middle of its own
        low, high = distribution.low - half, distribution.high + half
        return place_in_range(value, low, high, distribution.log)
    raise TypeError(f"cannot place a value of a {type(distribution).__name__}.")


def value_at(place: float, distribution: BaseDistribution) -> Any:
    """Return the value at a place; the inverse of `place_of`, up to rounding."""
    if isinstance(distribution, CategoricalDistribution):
        n = len(distribution.choices)
        return distribution.choices[min(int(place), n - 1)]
    return from_unit(min(max(place, 0.0), 1.0 - 1e-12), distribution)


def point_of(params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> Point:
    """Return a configuration as a model sees it, without parameters of one value."""
    return {
        name: place_of(params[name], distribution)
        for name, distribution in distributions.items()
        if name in params and not distribution.single()
    }
