"""Configurations that a search is to choose from, as points of a space of their own."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

from mfhpo._validation import check_count
from mfhpo.knowledge.fidelity import native
from mfhpo.knowledge.space import Numeric, OneOf, Point, SearchSpace

CandidatesLike: TypeAlias = Any
"""A number; a list of configurations; or columns, as a mapping or a DataFrame of pandas."""


def configurations_of(candidates: CandidatesLike) -> int | list[dict[str, Any]]:
    """Take what a user gives: at least two configurations, all of them different.

    Cells of a table that are NaN or None stand for parameters that do not apply. Raises TypeError
    or ValueError if it is anything else.

    Examples
    --------
    >>> configurations_of({"lr": [0.1, 0.2], "depth": [3, 4]})
    [{'lr': 0.1, 'depth': 3}, {'lr': 0.2, 'depth': 4}]
    """
    if isinstance(candidates, Integral) and not isinstance(candidates, bool):
        return check_count("candidates", int(candidates), 2)
    rows = candidates
    if hasattr(candidates, "to_dict"):
        rows = candidates.to_dict(orient="records")
    elif isinstance(candidates, Mapping):
        lengths = {name: len(column) for name, column in candidates.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"candidates must have columns of one length, got {lengths}.")
        rows = [
            dict(zip(candidates, row, strict=True))
            for row in zip(*candidates.values(), strict=True)
        ]
    if isinstance(rows, str) or not isinstance(rows, Sequence):
        rows = None
    if rows is None or not all(isinstance(row, Mapping) for row in rows):
        raise TypeError(
            f"candidates must be a number, a list of dictionaries, a dictionary of columns or a "
            f"DataFrame, got {candidates!r}."
        )
    is_table = rows is not candidates
    listed = [
        {
            name: native(value)
            for name, value in row.items()
            if not (is_table and (value is None or value != value))
        }
        for row in rows
    ]
    if len(listed) < 2:
        raise ValueError(f"candidates must be at least 2 configurations, got {len(listed)}.")
    seen: dict[str, int] = {}
    for position, row in enumerate(listed):
        first = seen.setdefault(repr(sorted(row.items())), position)
        if first != position:
            raise ValueError(
                f"candidates[{first}] and candidates[{position}] are equal: {row}; equal ones can "
                f"never be told apart, remove one."
            )
    return listed


def space_of(configurations: Sequence[Mapping[str, Any]]) -> tuple[SearchSpace, list[Point]]:
    """Describe configurations to a model.

    A number's place is its rank among the values that occur. Other values are choices without an
    order. What never varies, and choices that no two configurations share, such as names, say
    nothing of other configurations and are left out.

    Examples
    --------
    >>> space, points = space_of([{"lr": 0.1, "act": "relu"}, {"lr": 10, "act": "relu"}])
    >>> space.parameters, points
    ({'lr': Numeric(places=(0.0, 1.0))}, [{'lr': 0.0}, {'lr': 1.0}])
    """
    kinds: dict[str, Numeric | OneOf] = {}
    points: list[dict[str, float]] = [{} for _ in configurations]
    for name in dict.fromkeys(name for each in configurations for name in each):
        values = {i: each[name] for i, each in enumerate(configurations) if name in each}
        ordered = all(_is_number(value) for value in values.values())
        keys = {i: value if ordered else repr(value) for i, value in values.items()}
        different = sorted(set(keys.values()))
        n = len(different)
        if n < 2 or (not ordered and n == len(keys)):
            continue
        last = n - 1 if ordered else 1
        place = {key: rank / last for rank, key in enumerate(different)}
        kinds[name] = Numeric(tuple(place.values())) if ordered else OneOf(n)
        for i, key in keys.items():
            points[i][name] = place[key]
    return SearchSpace(kinds), list(points)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
