"""Attributes as plain JSON values, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def saved(owner: object, names: Sequence[str]) -> dict[str, Any]:
    """Return numbers and arrays of an object, by name without a leading underscore."""
    values = {name.lstrip("_"): getattr(owner, name) for name in names}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in values.items()
    }


def restore(owner: object, names: Sequence[str], state: Mapping[str, Any]) -> None:
    """Set what `saved` gave; types are those of the present values."""
    for name in names:
        present, value = getattr(owner, name), state[name.lstrip("_")]
        if isinstance(present, np.ndarray) and value is not None:
            value = np.asarray(value, dtype=present.dtype)
        elif isinstance(value, list):
            value = np.asarray(value, dtype=np.float64)
        setattr(owner, name, value)
