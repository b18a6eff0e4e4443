"""The parameters that a race owns: the fidelity, and the replicate that a block shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from mfhpo._validation import (
    check_costs,
    check_increasing,
    check_name,
    check_numbers,
    check_sequence,
    is_number,
)
from mfhpo.knowledge.arrays import IntArray
from mfhpo.knowledge.bias import Bias

# Geometric levels are a third of each other, the factor of successive halving, and at most six.
_RATIO = 3.0
_MOST_LEVELS = 6


@dataclass(frozen=True)
class Fidelity:
    """How cheaply, and how faithfully, a configuration can be evaluated.

    Parameters
    ----------
    name
        Name of the parameter that sets it.
    levels
        Values of the parameter, cheapest first; the last one is the target. Numbers must increase.
        None: geometric between the bounds of the parameter (its upper bound is the target), or the
        choices of a categorical one in their order.
    costs
        Cost of one evaluation at each level, increasing; "measured" for wall-clock seconds; None
        for proportional to the level.
    bias
        Bounds on the levels' bias, one per level and the last one 0: a `mfhpo.Bias`, or numbers.
        Numbers are xi_m with ``|mean at level m - mean at the target| <= xi_m`` for every
        configuration, unless another variant is asked for. None: see
        `mfhpo.racing.options.BestArmOptions`.
    """

    name: str
    levels: Sequence[Any] | None = None
    costs: Sequence[float] | Literal["measured"] | None = None
    bias: Bias | Sequence[float] | None = None

    def __post_init__(self) -> None:
        check_name("name", self.name, "a parameter's name")
        is_measured = isinstance(self.costs, str) and self.costs == "measured"
        if self.costs is not None and not is_measured:
            right = "one number for each level, 'measured' or None"
            object.__setattr__(self, "costs", check_costs(self.costs, right))
        if self.bias is not None and not isinstance(self.bias, Bias):
            right = "one number for each level, a mfhpo.Bias or None"
            bounds = check_numbers("bias", self.bias, right)
            Bias.max(*bounds)  # raises for bounds that no kind of bias may have
            object.__setattr__(self, "bias", tuple(bounds))
        if self.levels is not None:
            right = "a list of values such as [1, 3, 9] or None"
            levels = check_sequence("levels", self.levels, right)
            object.__setattr__(self, "levels", tuple(native(level) for level in levels))
            self.check_levels(self.levels)

    def costs_of(self, levels: Sequence[Any]) -> tuple[float, ...] | None:
        """Return costs of evaluations, None if measured; ValueError if levels are no costs."""
        if self.costs is not None:
            return None if isinstance(self.costs, str) else tuple(map(float, self.costs))
        if not _are_costs(levels):
            raise ValueError(
                f"costs=None takes costs proportional to the levels of {self.name!r}, but "
                f"{list(levels)} are not all positive numbers; give costs=[...] or "
                f"costs='measured'."
            )
        return tuple(map(float, levels))

    def guessed_costs(self, levels: Sequence[Any]) -> tuple[float, ...]:
        """Return the costs; where they are measured, the levels or else their places."""
        guesses = levels if _are_costs(levels) else range(1, len(levels) + 1)
        return self.costs_of(levels) or tuple(map(float, guesses))

    def in_seconds(self) -> Fidelity:
        """Return the fidelity with measured costs; ValueError if they are declared in a unit."""
        if self.costs is not None and not isinstance(self.costs, str):
            raise ValueError(
                f"the fidelity {self.name!r} has costs={list(self.costs)}, but costs are measured "
                f"where the budget is in seconds: leave them out, or give budget=... in their unit."
            )
        return replace(self, costs="measured")

    def check_levels(self, levels: Sequence[Any]) -> None:
        """Raise ValueError unless these may be its levels, one for each cost and bound."""
        if not levels:
            raise ValueError(f"levels of the fidelity {self.name!r} must not be empty.")
        if all(is_number(level) for level in levels):
            check_increasing("levels", levels)
        elif any(level in levels[:position] for position, level in enumerate(levels)):
            raise ValueError(f"levels of the fidelity {self.name!r} repeat: {list(levels)}.")
        for what, given in (("costs", self.costs), ("bias", self.bias)):
            if given is None or isinstance(given, str):
                continue
            size = len(given.bounds) if isinstance(given, Bias) else len(given)
            if size != len(levels):
                raise ValueError(
                    f"{what} has {size} entries but the fidelity {self.name!r} has "
                    f"{len(levels)} levels {list(levels)}; give one per level."
                )


def _are_costs(levels: Sequence[Any]) -> bool:
    return all(is_number(level) and level > 0 for level in levels)


def geometric_levels(
    low: float, high: float, *, whole: bool = True, step: float | None = None
) -> tuple[Any, ...]:
    """Return at most six levels from about `low` to `high`, such as 1, 3, 9, 27, 81.

    They may be `whole` numbers; with a `step`, only each step from `low` on is allowed.
    """
    levels: list[float] = []
    for power in range(_MOST_LEVELS):
        level: float = high / _RATIO**power
        if whole:
            level = round(level)
        if step is not None:
            level = low + step * round((level - low) / step)
        if level < low or level <= 0 or (levels and level >= levels[-1]):
            break
        levels.append(level)
    if len(levels) < _MOST_LEVELS and low > 0 and levels and low < levels[-1] / math.sqrt(_RATIO):
        # The cheapest level that is allowed, unless a level is already next to it.
        levels.append(low)
    return tuple(reversed(levels or [high]))


def native(value: Any) -> Any:
    """Return a NumPy number as a Python number that can be stored; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


MOST_SHUFFLED = 1_000_000
"""The number of values up to which none is drawn twice."""


def replicate_of(block: int, seed: int, n_values: int) -> int:
    """Return the replicate of a block, from 0 to n_values - 1: the same for all arms."""
    if n_values <= MOST_SHUFFLED:
        return int(_shuffled(seed, n_values)[block % n_values])
    return int(np.random.default_rng([seed, block]).integers(n_values))


@lru_cache(maxsize=4)
def _shuffled(seed: int, n_values: int) -> IntArray:
    return np.random.default_rng(seed).permutation(n_values)
