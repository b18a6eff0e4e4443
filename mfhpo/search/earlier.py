"""What a search tries first: the best of earlier results, and what its user believes in."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from mfhpo._validation import check_choice, check_name, check_sequence, is_number, shown
from mfhpo.knowledge.candidates import CandidatesLike, rows_of
from mfhpo.knowledge.fidelity import native

Direction: TypeAlias = Literal["minimize", "maximize"]

MOST_EARLIER = 10
"""Configurations of earlier results that a search begins with, at most."""

_SPREAD = 0.1  # of what is drawn around a centre, as a share of the parameter's range
_USUAL_WEIGHT = 0.5


class EarlierResults:
    """Results of an earlier search, whose best configurations another search is to try first.

    They set an order and are never evidence, so that their metric may be another one, and so may
    their data.

    Parameters
    ----------
    results
        One row for each evaluation, with its parameters and its value: a DataFrame, a dictionary of
        columns or a list of dictionaries. Parameters that are missing, or None or NaN in a table,
        are drawn.
    value
        The column with the values. Rows without a finite number there are left out.
    direction
        Whether small values are good, "minimize", or large ones, "maximize".

    Raises
    ------
    TypeError, ValueError
        For anything else, and where no row has a finite value and a parameter.

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
        rows = rows_of("results", results, right)
        having = [row for row in rows if is_number(row.get(value)) and math.isfinite(row[value])]
        sign = 1.0 if direction == "minimize" else -1.0
        having.sort(key=lambda row: sign * row[value])
        ranked = [{name: row[name] for name in row if name != value} for row in having]
        self.ranked: list[dict[str, Any]] = [
            configuration for configuration in ranked if configuration
        ]
        """The configurations, the best first."""
        if not self.ranked:
            names = sorted({name for row in rows for name in row})
            raise ValueError(
                f"value={shown(value)} must name a column of the results with finite numbers, "
                f"beside parameters; none of the {len(rows)} rows has both. Columns: {names}."
            )


def first_configurations(
    earlier: Any,
    owned: Collection[str] = (),
    as_results: Callable[[Any], Any] = lambda source: source,
) -> tuple[dict[str, Any], ...]:
    """Return the configurations that a search tries first: the best of each source in turn.

    A source is an `EarlierResults`, or a single configuration, or what `as_results` makes one of.
    Parameters that are `owned` are left out: the search itself sets them.
    """
    right = "a list of EarlierResults, of results of the same library, or of configurations"
    queues = []
    given = [] if earlier is None else check_sequence("earlier", earlier, right)
    for position, source in enumerate(map(as_results, given)):
        ranked = source.ranked if isinstance(source, EarlierResults) else [source]
        if not all(isinstance(each, Mapping) and all(map(_is_name, each)) for each in ranked):
            raise TypeError(f"earlier must be {right}, got earlier[{position}]={shown(source)}.")
        own = [{n: native(each[n]) for n in each if n not in owned} for each in ranked]
        if not any(own):
            raise ValueError(
                f"earlier[{position}]={shown(source)} has no parameter beside {sorted(owned)}, "
                f"which the search itself sets; leave it out."
            )
        queues.append(iter([each for each in own if each]))
    found: dict[str, dict[str, Any]] = {}
    while queues and len(found) < MOST_EARLIER:
        for queue in list(queues):
            new = next((each for each in queue if _key(each) not in found), None)
            if new is None:
                queues.remove(queue)
            else:
                found[_key(new)] = new
    return tuple(found.values())[:MOST_EARLIER]


def checked_beliefs(beliefs: Any, owned: Collection[str] = ()) -> dict[str, tuple[Any, float]]:
    """Return by parameter the centre that a user believes in, and its weight."""
    if beliefs is None:
        return {}
    if not isinstance(beliefs, Mapping) or not all(map(_is_name, beliefs)):
        raise TypeError(
            f"beliefs must be a dictionary of centres, or of pairs (centre, weight), by parameter, "
            f"got {shown(beliefs)}."
        )
    found = {}
    for name, given in beliefs.items():
        is_pair = isinstance(given, tuple) and len(given) == 2
        centre, weight = given if is_pair else (given, _USUAL_WEIGHT)
        if name in owned or centre != centre:
            raise ValueError(
                f"beliefs[{name!r}]={shown(given)} must be about a value of a parameter that the "
                f"search does not set itself; leave it out."
            )
        if not is_number(weight) or not 0.0 < weight <= 1.0:
            raise ValueError(
                f"beliefs[{name!r}] must have a weight above 0 and at most 1, got {shown(weight)}."
            )
        found[name] = native(centre), float(weight)
    return found


def believed(beliefs: Mapping[str, tuple[Any, float]], n: int) -> dict[str, Any]:
    """Return the centres that the n-th configuration is drawn around, as their weights say.

    The shares of the first configurations are as near to the weights as can be (van der Corput's
    sequence).
    """
    place, step = 0.0, 0.5
    while n:
        n, digit = divmod(n, 2)
        place, step = place + digit * step, step / 2.0
    return {name: centre for name, (centre, weight) in beliefs.items() if place < weight}


def near(place: float, key: Sequence[int]) -> float:
    """Draw a place around another one, both from 0 to 1; the key makes it repeatable."""
    drawn = abs(place + _SPREAD * float(np.random.default_rng(key).standard_normal()))
    return min(drawn, abs(2.0 - drawn))


def _is_name(name: Any) -> bool:
    return isinstance(name, str)


def _key(configuration: Mapping[str, Any]) -> str:
    return repr(sorted(configuration.items(), key=lambda item: item[0]))
