"""What users may give by mistake, and which of it each kind of argument allows all the same."""

import decimal
import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

Kind = Callable[[Any], bool]
"""Whether a value is documented as allowed."""

# Made anew for each call, because generators are used up.
WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "-1": lambda: -1,
    "0": lambda: 0,
    "0.5": lambda: 0.5,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "1e308": lambda: 1e308,
    "10**9": lambda: 10**9,
    "10**400": lambda: 10**400,
    "np.float32('nan')": lambda: np.float32("nan"),
    "complex": lambda: 1j,
    "Decimal": lambda: decimal.Decimal("0.5"),
    "array without an axis": lambda: np.array(0.5),
    "'text'": lambda: "text",
    "''": lambda: "",
    "'3'": lambda: "3",
    "b''": lambda: b"",
    "b'bytes'": lambda: b"\x01\x09",
    "[]": lambda: [],
    "()": lambda: (),
    "{}": lambda: {},
    "set()": set,
    "{0, 1}": lambda: {0, 1},
    "generator": lambda: (number for number in (0, 1)),
    "[1]": lambda: [1],
    "[None]": lambda: [None],
    "['text']": lambda: ["text"],
    "[[]]": lambda: [[]],
    "[nan]": lambda: [math.nan],
    "[10**400, 0]": lambda: [10**400, 0],
    "{'text': 0}": lambda: {"text": 0},
    "{1: None}": lambda: {1: None},
    "array (2, 2)": lambda: np.ones((2, 2)),
    "array of objects": lambda: np.array([None, "text"], dtype=object),
    "long text": lambda: "x" * 5_000,
    "lambda": lambda: lambda *given: None,
    "object()": object,
    "type": lambda: str,
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
