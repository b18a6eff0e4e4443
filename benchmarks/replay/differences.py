"""Where two records of a run first differ."""

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any


def first_difference(now: Any, before: Any) -> str | None:
    """The first place where two JSON values differ, with both values; None if they are equal.

    Examples
    --------
    >>> first_difference({"trials": [{"x": 1, "y": 0.5}]}, {"trials": [{"x": 1, "y": 0.25}]})
    'trials[0].y: 0.5, was 0.25'
    """
    pairs = zip_longest(_values(now), _values(before), fillvalue=("the end", "nothing"))
    for (place, value), (place_before, value_before) in pairs:
        if place != place_before:
            return f"{place}: {value}, was {place_before}: {value_before}"
        if value != value_before:
            return f"{place}: {value}, was {value_before}"
    return None


def _values(record: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """All values by their places, as text: 1 is not 1.0 here, and NaN equals NaN."""
    if isinstance(record, dict):
        for name, value in record.items():
            yield from _values(value, f"{place}.{name}".lstrip("."))
    elif isinstance(record, list):
        for index, value in enumerate(record):
            yield from _values(value, f"{place}[{index}]")
    else:
        yield place, json.dumps(record)
