"""Configurations as a model sees them, and which of them have a parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from mfhpo._validation import MOST_ARMS, check_count, check_numbers, shown
from mfhpo.knowledge.arrays import BoolArray, FloatArray

V = TypeVar("V")

Point: TypeAlias = Mapping[str, float]
"""A configuration: by name, a number's place in its range, from 0 to 1, or the index of a choice.

Parameters that do not apply to the configuration are absent.
"""

_MISSING = 0.5  # the feature of a number that does not apply: the middle of its range as given
_GRID = 1000  # places at which the values of a parameter with steps are looked up
_CHOICE = math.sqrt(0.5)  # two choices are then as far apart as the ends of a range


@dataclass(frozen=True)
class Numeric:
    """A parameter with an order, given by its place in its range: from 0 to 1.

    Parameters
    ----------
    places
        Those of its values, increasing, if there are few of them. Empty: any place may be reached.
    """

    places: tuple[float, ...] = ()
    width = 1  # number of features

    def __post_init__(self) -> None:
        inner = check_numbers("places", self.places, "a tuple of numbers from 0 to 1")
        places = np.array([0.0, *inner, 1.0])
        if not (np.diff(places[1:-1]) > 0.0).all() or not (np.diff(places) >= 0.0).all():
            raise ValueError(f"places must increase and be from 0 to 1, got {shown(self.places)}.")

    @classmethod
    def stepwise(cls, value_at: Callable[[float], V], place_of: Callable[[V], float]) -> Numeric:
        """Return a parameter with steps, such as whole numbers, at the places of a fine grid."""
        values = {value_at(index / (_GRID - 1)) for index in range(_GRID)}
        return cls(tuple(sorted(place_of(value) for value in values)))

    def snapped(self, places: FloatArray) -> FloatArray:
        """Return the nearest places that can be reached."""
        if not self.places:
            return places
        reached = np.array(self.places)
        return np.asarray(reached[np.searchsorted((reached[1:] + reached[:-1]) / 2.0, places)])


@dataclass(frozen=True)
class OneOf:
    """A parameter without an order, given by the index of its value among its choices.

    Parameters
    ----------
    n
        Number of choices.
    """

    n: int

    def __post_init__(self) -> None:
        check_count("n", self.n, 1, MOST_ARMS)

    def snapped(self, places: FloatArray) -> FloatArray:
        """Return the indices of the choices at places from 0 to 1."""
        return np.minimum((places * self.n).astype(np.int64), self.n - 1).astype(np.float64)

    @property
    def width(self) -> int:
        """Number of features."""
        return self.n


class SearchSpace:
    """The parameters, and when they apply as far as configurations told.

    Parameters
    ----------
    parameters
        Each parameter by its name.

    Examples
    --------
    >>> space = SearchSpace({"kernel": OneOf(2), "gamma": Numeric()})
    >>> space.features([{"kernel": 1, "gamma": 0.25}, {"kernel": 0}]).round(2).tolist()
    [[0.0, 0.71, 0.25], [0.71, 0.0, 0.5]]
    """

    def __init__(self, parameters: Mapping[str, Numeric | OneOf]) -> None:
        self.parameters = dict(parameters)
        kinds = self.parameters.values()
        # Which parameters have an order, shape (number of parameters,); which features are numbers.
        self.ordered: BoolArray = np.array([isinstance(one, Numeric) for one in kinds], dtype=bool)
        self.numbers = np.repeat(self.ordered, np.array([one.width for one in kinds], dtype=int))
        self.n_features = len(self.numbers)
        self._conditions: dict[str, Question] = {}

    def features(self, points: Sequence[Point]) -> FloatArray:
        """Return configurations as vectors, shape (len(points), n_features).

        Choices are indicators, all 0 if the parameter does not apply.
        """
        return self._columns(len(points), *self._table(points))

    def cube_features(self, cube: FloatArray) -> FloatArray:
        """Return the `features` of points of the unit cube, shape (n, number of parameters)."""
        values = {
            name: parameter.snapped(cube[:, index])
            for index, (name, parameter) in enumerate(self.parameters.items())
        }
        return self._columns(len(cube), values, self._present(values))

    def at(self, place: FloatArray) -> dict[str, float]:
        """Return the configuration at a point of the unit cube, with all parameters."""
        values = np.asarray(place)
        parameters = enumerate(self.parameters.items())
        return {name: float(one.snapped(values[index])) for index, (name, one) in parameters}

    def place(self, point: Point, rng: np.random.Generator) -> FloatArray:
        """Return the inverse of `at`; parameters that do not apply are drawn at random."""
        cube = rng.random(len(self.parameters))
        for index, (name, parameter) in enumerate(self.parameters.items()):
            if name in point:
                numeric = isinstance(parameter, Numeric)
                cube[index] = point[name] if numeric else (point[name] + 0.5) / parameter.width
        return cube

    def learn_conditions(self, points: Sequence[Point]) -> None:
        """Find out when parameters apply (`explain`); those without an explanation apply always."""
        self._conditions.clear()
        if all(self.parameters.keys() <= point.keys() for point in points):
            return
        table, having = self._table(points)
        known: dict[bytes, Question | None] = {}  # many parameters come and go together
        for name, has in having.items():
            if has.all():
                continue
            # More have the parent, so that no two parameters can explain each other.
            parents = [
                parent
                for parent, also in having.items()
                if also[has].all() and also.sum() > has.sum()
            ]
            # Of choices, of numbers with steps, of others.
            kinds: tuple[dict[str, FloatArray], ...] = ({}, {}, {})
            for parent in parents:
                parameter = self.parameters[parent]
                kind = 0 if isinstance(parameter, OneOf) else 1 if parameter.places else 2
                kinds[kind][parent] = table[parent]
            if has.tobytes() not in known:
                known[has.tobytes()] = explain(has, *kinds)
            question = known[has.tobytes()]
            if question is not None:
                self._conditions[name] = question

    def _table(self, points: Sequence[Point]) -> tuple[dict[str, FloatArray], dict[str, BoolArray]]:
        """Return the values of each parameter, NaN where it is missing, and where it is there."""
        parameters = self.parameters
        table = {
            name: np.array([each.get(name, math.nan) for each in points]) for name in parameters
        }
        return table, {name: ~np.isnan(values) for name, values in table.items()}

    def _columns(
        self, n: int, values: Mapping[str, FloatArray], present: Mapping[str, BoolArray]
    ) -> FloatArray:
        """Return features of n configurations; parameters not in `present` always apply."""
        columns = np.zeros((n, self.n_features))
        column = 0
        for name, parameter in self.parameters.items():
            rows = np.flatnonzero(present[name]) if name in present else np.arange(n)
            known = values[name][rows]
            if isinstance(parameter, Numeric):
                columns[:, column] = _MISSING
                columns[rows, column] = known
            else:
                chosen = np.minimum(known.astype(np.int64), parameter.n - 1)
                columns[rows, column + chosen] = _CHOICE
            column += parameter.width
        return columns

    def _present(self, values: Mapping[str, FloatArray]) -> dict[str, BoolArray]:
        """Return by name which configurations have a parameter, without those that all have."""
        found: dict[str, BoolArray] = {}

        def answer(question: Question) -> BoolArray:
            asked = values[question.parent]
            here = np.ones(len(asked), dtype=np.bool_)
            for inside, (_, _, said) in zip(question.inside(asked), question.branches, strict=True):
                here = np.where(inside, said if isinstance(said, bool) else answer(said), here)
            return here & present(question.parent) if question.parent in self._conditions else here

        def present(name: str) -> BoolArray:
            if name not in found:
                found[name] = answer(self._conditions[name])
            return found[name]

        for name in self._conditions:
            present(name)
        return found


def place_in_range(value: float, low: float, high: float, log: bool) -> float:
    """Return where a number lies between two others, from 0 to 1.

    Parameters
    ----------
    value, low, high
        The number, and the two others.
    log
        Whether the range is logarithmic.
    """
    if log:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


_MOST_QUESTIONS = 3  # in a row
_TRIED = 4  # of the questions that may come first


@dataclass(frozen=True)
class Question:
    """Asks for the value of a parameter, which either settles it or leads to another question.

    Configurations without the `parent` do not have the other parameter either. Of the `branches`,
    values from the first number to below the second one have this answer; others say yes.
    """

    parent: str
    branches: tuple[tuple[float, float, Answer], ...]

    def inside(self, values: FloatArray) -> list[BoolArray]:
        """Return which values belong to each branch."""
        return [(values >= low) & (values < high) for low, high, _ in self.branches]


Answer: TypeAlias = bool | Question


def explain(
    has: BoolArray,
    choices: Mapping[str, FloatArray],
    steps: Mapping[str, FloatArray],
    numbers: Mapping[str, FloatArray],
) -> Question | None:
    """Find the questions that tell the configurations with a parameter from those without it.

    Few questions in a row are preferred, three at most, and questions about choices to those about
    numbers with steps. Other numbers come last, with one question alone, because among many of them
    one has a fitting threshold by chance. `has` says which configurations have it, (n,), the others
    are values of parameters that it may depend on, NaN where missing.
    """
    if not has.any():  # perhaps a choice that was not seen has it
        seen = (each for each in choices.items() if not np.isnan(each[1]).all())
        return next((_about_choices(name, values, False) for name, values in seen), None)
    for most in range(1, _MOST_QUESTIONS + 1):
        for ordered in ({}, steps) if steps else ({},):
            found = _explain(has, choices, ordered, most)
            if isinstance(found, Question):
                return found
    found = _explain(has, {}, numbers, 1)
    return found if isinstance(found, Question) else None


def _explain(
    has: BoolArray, choices: Mapping[str, FloatArray], numbers: Mapping[str, FloatArray], most: int
) -> Answer | None:
    """Explain a part of the configurations; None if they cannot be told apart."""
    if has.all() or not has.any():
        return bool(has.all())
    if most == 0:
        return None
    ways = list(_ways(has, choices, numbers))
    # Those that leave least to be told apart go first.
    parts = [[has[inside] for inside in question.inside(values)] for question, values in ways]
    mixed = [sum(float(_mixture(part.sum(), len(part))) for part in each) for each in parts]
    for place in np.argsort(mixed, kind="stable")[: _TRIED if most > 1 else 1].tolist():
        question, values = ways[place]
        told: list[tuple[float, float, Answer]] = []
        for inside, (low, high, _) in zip(question.inside(values), question.branches, strict=True):
            chosen = {name: several[inside] for name, several in choices.items()}
            placed = {name: several[inside] for name, several in numbers.items()}
            answer = _explain(has[inside], chosen, placed, most - 1)
            if answer is None:
                break
            told.append((low, high, answer))
        else:
            return Question(question.parent, tuple(told))
    return None


def _ways(
    has: BoolArray, choices: Mapping[str, FloatArray], numbers: Mapping[str, FloatArray]
) -> Iterator[tuple[Question, FloatArray]]:
    """Return open questions: about each choice, and each number's best threshold."""
    for name, values in choices.items():
        question = _about_choices(name, values, True)
        if len(question.branches) > 1 or np.isnan(values).any():
            yield question, values
    for name, values in numbers.items():
        there = ~np.isnan(values)
        order = np.argsort(values[there], kind="stable")
        ordered, having = values[there][order], has[there][order]
        between = np.flatnonzero(ordered[1:] > ordered[:-1])
        if not between.size:
            continue
        below, n_below = np.cumsum(having)[between], between + 1
        above, n_above = having.sum() - below, len(having) - n_below
        mixed = _mixture(below, n_below) + _mixture(above, n_above)
        cut = between[int(np.argmin(mixed))]
        threshold = float((ordered[cut] + ordered[cut + 1]) / 2.0)
        yield Question(name, ((-np.inf, threshold, True), (threshold, np.inf, True))), values


def _about_choices(name: str, values: FloatArray, answer: bool) -> Question:
    seen = np.unique(values[~np.isnan(values)]).tolist()
    return Question(name, tuple((choice, choice + 1.0, answer) for choice in seen))


def _mixture(n_having: npt.ArrayLike, n: npt.ArrayLike) -> FloatArray:
    """Return Gini's impurity, times the number of configurations."""
    share = np.divide(n_having, np.maximum(n, 1))
    return np.asarray(n * share * (1.0 - share))
