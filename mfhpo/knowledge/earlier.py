"""Configurations that a search tries first: the best of earlier results, and beliefs."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from mfhpo._validation import (
    check_choice,
    check_dictionaries,
    check_name,
    check_parameters,
    check_sequence,
    is_number,
    shown,
)
from mfhpo.knowledge.candidates import CandidatesLike, rows_of
from mfhpo.knowledge.fidelity import native

Direction: TypeAlias = Literal["minimize", "maximize"]

_MOST = 10  # configurations of earlier results that a search begins with
_SPREAD = 0.1  # of what is drawn around a centre, as a share of the parameter's range
_USUAL_WEIGHT = 0.5


class EarlierResults:
    """Results of an earlier search, by any metric, the best of which another one tries first.

    Parameters
    ----------
    results
        One row for each evaluation, with its parameters and its value: a DataFrame, a dictionary of
        columns or a list of dictionaries. Parameters that are missing, None or NaN are drawn.
    value
        The column with the values. Rows without a finite number there are left out.
    direction
        Whether small values are good, "minimize", or large ones, "maximize".

    Examples
    --------
    >>> rows = [{"lr": 0.1, "loss": 0.9}, {"lr": 0.01, "loss": 0.3}]
    >>> EarlierResults(rows, value="loss", direction="minimize").ranked
    [{'lr': 0.01}, {'lr': 0.1}]
    """

    def __init__(self, results: CandidatesLike, *, value: str, direction: Direction) -> None:
        check_name("value", value, "the name of a column of the results")
        check_choice("direction", direction, get_args(Direction))
        right = "a DataFrame, a dictionary of columns or a list of dictionaries"
        rows, _ = rows_of("results", results, right)
        having = [
            row
            for row in rows
            if len(row) > 1 and is_number(row.get(value)) and math.isfinite(row[value])
        ]
        if not having:
            names = sorted({name for row in rows for name in row})
            raise ValueError(
                f"results must have a row with a parameter, and a finite number as their "
                f"value={shown(value)}; none of the {len(rows)} has, with columns {shown(names)}."
            )
        having.sort(key=lambda row: row[value], reverse=direction == "maximize")
        self.ranked = [{name: row[name] for name in row if name != value} for row in having]
        """The configurations, the best first."""


def first_configurations(
    earlier: Any,
    owned: Collection[str] = (),
    as_results: Callable[[Any], Any] = lambda source: source,
) -> tuple[dict[str, Any], ...]:
    """Return the configurations that a search tries first: the best of each source in turn.

    A source is an `EarlierResults`, a configuration, or what `as_results` makes one of. Parameters
    that are `owned` are left out.
    """
    right = "a list of EarlierResults, of results of the same library, or of configurations"
    given = [] if earlier is None else check_sequence("earlier", earlier, right)
    ranked = []
    for position, source in enumerate(map(as_results, given)):
        rows = source.ranked if isinstance(source, EarlierResults) else [source]
        check_dictionaries(f"earlier[{position}]", rows, f"one of {right}")
        own = [{name: native(row[name]) for name in row if name not in owned} for row in rows]
        if not any(own):
            raise ValueError(
                f"earlier[{position}]={shown(source)} must have a parameter beside "
                f"{sorted(owned)}, which the search itself sets."
            )
        ranked.append(list({_key(each): each for each in own if each}.values()))
    turns = (each for turn in zip_longest(*ranked) for each in turn if each)
    return tuple({_key(each): each for each in turns}.values())[:_MOST]


def _key(configuration: Mapping[str, Any]) -> str:
    return repr(sorted(configuration.items(), key=lambda item: item[0]))


def checked_beliefs(beliefs: Any, owned: Collection[str] = ()) -> dict[str, tuple[Any, float]]:
    """Return by parameter the centre that a user believes in, and its weight."""
    if beliefs is None:
        return {}
    right = "a dictionary of centres, or of pairs (centre, weight), by parameter"
    check_dictionaries("beliefs", [beliefs], right)
    check_parameters("beliefs", beliefs, owned)
    found = {}
    for name, given in beliefs.items():
        is_pair = isinstance(given, (tuple, list)) and len(given) == 2
        centre, weight = given if is_pair else (given, _USUAL_WEIGHT)
        if not is_number(weight) or not 0.0 < weight <= 1.0:
            raise ValueError(
                f"beliefs[{name!r}] must have a weight above 0 and at most 1, got {shown(weight)}."
            )
        found[name] = native(centre), float(weight)
    return found


def believed(beliefs: Mapping[str, tuple[Any, float]], n: int) -> dict[str, Any]:
    """Return the centres that the n-th configuration is drawn around, by their shares of all."""

    def is_due(weight: float) -> bool:
        return math.ceil((n + 1) * weight) > math.ceil(n * weight)

    return {name: centre for name, (centre, weight) in beliefs.items() if is_due(weight)}


def near(place: float, key: Sequence[int]) -> float:
    """Draw a place around another one, both from 0 to 1; the key makes it repeatable."""
    drawn = abs(place + _SPREAD * float(np.random.default_rng(key).standard_normal()))
    return min(drawn, abs(2.0 - drawn))
