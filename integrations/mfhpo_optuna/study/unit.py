"""From numbers in [0, 1) to values of Optuna distributions."""

from __future__ import annotations

import math
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

__all__ = ["from_unit"]


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
