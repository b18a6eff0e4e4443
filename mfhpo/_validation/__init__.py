"""Checks of arguments that several modules share."""

import itertools
import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(name: str, value: Any, otherwise: str = "") -> float:
    """Return `value` as a float; TypeError unless it is a number, which True and False are not.

    `otherwise` says what else the argument may be, in words that follow "a number".
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number{otherwise}, got {value!r}.")
    return float(value)


def check_numbers(name: str, value: Any, right: str) -> list[float]:
    """Return `value` as a list of floats; TypeError unless it is a sequence of numbers.

    `right` says what would be right, in words that follow "must be".
    """
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise TypeError(f"{name} must be {right}, got {value!r}.")
    return [check_number(f"{name}[{position}]", entry) for position, entry in enumerate(listed)]


def check_probability(name: str, value: float) -> float:
    """Return `value` as a float, or raise unless it lies strictly between 0 and 1."""
    if not 0.0 < check_number(name, value) < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}; try 0.05.")
    return float(value)


def check_positive(name: str, value: float, hint: str = "") -> float:
    """Return `value` as a float, or raise unless it is finite and above 0."""
    if not 0.0 < check_number(name, value) < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}{hint}.")
    return float(value)


def check_limit(name: str, value: Any, unit: str = "seconds") -> float | None:
    """Return a limit as a float, None for none, or raise unless it is a positive number."""
    if value is None:
        return None
    limit = check_number(name, value, f" of {unit} or None")
    if not limit > 0.0:
        raise ValueError(f"{name} must be a positive number of {unit} or None, got {value!r}.")
    return limit


def check_count(name: str, value: int, least: int) -> int:
    """Return `value` as an int, or raise unless it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}.")
    return int(value)


def check_nonnegative(name: str, value: float) -> float:
    """Return `value` as a float, or raise unless it is finite and at least 0."""
    if not 0.0 <= check_number(name, value) < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")
    return float(value)


def check_increasing(name: str, values: Sequence[float]) -> None:
    """Raise ValueError unless `values` is non-empty, finite and strictly increasing."""
    if not values:
        raise ValueError(f"{name} must not be empty.")
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"{name} must be finite, got {list(values)}.")
    for position, (left, right) in enumerate(itertools.pairwise(values)):
        if not left < right:
            raise ValueError(
                f"{name} must increase strictly, cheapest fidelity first, but "
                f"{name}[{position}]={left!r} is followed by {right!r}; sort them and drop repeats."
            )


def is_number(value: Any) -> bool:
    """Whether `value` is a plain number; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
