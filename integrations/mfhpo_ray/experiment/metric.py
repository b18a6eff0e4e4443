"""The metric: its name and direction, and the numbers among what trials report."""

from typing import Any, SupportsFloat

import numpy as np


def check_aim(metric: Any, mode: Any) -> None:
    """Raise TypeError or ValueError for what is no metric's name, or no direction."""
    if metric is not None and not isinstance(metric, str):
        raise TypeError(f"metric must be the name of one metric or None, got {metric!r}.")
    if mode not in (None, "max", "min"):
        raise ValueError(f"mode must be 'max', 'min' or None, got {mode!r}.")


def check_key(name: str, value: Any) -> None:
    """Raise TypeError for what is no key of a configuration or of a result."""
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} must be a key, such as 'seed' or 'train/seed', got {value!r}.")


def as_number(value: Any) -> float | None:
    """A number as a float, also that of an array or a tensor of one element; else None.

    >>> as_number(np.float32(0.5)), as_number("0.5"), as_number(True), as_number(None)
    (0.5, None, None, None)
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, SupportsFloat):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):  # an array or a tensor of several elements
        return None
