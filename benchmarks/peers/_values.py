"""Values as the optimisers of other projects give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.hpo.space import Categorical, Parameter


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


def in_range(parameter: Parameter, value: Any) -> Any:
    """The value, or the end of the range that it is beyond.

    Examples
    --------
    >>> from benchmarks.hpo.space import Float
    >>> in_range(Float(1e-4, 1.0, log=True), 0.99999e-4)
    0.0001
    """
    if isinstance(parameter, Categorical):
        return value
    return min(max(value, parameter.low), parameter.high)
