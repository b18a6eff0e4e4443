"""Numbers among what trials report."""

from __future__ import annotations

from typing import Any, SupportsFloat

import numpy as np

__all__ = ["as_number"]


def as_number(value: Any) -> float | None:
    """A number as a float, also that of an array or a tensor of one element; else None.

    Examples
    --------
    >>> as_number(np.float32(0.5)), as_number("0.5"), as_number(True), as_number(None)
    (0.5, None, None, None)
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, SupportsFloat):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):  # an array or a tensor of several elements
        return None
