"""Configurations that users give to choose from: read from a table, and described to a model."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

from mfhpo._validation import (
    MOST_ARMS,
    check_configurations,
    check_count,
    check_dictionaries,
    check_parameters,
    check_sequence,
)
from mfhpo.knowledge.fidelity import native
from mfhpo.knowledge.space import Numeric, OneOf, Point, SearchSpace

CandidatesLike: TypeAlias = Any
"""A number; a list of configurations; or columns, as a mapping or a DataFrame of pandas."""


def configurations_of(
    candidates: CandidatesLike, owned: Sequence[str] = (), *, may_repeat: bool = False
) -> int | list[dict[str, Any]]:
    """Take what a user gives: at least two configurations, all different unless they `may_repeat`.

    Parameters that are `owned`, because the search sets them, raise ValueError.
    """
    if isinstance(candidates, Integral) and not isinstance(candidates, bool):
        return check_count("candidates", int(candidates), 2, MOST_ARMS)
    right = "a number, a list of dictionaries, a dictionary of columns or a DataFrame"
    listed, is_table = rows_of("candidates", candidates, right)
    if is_table:
        check_parameters("candidates", set().union(*listed), owned)
    if len(listed) < 2:
        raise ValueError(f"candidates must be at least 2 configurations, got {len(listed)}.")
    if not may_repeat:
        check_configurations("candidates", listed, owned=owned)
    return listed


def rows_of(name: str, given: CandidatesLike, right: str) -> tuple[list[dict[str, Any]], bool]:
    """Return rows as dictionaries, and whether they are a table, whose NaN are left out."""
    rows = given
    if hasattr(given, "to_dict") and getattr(given, "ndim", None) != 1:
        rows = given.to_dict(orient="records")
    elif isinstance(given, Mapping):
        columns = {
            each: check_sequence(f"{name}[{each!r}]", column, "a column of values")
            for each, column in given.items()
        }
        lengths = {each: len(column) for each, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{name} must have columns of one length, got {lengths}.")
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    is_table = rows is not given
    listed = [
        {
            each: native(value)
            for each, value in row.items()
            if not (is_table and (value is None or value != value))
        }
        for row in check_dictionaries(name, rows, right)
    ]
    if is_table:
        _restore_integers(listed)
    return listed, is_table


def _restore_integers(rows: Sequence[dict[str, Any]]) -> None:
    """Make integers of a column's whole floats, which a DataFrame makes beside missing values."""
    for name in {name for row in rows for name in row}:
        having = [row for row in rows if name in row]
        are_whole = all(isinstance(row[name], float) and row[name].is_integer() for row in having)
        if are_whole and len(having) < len(rows):
            for row in having:
                row[name] = int(row[name])


def space_of(configurations: Sequence[Mapping[str, Any]]) -> tuple[SearchSpace, list[Point]]:
    """Describe configurations to a model: numbers by their ranks, other values as choices.

    What never varies is left out, and so are choices that no two configurations share, as names.
    """
    kinds: dict[str, Numeric | OneOf] = {}
    points: list[dict[str, float]] = [{} for _ in configurations]
    for name in dict.fromkeys(name for each in configurations for name in each):
        values = {i: each[name] for i, each in enumerate(configurations) if name in each}
        ordered = all(
            isinstance(value, Real) and not isinstance(value, bool) for value in values.values()
        )
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
