"""Configurations that a search is to choose from, as points of a space of their own."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from mfhpo.knowledge.space import Numeric, OneOf, Point, SearchSpace


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
        place = {key: rank / (n - 1) if ordered else float(rank) for rank, key in enumerate(different)}
        kinds[name] = Numeric(tuple(place.values())) if ordered else OneOf(n)
        for i, key in keys.items():
            points[i][name] = place[key]
    return SearchSpace(kinds), list(points)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
