"""Values as the optimisers of other projects give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with Python's own numbers and strings instead of NumPy's.

    The meter knows a configuration by how it is written, which differs between the two.

    Examples
    --------
    >>> plain({"depth": np.int64(3), "kernel": "rbf"})
    {'depth': 3, 'kernel': 'rbf'}
    """
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in configuration.items()
    }
