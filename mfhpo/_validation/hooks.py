"""Methods that a contract has a default for."""

from collections.abc import Callable
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])


def hook(method: _Method) -> _Method:
    """Mark a method that a class may replace; no other method of a base is ever replaced."""
    vars(method)["is_hook"] = True
    return method
