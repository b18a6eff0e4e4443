"""What a search tries first: the best of earlier results, and what its user believes in."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from mfhpo._validation import check_choice, check_name, check_sequence, is_number, shown
from mfhpo.knowledge.candidates import CandidatesLike, rows_of
from mfhpo.knowledge.fidelity import native

Direction: TypeAlias = Literal["minimize", "maximize"]

_MOST = 10  # configurations of earlier results that a search begins with
_SPREAD = 0.1  # of what is drawn around a centre, as a share of the parameter's range
_USUAL_WEIGHT = 0.5


class EarlierResults:
    """Results of an earlier search, the best of which another search is to try first.

    They set an order and are never evidence, so their metric and their data may be others.

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
        rows = rows_of("results", results, right)
        having = [
            row
            for row in rows
            if len(row) > 1 and is_number(row.get(value)) and math.isfinite(row[value])
        ]
        if not having:
            raise ValueError(
                f"value={shown(value)} must name a column of the results with finite numbers, "
                f"beside parameters; none of the {len(rows)} rows has both. Columns: "
                f"{shown(sorted({name for row in rows for name in row}))}."
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

    A source is an `EarlierResults`, or a single configuration, or what `as_results` makes one of.
    Parameters that are `owned` are left out: the search itself sets them.
    """
    right = "a list of EarlierResults, of results of the same library, or of configurations"
    given = [] if earlier is None else check_sequence("earlier", earlier, right)
    queues = []
    for position, source in enumerate(map(as_results, given)):
        ranked = source.ranked if isinstance(source, EarlierResults) else [source]
        if not all(isinstance(each, Mapping) and _has_names(each) for each in ranked):
            raise TypeError(f"earlier must be {right}, got earlier[{position}]={shown(source)}.")
        own = [{n: native(each[n]) for n in each if n not in owned} for each in ranked]
        if not any(own):
            raise ValueError(
                f"earlier[{position}]={shown(source)} must have a parameter beside "
                f"{sorted(owned)}, which the search itself sets."
            )
        queues.append(iter([each for each in own if each]))
    found: dict[str, dict[str, Any]] = {}
    while queues and len(found) < _MOST:
        queues = [queue for queue in queues if _take_next(queue, found)]
    return tuple(found.values())[:_MOST]


def _take_next(queue: Iterator[dict[str, Any]], found: dict[str, dict[str, Any]]) -> bool:
    """Add a source's next configuration that is new; False if there is none."""
    for configuration in queue:
        key = repr(sorted(configuration.items(), key=lambda item: item[0]))
        if key not in found:
            found[key] = configuration
            return True
    return False


def checked_beliefs(beliefs: Any, owned: Collection[str] = ()) -> dict[str, tuple[Any, float]]:
    """Return by parameter the centre that a user believes in, and its weight."""
    if beliefs is None:
        return {}
    if not isinstance(beliefs, Mapping) or not _has_names(beliefs):
        raise TypeError(
            f"beliefs must be a dictionary of centres, or of pairs (centre, weight), by parameter, "
            f"got {shown(beliefs)}."
        )
    found = {}
    for name, given in beliefs.items():
        is_pair = isinstance(given, tuple) and len(given) == 2
        centre, weight = given if is_pair else (given, _USUAL_WEIGHT)
        if name in owned:
            raise ValueError(
                f"beliefs[{name!r}]={shown(given)} is about what the search itself sets; leave it "
                f"out."
            )
        if not is_number(weight) or not 0.0 < weight <= 1.0:
            raise ValueError(
                f"beliefs[{name!r}] must have a weight above 0 and at most 1, got {shown(weight)}."
            )
        found[name] = native(centre), float(weight)
    return found


def believed(beliefs: Mapping[str, tuple[Any, float]], n: int) -> dict[str, Any]:
    """Return the centres that the n-th configuration is drawn around.

    Weights and shares of the first configurations agree as far as can be (van der Corput).
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


def _has_names(given: Mapping[Any, Any]) -> bool:
    return all(isinstance(name, str) for name in given)
