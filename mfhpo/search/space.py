"""What configurations look like to a model: numbers in a unit range, and choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_count
from mfhpo.search.conditions import ByChoice, Question, explain

__all__ = ["Numeric", "OneOf", "Point", "SearchSpace"]

FloatArray: TypeAlias = npt.NDArray[np.float64]

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
        Those of its values, in increasing order, if there are few of them, as whole numbers are;
        empty if any place may be reached. A model that took places in between for something new
        would ask for the same value again and again.

    Raises
    ------
    ValueError
        If places do not increase from 0 to 1.
    """

    places: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        places = np.array([0.0, *self.places, 1.0])
        if not (np.diff(places[1:-1]) > 0.0).all() or not (np.diff(places) >= 0.0).all():
            raise ValueError(f"places must increase and be from 0 to 1, got {self.places!r}.")

    @classmethod
    def stepwise(cls, value_at: Callable[[float], V], place_of: Callable[[V], float]) -> Numeric:
        """A parameter with steps, such as whole numbers, however many there are.

        The places are those of the values that a grid of a thousand finds: the ends, and all values
        that are not nearer to each other than a model could tell apart.

        Parameters
        ----------
        value_at
            The value at a place from 0 to 1, the same for all places that are nearest to it.
        place_of
            Its own place.

        Examples
        --------
        >>> Numeric.stepwise(lambda place: round(4 * place), lambda value: value / 4)
        Numeric(places=(0.0, 0.25, 0.5, 0.75, 1.0))
        """
        values = {value_at(index / (_GRID - 1)) for index in range(_GRID)}
        return cls(tuple(sorted(place_of(value) for value in values)))

    def snapped(self, places: FloatArray) -> FloatArray:
        """The nearest places that can be reached."""
        if not self.places:
            return places
        reached = np.array(self.places)
        snapped: FloatArray = reached[np.searchsorted((reached[1:] + reached[:-1]) / 2.0, places)]
        return snapped

    @property
    def width(self) -> int:
        """Number of features."""
        return 1


@dataclass(frozen=True)
class OneOf:
    """A parameter without an order, given by the index of its value among `n` choices."""

    n: int

    def __post_init__(self) -> None:
        check_count("n", self.n, 1)

    @property
    def width(self) -> int:
        """Number of features."""
        return self.n


class SearchSpace:
    """The parameters that are known of, and when they apply as far as configurations told.

    Parameters
    ----------
    parameters
        By name, `Numeric` or `OneOf`.

    Examples
    --------
    >>> space = SearchSpace({"kernel": OneOf(2), "gamma": Numeric()})
    >>> space.features([{"kernel": 1, "gamma": 0.25}, {"kernel": 0}]).round(2).tolist()
    [[0.0, 0.71, 0.25], [0.71, 0.0, 0.5]]
    """

    def __init__(self, parameters: Mapping[str, Numeric | OneOf]) -> None:
        self.parameters = dict(parameters)
        self._conditions: dict[str, Question] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SearchSpace) and self.parameters == other.parameters

    @property
    def n_features(self) -> int:
        """Length of a configuration's vector of features."""
        return sum(parameter.width for parameter in self.parameters.values())

    @property
    def ordered(self) -> npt.NDArray[np.bool_]:
        """Which parameters have an order, shape (number of parameters,)."""
        return np.array([isinstance(one, Numeric) for one in self.parameters.values()], dtype=bool)

    @property
    def numbers(self) -> npt.NDArray[np.bool_]:
        """Which features are numbers, shape (n_features,)."""
        return np.repeat(self.ordered, [one.width for one in self.parameters.values()])

    def features(self, points: Sequence[Point]) -> FloatArray:
        """Configurations as vectors.

        Returns
        -------
        array of shape (len(points), n_features)
            Numbers as they are, .5 for those that do not apply; choices as indicators, all 0 if
            the parameter does not apply.
        """
        columns = np.full((len(points), self.n_features), 0.0)
        column = 0
        for name, parameter in self.parameters.items():
            values = np.array([point.get(name, math.nan) for point in points])
            there = ~np.isnan(values)
            if isinstance(parameter, Numeric):
                columns[:, column] = np.where(there, values, _MISSING)
            else:
                chosen = values[there].astype(int)
                columns[np.flatnonzero(there), column + np.minimum(chosen, parameter.n - 1)] = (
                    _CHOICE
                )
            column += parameter.width
        return columns

    def cube_features(self, cube: FloatArray) -> FloatArray:
        """Points of the unit cube as vectors, as `features` of `at` of them.

        Parameters
        ----------
        cube
            Shape (n, number of parameters).
        """
        columns = np.zeros((len(cube), self.n_features))
        values = self._values(cube)
        present = self._present(values)
        rows = np.arange(len(cube))
        column = 0
        for name, parameter in self.parameters.items():
            there = present.get(name)
            if isinstance(parameter, Numeric):
                known = values[name]
                columns[:, column] = known if there is None else np.where(there, known, _MISSING)
            else:
                chosen = column + values[name].astype(np.int64)
                inside = slice(None) if there is None else there
                columns[rows[inside], chosen[inside]] = _CHOICE
            column += parameter.width
        return columns

    def at(self, place: FloatArray) -> dict[str, float]:
        """The configuration at a point of the unit cube, with values for all parameters.

        Those that turn out not to apply are simply not asked for.
        """
        point: dict[str, float] = {}
        for value, (name, parameter) in zip(place, self.parameters.items(), strict=True):
            if isinstance(parameter, Numeric):
                point[name] = float(parameter.snapped(np.asarray(value)))
            else:
                point[name] = float(_index(np.asarray(value), parameter.n))
        return point

    def place(self, point: Point, rng: np.random.Generator) -> FloatArray:
        """A point of the unit cube that stands for a configuration; the inverse of `at`.

        What does not apply is drawn at random.
        """
        cube = rng.random(len(self.parameters))
        for index, (name, parameter) in enumerate(self.parameters.items()):
            if name in point:
                value = point[name]
                numeric = isinstance(parameter, Numeric)
                cube[index] = value if numeric else (value + 0.5) / parameter.width
        return cube

    def learn_conditions(self, points: Sequence[Point]) -> None:
        """Find out from configurations which values make which parameters apply.

        A parameter that some configurations lack is taken to depend on parameters that more
        configurations have, those with the parameter among them: on choices that had it either
        always or never, on numbers above or below a threshold, or on up to three such conditions
        in a row, as where two switches have to be on (see `mfhpo.search.conditions.explain`). What
        is not explained so is taken to apply always.
        """
        self._conditions.clear()
        table = {
            name: np.array([point.get(name, math.nan) for point in points])
            for name in self.parameters
        }
        having = {name: ~np.isnan(values) for name, values in table.items()}
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
            kinds: tuple[dict[str, FloatArray], ...] = ({}, {}, {})
            for parent in parents:
                kinds[self._kind(parent)][parent] = table[parent]
            if has.tobytes() not in known:
                known[has.tobytes()] = explain(has, *kinds)
            question = known[has.tobytes()]
            if question is not None:
                self._conditions[name] = question

    def _kind(self, name: str) -> int:
        """0 for choices, 1 for numbers with steps, 2 for others."""
        parameter = self.parameters[name]
        if isinstance(parameter, OneOf):
            return 0
        return 1 if parameter.places else 2

    def _values(self, cube: FloatArray) -> dict[str, FloatArray]:
        """By name, the places that points of the cube reach, or the indices of choices."""
        return {
            name: parameter.snapped(cube[:, index])
            if isinstance(parameter, Numeric)
            else _index(cube[:, index], parameter.n).astype(np.float64)
            for index, (name, parameter) in enumerate(self.parameters.items())
        }

    def _present(self, values: Mapping[str, FloatArray]) -> dict[str, npt.NDArray[np.bool_]]:
        """By name, which of the configurations have a parameter; without those that all have."""
        found: dict[str, npt.NDArray[np.bool_]] = {}

        def answer(question: Question) -> npt.NDArray[np.bool_]:
            here = np.full(len(values[question.parent]), isinstance(question, ByChoice))
            for inside, following in question.branches(values[question.parent]):
                said = following if isinstance(following, bool) else answer(following)
                here = np.where(inside, said, here)
            return here & present(question.parent) if question.parent in self._conditions else here

        def present(name: str) -> npt.NDArray[np.bool_]:
            if name not in found:
                found[name] = answer(self._conditions[name])
            return found[name]

        for name in self._conditions:
            present(name)
        return found


def _index(cube: FloatArray, n: int) -> npt.NDArray[np.int64]:
    return np.minimum((cube * n).astype(np.int64), n - 1)
