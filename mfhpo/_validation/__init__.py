"""Checks of arguments, for the core and all integrations: each raises an error that names its own.

The errors read "NAME must be WHAT, got VALUE", long values shortened. `right` gives the words that
follow "must be", and `otherwise` those that follow what is usual.
"""

import itertools
import math
import operator
import reprlib
import sys
from collections.abc import Callable, Collection, Mapping, Reversible, Sequence, Set
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

# Numbers up to which memory and time are no trouble: of arms and candidates, of what is asked for
# at once, of levels and limits; and what NumPy's integers hold.
MOST_ARMS = 100_000
MOST_AT_ONCE = 100_000
MOST_LEVELS = 1_000
MOST_SEED = 2**128
_LARGEST_COUNT = 2**63 - 1
_LARGEST = 1e50  # fourth powers of such numbers, and sums of them, are still finite

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 120
_short.maxlist = _short.maxtuple = _short.maxdict = 12


def shown(value: Any) -> str:
    return _short.repr(value)


def is_number(value: Any) -> bool:
    """Return whether a value is a plain number; True and False are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def unwrapped(value: Any) -> Any:
    """Return a Decimal, or an array of NumPy without an axis, as a plain number; else `value`."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return float(value) if isinstance(value, Decimal) and not value.is_snan() else value


def check_number(name: str, value: Any, otherwise: str = "") -> float:
    """Return `value` as a float; raise unless it is a number or NaN; True and False are none."""
    if type(value) is float and abs(value) <= _LARGEST:  # the usual case, quickly
        return value
    value = unwrapped(value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number{otherwise}, got {shown(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = sys.float_info.max
    if _LARGEST < abs(number) < math.inf:
        raise ValueError(
            f"{name} must be a number{otherwise} of a size up to {_LARGEST:g}, got {shown(value)}."
        )
    return number


def check_sequence(name: str, value: Any, right: str) -> list[Any]:
    """Return `value` as a list; TypeError unless it is a collection with an order."""
    # An array of NumPy, or a column of pandas.
    listed = value.tolist() if getattr(value, "ndim", None) == 1 else value
    has_order = isinstance(listed, Collection) and isinstance(listed, Sequence | Reversible)
    if isinstance(listed, (str, bytes, bytearray, Mapping)) or not has_order:
        raise TypeError(f"{name} must be {right}, got {shown(value)}.")
    return list(listed)


def check_numbers(name: str, value: Any, right: str) -> list[float]:
    listed = check_sequence(name, value, right)
    return [check_number(f"{name}[{position}]", entry) for position, entry in enumerate(listed)]


def check_array(name: str, value: Any, right: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be {right}, got {shown(value)}.") from None


def _demand(holds: bool, name: str, right: str, value: Any, hint: str = "") -> None:
    if not holds:
        raise ValueError(f"{name} must {right}, got {shown(value)}{hint}.")


def check_probability(name: str, value: float) -> float:
    number = check_number(name, value)
    _demand(0.0 < number < 1.0, name, "lie strictly between 0 and 1", value, "; try 0.05")
    return number


def check_positive(name: str, value: float, hint: str = "") -> float:
    number = check_number(name, value)
    _demand(0.0 < number < math.inf, name, "be positive and finite", value, hint)
    return number


def check_nonnegative(name: str, value: Any) -> float:
    number = check_number(name, value)
    _demand(0.0 <= number < math.inf, name, "be a finite number of at least 0", value)
    return number


def check_finite(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    _demand(math.isfinite(check_number(name, value, " or None")), name, "be finite or None", value)
    return float(value)


def check_limit(name: str, value: Any, unit: str = " of seconds") -> float | None:
    if value is None:
        return None
    limit = check_number(name, value, f"{unit} or None")
    _demand(limit > 0.0, name, f"be a positive number{unit} or None", value)
    return limit


def check_count(name: str, value: Any, least: int, most: int = _LARGEST_COUNT) -> int:
    if type(value) is int and least <= value <= most:  # the usual case, quickly
        return value
    is_whole = isinstance(value, Integral)
    if not is_whole or isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a whole number, got {shown(value)}.")
    _demand(value >= least, name, f"be at least {least}", int(value))
    _demand(value <= most, name, f"be at most {most}", int(value))
    return int(value)


def check_seed(value: Any) -> int:
    if value is None:
        raise TypeError("seed must be a whole number such as 0, got None.")
    return check_count("seed", value, 0, MOST_SEED)


def check_index(name: str, value: int, size: int) -> int:
    if type(value) is int and 0 <= value < size:
        return value
    _demand(0 <= check_count(name, value, -1) < size, name, f"be 0 to {size - 1}", value)
    return int(value)


def check_flag(name: str, value: bool) -> bool:
    return bool(check_instance(name, value, (bool, np.bool_), "True or False"))


def check_name(name: str, value: str, right: str = "a name") -> str:
    check_instance(name, value, str, right)
    _demand(value != "", name, f"be {right}, not empty", value)
    return value


def check_names(name: str, value: Any, right: str) -> tuple[str, ...]:
    names = tuple(value if isinstance(value, Set) else check_sequence(name, value, right))
    if not all(isinstance(each, str) and each for each in names):
        raise TypeError(f"{name} must be {right}, got {shown(value)}.")
    return names


def check_choice(name: str, value: T, choices: Collection[Any], otherwise: str = "") -> T:
    """Return `value`, or raise unless it is one of some strings, flags or None."""
    if not (isinstance(value, (str, bool)) or value is None) or value not in choices:
        error = ValueError if isinstance(value, str) else TypeError
        words = ", ".join(map(repr, choices))
        raise error(f"{name} must be one of {words}{otherwise}, got {shown(value)}.")
    return value


def check_instance(name: str, value: T, kinds: Any, right: str) -> T:
    if not isinstance(value, kinds):
        raise TypeError(f"{name} must be {right}, got {shown(value)}.")
    return value


def check_increasing(name: str, values: Sequence[float]) -> None:
    if not values:
        raise ValueError(f"{name} must not be empty.")
    are_finite = all(-math.inf < value < math.inf for value in values)
    _demand(are_finite, name, "be finite", list(values))
    for position, (left, right) in enumerate(itertools.pairwise(values)):
        if not left < right:
            raise ValueError(
                f"{name} must increase strictly, cheapest fidelity first, but "
                f"{name}[{position}]={left!r} is followed by {right!r}; sort them and drop repeats."
            )


def check_costs(costs: Any, right: str = "one number for each level", name: str = "costs") -> Any:
    checked = tuple(check_numbers(name, costs, right))
    check_increasing(name, checked)
    _demand(checked[0] > 0.0, name, "be positive", list(checked))
    return checked


def check_dictionaries(name: str, rows: Any, right: str) -> list[Mapping[str, Any]]:
    """Return configurations as a list, or raise unless they are dictionaries by names."""
    listed = check_sequence(name, rows, right)
    for position, row in enumerate(listed):
        if not isinstance(row, Mapping) or not all(isinstance(each, str) for each in row):
            raise TypeError(f"{name} must be {right}, got {name}[{position}]={shown(row)}.")
    return listed


def check_baseline(value: Any, has_index: bool = True) -> Any:
    """Return a configuration in use today, or its index where others are given, or None."""
    is_one = isinstance(value, Mapping) and all(isinstance(each, str) for each in value)
    is_index = has_index and isinstance(value, Integral) and not isinstance(value, bool)
    if not (value is None or is_one or is_index):
        index = ", the index of one that is compared" * has_index
        raise TypeError(
            f"baseline must be a dictionary of parameters{index} or None, got {shown(value)}."
        )
    return value


def check_parameters(name: str, parameters: Collection[str], owned: Collection[str]) -> None:
    """Raise ValueError if a parameter of a space, or a column of a table, is `owned`."""
    for parameter in owned:
        if parameter in parameters:
            raise ValueError(
                f"{name}[{parameter!r}] is given, but the sampler itself sets {parameter!r} in "
                f"every trial, as the fidelity or the replicate; leave it out of {name}."
            )


def check_configurations(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    owned: Collection[str] = (),
    owner: str = "sampler",
    contains: Callable[[Any, str], bool] = operator.contains,
    key: Callable[[Mapping[str, Any]], Any] = lambda row: frozenset(row.items()),
) -> None:
    """Raise ValueError for too many, equal ones (by `key`), or a parameter that is `owned`."""
    if len(rows) > MOST_ARMS:
        raise ValueError(f"{name} must be at most {MOST_ARMS:,} configurations, got {len(rows):,}.")
    seen: dict[Any, int] = {}
    for position, row in enumerate(rows):
        for parameter in owned:
            if contains(row, parameter):
                raise ValueError(
                    f"{name}[{position}] contains {parameter!r}, which the {owner} itself sets "
                    f"in every trial, as the fidelity or the replicate; leave it out of {name}."
                )
        try:
            first = seen.setdefault(key(row), position)
        except TypeError:  # lists and the like
            first = seen.setdefault(repr(sorted(row.items())), position)
        if first != position:
            raise ValueError(
                f"{name}[{first}] and {name}[{position}] are equal: {shown(dict(row))}; equal ones "
                f"can never be told apart, remove one."
            )


def plain(value: Any) -> Any:
    """Copy nested values into what JSON has: tuples become lists, what is not finite None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


_Method = TypeVar("_Method", bound=Callable[..., Any])


def hook(method: _Method) -> _Method:
    """Mark a method that a class may replace; no other method of a base is ever replaced."""
    vars(method)["is_hook"] = True
    return method
