"""What users may give by mistake, and which of it each kind of argument allows all the same."""

import copy
import decimal
import functools
import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from mfhpo._validation import shown

Kind = Callable[[Any], bool]
"""Whether a value is documented as allowed."""

_VALUES: list[Any] = [
    *(None, True, -1, 0, 0.5, math.nan, math.inf, -math.inf, 1e308, 10**9, 10**400, 1j),
    *(np.float32("nan"), decimal.Decimal("0.5"), np.array(0.5), np.ones((2, 2))),
    *("text", "", "3", b"", b"\x01\x09", [], (), {}, set(), {0, 1}, [1], [None], ["text"], [[]]),
    *([math.nan], [10**400, 0], {"text": 0}, {1: None}, np.array([None, "text"], dtype=object)),
    *("x" * 5_000, lambda *given: None, str),
]

# Made anew for each call, because generators are used up.
WRONG: dict[str, Callable[[], Any]] = {
    **{shown(value): functools.partial(copy.deepcopy, value) for value in _VALUES},
    "generator": lambda: (number for number in (0, 1)),
    "object()": object,
    "module": lambda: math,
}


def count(least: int, most: float = 2**63 - 1) -> Kind:
    return lambda value: (
        isinstance(value, Integral) and not isinstance(value, bool) and least <= value <= most
    )


def number(low: float = -math.inf, high: float = math.inf, *, to: str = "[]") -> Kind:
    """A number that a float holds, between bounds that belong to it as the brackets say."""

    def allows(value: Any) -> bool:
        if isinstance(value, decimal.Decimal) or (isinstance(value, np.ndarray) and not value.ndim):
            value = float(value)
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        if not abs(value) <= 1e50 and value not in (math.inf, -math.inf):
            return False
        given = float(value)
        above = given > low or (to[0] == "[" and given == low)
        return above and (given < high or (to[1] == "]" and given == high))

    return allows


def one_of(*values: Any) -> Kind:
    return lambda value: isinstance(value, (str, type(None), bool)) and value in values


def either(*kinds: Kind) -> Kind:
    return lambda value: any(kind(value) for kind in kinds)


def sequence_of(kind: Kind, least: int = 0) -> Kind:
    return lambda value: (
        isinstance(value, (list, tuple)) and len(value) >= least and all(map(kind, value))
    )


def mapping_of(keys: Kind, values: Kind, least: int = 0) -> Kind:
    return lambda value: (
        isinstance(value, Mapping)
        and len(value) >= least
        and all(map(keys, value))
        and all(map(values, value.values()))
    )


def nothing(value: Any) -> bool:
    return value is None


def text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def empty_set(value: Any) -> bool:
    return isinstance(value, set) and not value


def never(value: Any) -> bool:
    return False


def anything(value: Any) -> bool:
    return True


def function(value: Any) -> bool:
    return callable(value)


FLAG = one_of(True, False)
FINITE = number(to="()")
NONNEGATIVE = number(0, to="[)")
POSITIVE = number(0, to="()")
UNLIMITED = number(0, to="(]")  # where infinity says that there is no limit
PROBABILITY = number(0, 1, to="()")


def optional(kind: Kind) -> Kind:
    return either(nothing, kind)


def named(*kinds: tuple[Kind, str]) -> dict[str, Kind]:
    """Return what arguments may be by their names, which are given in one string for each kind."""
    return {name: kind for kind, names in kinds for name in names.split()}


def _named(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


BASELINE = either(nothing, _named)
INDEXED_BASELINE = either(BASELINE, count(-math.inf, math.inf))
