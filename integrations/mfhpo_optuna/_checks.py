"""Checks of arguments whose type is not what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mfhpo._validation import check_number

__all__ = ["check_number", "check_numbers"]


def check_numbers(name: str, value: Any, right: str) -> list[float]:
    """Return `value` as a list of floats, or raise unless it is a sequence of numbers.

    Parameters
    ----------
    name
        The argument's name.
    value
        What was given.
    right
        What would be right, in words that follow "must be".

    Raises
    ------
    TypeError
        If it is no sequence of numbers.
    """
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise TypeError(f"{name} must be {right}, got {value!r}.")
    return [check_number(f"{name}[{position}]", entry) for position, entry in enumerate(listed)]
