"""Configurations in JSON: as they are where JSON gives them back the same, pickled where not."""

from __future__ import annotations

import base64
import json
from typing import Any

from ray import cloudpickle

__all__ = ["decode", "encode"]


def encode(value: Any) -> dict[str, Any]:
    """A value, which may hold tuples, functions or classes, as plain JSON.

    Examples
    --------
    >>> encode({"lr": 0.1})
    {'plain': {'lr': 0.1}}
    >>> decode(encode({"hidden": (32, 32)}))
    {'hidden': (32, 32)}
    """
    try:
        same = bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):  # what JSON has no word for, or arrays compared
        same = False
    if same:
        return {"plain": value}
    return {"pickled": base64.b64encode(cloudpickle.dumps(value)).decode()}


def decode(content: dict[str, Any]) -> Any:
    """The value that was encoded."""
    if "plain" in content:
        return content["plain"]
    return cloudpickle.loads(base64.b64decode(content["pickled"]))
