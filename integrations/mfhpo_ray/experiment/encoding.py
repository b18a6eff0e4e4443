"""Configurations in JSON: as they are where JSON gives them back the same, pickled where not."""

import base64
import math
from collections.abc import Mapping
from typing import Any

from ray import cloudpickle


def encode(value: Any) -> dict[str, Any]:
    """A value, which may hold tuples, functions or classes, as plain JSON."""
    if _is_plain(value):
        return {"plain": value}
    return {"pickled": base64.b64encode(cloudpickle.dumps(value)).decode()}


def decode(content: dict[str, Any]) -> Any:
    """The value that was encoded."""
    if "plain" in content:
        return content["plain"]
    return cloudpickle.loads(base64.b64decode(content["pickled"]))


def differ(one: Any, other: Any) -> bool:
    """Whether two values differ for sure: objects that are pickled may or may not."""
    if _is_leaf(one) or _is_leaf(other):
        return type(one) is not type(other) or repr(one) != repr(other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() != other.keys() or any(differ(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) != len(other) or any(map(differ, one, other))
    return type(one).__qualname__ != type(other).__qualname__


def _is_leaf(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def _is_plain(value: Any) -> bool:
    """Whether JSON gives back the same value, of the same type."""
    if type(value) is dict:
        return all(type(name) is str and _is_plain(part) for name, part in value.items())
    if type(value) is list:
        return all(map(_is_plain, value))
    return _is_leaf(value) and (type(value) is not float or math.isfinite(value))
