"""The parameter that the sampler owns: its levels, their costs, their bias."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mfhpo import Bias
from mfhpo._validation import check_increasing
from mfhpo_optuna._checks import check_numbers

__all__ = ["Fidelity"]

# Geometric levels are a third of each other, the factor of successive halving, and at most six.
_RATIO = 3.0
_MOST_LEVELS = 6


@dataclass(frozen=True)
class Fidelity:
    """How cheaply, and how faithfully, a configuration can be evaluated.

    Parameters
    ----------
    name
        Name of the parameter with which the objective asks for its fidelity.
    levels
        Values of the parameter, cheapest first; the last one is the target. Numbers must
        increase. None: geometric between the bounds with which the objective asks (its upper
        bound is the target), or the choices of a categorical parameter in their order.
    costs
        Cost of one evaluation at each level, increasing; "measured" for wall-clock seconds; None
        for proportional to the level.
    bias
        Bounds on the levels' bias, one per level and the last one 0, as numbers or as a
        `mfhpo.Bias`; numbers are bounds xi_m with ``|mean at level m - mean at the target| <=
        xi_m`` for every configuration, unless the sampler is told another variant. None:
        estimated by a pilot.

    Raises
    ------
    ValueError
        If levels or costs do not increase, or the numbers of levels, costs and bounds differ.

    Examples
    --------
    >>> Fidelity("epochs", levels=[1, 9, 81]).costs_of([1, 9, 81])
    (1.0, 9.0, 81.0)
    """

    name: str
    levels: Sequence[Any] | None = None
    costs: Sequence[float] | Literal["measured"] | None = None
    bias: Bias | Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise ValueError(f"name must be a parameter's name, got {self.name!r}.")
        if isinstance(self.costs, str):
            if self.costs != "measured":
                raise ValueError(f"costs must be numbers, 'measured' or None, got {self.costs!r}.")
        elif self.costs is not None:
            object.__setattr__(self, "costs", tuple(float(cost) for cost in self.costs))
            check_increasing("costs", self.costs)
            if self.costs[0] <= 0.0:
                raise ValueError(f"costs must be positive, got {list(self.costs)}.")
        if self.bias is not None and not isinstance(self.bias, Bias):
            right = "one number for each level, a mfhpo.Bias or None"
            bounds = check_numbers("bias", self.bias, right)
            Bias.max(*bounds)  # raises for bounds that no kind of bias may have
            object.__setattr__(self, "bias", tuple(bounds))
        if self.levels is not None:
            object.__setattr__(self, "levels", tuple(native(level) for level in self.levels))
            self._check_levels(self.levels)

    def levels_in(self, distribution: BaseDistribution) -> tuple[Any, ...]:
        """The levels for an objective that asks with this distribution.

        Raises
        ------
        ValueError
            If a declared level is not a value of the distribution.
        """
        if self.levels is None:
            levels = _geometric(distribution)
            self._check_levels(levels)
            return levels
        for level in self.levels:
            if not contains(distribution, level):
                raise ValueError(
                    f"levels of the fidelity {self.name!r} contain {level!r}, which the "
                    f"objective's {distribution} does not allow; change the levels or what the "
                    f"objective suggests."
                )
        return tuple(self.levels)

    def costs_of(self, levels: Sequence[Any]) -> tuple[float, ...] | None:
        """Cost of an evaluation at each level, or None when it is measured.

        Raises
        ------
        ValueError
            If the costs are left to the levels and those are not positive numbers.
        """
        if self.costs == "measured":
            return None
        if self.costs is not None and not isinstance(self.costs, str):
            return tuple(float(cost) for cost in self.costs)
        if not all(_is_number(level) and level > 0 for level in levels):
            raise ValueError(
                f"costs=None takes costs proportional to the levels of {self.name!r}, but "
                f"{list(levels)} are not all positive numbers; give costs=[...] or "
                f"costs='measured'."
            )
        return tuple(float(level) for level in levels)

    def _check_levels(self, levels: Sequence[Any]) -> None:
        if not levels:
            raise ValueError(f"levels of the fidelity {self.name!r} must not be empty.")
        if all(_is_number(level) for level in levels):
            check_increasing("levels", levels)
        elif len(set(levels)) < len(levels):
            raise ValueError(f"levels of the fidelity {self.name!r} repeat: {list(levels)}.")
        numbers = {"costs": self.costs, "bias": self.bias}
        for what, given in numbers.items():
            if given is None or isinstance(given, str):
                continue
            size = len(given.bounds) if isinstance(given, Bias) else len(given)
            if size != len(levels):
                raise ValueError(
                    f"{what} has {size} entries but the fidelity {self.name!r} has "
                    f"{len(levels)} levels {list(levels)}; give one per level."
                )


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """Whether `value` is a value of the distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    if not (isinstance(distribution, (IntDistribution, FloatDistribution)) and _is_number(value)):
        return False
    if not distribution.low <= value <= distribution.high:
        return False
    if distribution.step is None:
        return True
    steps = (value - distribution.low) / distribution.step
    return bool(abs(steps - round(steps)) < 1e-8)


def native(value: Any) -> Any:
    """A NumPy number as the Python number that Optuna can store; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def _geometric(distribution: BaseDistribution) -> tuple[Any, ...]:
    if isinstance(distribution, CategoricalDistribution):
        return tuple(distribution.choices)
    assert isinstance(distribution, (IntDistribution, FloatDistribution))
    high = distribution.high
    levels: list[float] = []
    for power in range(_MOST_LEVELS):
        level: float = high / _RATIO**power
        if isinstance(distribution, IntDistribution):
            level = round(level)
        if distribution.step is not None:
            level = distribution.low + distribution.step * round(
                (level - distribution.low) / distribution.step
            )
        if level < distribution.low or level <= 0 or (levels and level >= levels[-1]):
            break
        levels.append(level)
    if len(levels) < _MOST_LEVELS and distribution.low > 0:
        # The cheapest level the objective allows, unless a level is already next to it.
        lowest = distribution.low
        if levels and lowest < levels[-1] / math.sqrt(_RATIO):
            levels.append(lowest)
    return tuple(reversed(levels or [high]))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
