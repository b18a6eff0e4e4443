"""Configurations in JSON: as they are where JSON gives them back the same, pickled where not."""

import base64
import json
import math
from typing import Any

from ray import cloudpickle


def encode(value: Any) -> dict[str, Any]:
    """Return a value as plain JSON; it may hold tuples, functions or classes."""
    if _is_plain(value):
        return {"plain": value}
    return {"pickled": base64.b64encode(cloudpickle.dumps(value)).decode()}


def decode(content: dict[str, Any]) -> Any:
    """Return the value that was encoded."""
    if "plain" in content:
        return content["plain"]
    return cloudpickle.loads(base64.b64decode(content["pickled"]))


def differ(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two encoded values differ for sure: what is pickled may or may not."""
    texts = [json.dumps(content, sort_keys=True) for content in (one, other)]
    return one.keys() != other.keys() or ("plain" in one and texts[0] != texts[1])


def _is_plain(value: Any) -> bool:
    """Return whether JSON gives back the same value, of the same type."""
    if type(value) is dict:
        return all(type(name) is str and _is_plain(part) for name, part in value.items())
    if type(value) is list:
        return all(map(_is_plain, value))
    is_finite = type(value) is not float or math.isfinite(value)
    return value is None or (type(value) in (bool, int, float, str) and is_finite)
