"""A space of lists and distributions of scipy.stats, and how a model sees it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mfhpo._validation import check_dictionaries, is_number, shown
from mfhpo.experiment.configurations import described
from mfhpo.knowledge.fidelity import native
from mfhpo.knowledge.space import Numeric, OneOf, Point

_TAIL = 1e-9  # of a distribution, on either side
_GRID = 1000  # places at which the values of a discrete distribution are looked up
_WHICH = "space"  # the choice among several spaces


@dataclass(frozen=True)
class _Values:
    """A list: numbers that increase have an order, all others are choices."""

    values: tuple[Any, ...]

    @property
    def kind(self) -> Numeric | OneOf | None:
        n = len(self.values)
        if n == 1:
            return None
        return Numeric(tuple(map(self._place, range(n)))) if self._is_ordered else OneOf(n)

    @property
    def _is_ordered(self) -> bool:
        numbers = all(map(is_number, self.values))
        return numbers and all(left < right for left, right in itertools.pairwise(self.values))

    def _place(self, index: int) -> float:
        return (index + 0.5) / len(self.values)

    def place_of(self, value: Any) -> float | None:
        index = index_of(value, self.values)
        if index is None:
            return None
        return self._place(index) if self._is_ordered else float(index)

    def draw(self, place: float | None, rng: np.random.Generator) -> tuple[Any, float]:
        n = len(self.values)
        if place is None:
            index = int(rng.integers(n))
        else:
            index = min(int(place * n if self._is_ordered else place), n - 1)
        return self.values[index], self._place(index) if self._is_ordered else float(index)


@dataclass(frozen=True)
class _Continuous:
    """A density of scipy.stats: a place is the share of the draws that are smaller."""

    distribution: Any
    kind = Numeric()

    def place_of(self, value: Any) -> float | None:
        low, high = self.distribution.support()
        is_inside = is_number(value) and low <= value <= high
        return float(self.distribution.cdf(value)) if is_inside else None

    def draw(self, place: float | None, rng: np.random.Generator) -> tuple[Any, float]:
        place = float(rng.random()) if place is None else place
        value = native(self.distribution.ppf(_inside(place)))
        return value, float(self.distribution.cdf(value))


@dataclass(frozen=True)
class _Discrete:
    """A mass of scipy.stats: a place is the middle of the share that gives the number."""

    distribution: Any

    @property
    def kind(self) -> Numeric | None:
        values = self._found
        return Numeric(tuple(self._places_of(values).tolist())) if len(values) > 1 else None

    @cached_property
    def _found(self) -> Any:
        """Values of the distribution, without rare ones."""
        return np.unique(self.distribution.ppf(_inside(np.linspace(0.0, 1.0, _GRID))))

    @property
    def _is_whole(self) -> bool:
        return bool((self._found == np.floor(self._found)).all())

    def _places_of(self, values: Any) -> Any:
        return self.distribution.cdf(values) - self.distribution.pmf(values) / 2.0

    def place_of(self, value: Any) -> float | None:
        is_inside = is_number(value) and self.distribution.pmf(value) > 0.0
        return float(self._places_of(value)) if is_inside else None

    def draw(self, place: float | None, rng: np.random.Generator) -> tuple[Any, float]:
        place = float(rng.random()) if place is None else place
        value = native(self.distribution.ppf(_inside(place)))
        # The values of a distribution are of one type, as for a parameter 1 may not be 1.0.
        value = int(value) if self._is_whole and value == int(value) else value
        return value, float(self._places_of(value))


def _inside(places: Any) -> Any:
    """Return places that are no end of an infinite range."""
    return np.clip(places, _TAIL, 1.0 - _TAIL)


_Part = _Values | _Continuous | _Discrete


class DistributionSpace:
    """A space to search: by name a list of values or a distribution of scipy.stats.

    Several spaces are alternatives, one of which a configuration is drawn from. Parameters with the
    same name in several spaces are different ones to the model.
    """

    def __init__(
        self,
        distributions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        name: str = "distributions",
    ) -> None:
        right = "a dictionary of lists and distributions or a list of such, and not be empty"
        given = [distributions] if isinstance(distributions, Mapping) else distributions
        spaces = check_dictionaries(name, given, right)
        if not spaces or not all(spaces):
            raise TypeError(f"{name} must be {right}, got {shown(distributions)}.")
        self._spaces: list[dict[str, _Part]] = [
            {each: _part(f"{name}[{each!r}]", space[each]) for each in space} for space in spaces
        ]
        self.names = {name for space in self._spaces for name in space}
        self.kinds: dict[str, Numeric | OneOf] = {}
        if len(spaces) > 1:
            self.kinds[_WHICH] = OneOf(len(spaces))
        for which, space in enumerate(self._spaces):
            for name, part in space.items():
                kind = part.kind
                if kind is not None:
                    self.kinds[self._known_as(which, name)] = kind

    def draw(self, point: Point | None, key: Sequence[int]) -> tuple[dict[str, Any], Point]:
        """Return the setting at a point, and its own point; the rest is drawn by a seed."""
        rng = np.random.default_rng(key)
        point = point or {}
        which = int(point.get(_WHICH, rng.integers(len(self._spaces))))
        params: dict[str, Any] = {}
        own = {_WHICH: float(which)} if len(self._spaces) > 1 else {}
        for name, part in self._spaces[which].items():
            known_as = self._known_as(which, name)
            params[name], place = part.draw(point.get(known_as), rng)
            if known_as in self.kinds:
                own[known_as] = place
        return params, own

    def place(self, values: Mapping[str, Any]) -> Point:
        """Return the point of some values, of several spaces in the one that has most of them."""
        point: dict[str, float] = {}
        n_placed = []
        for which, space in enumerate(self._spaces):
            here = {name: space[name].place_of(values[name]) for name in space.keys() & values}
            placed = {self._known_as(which, n): at for n, at in here.items() if at is not None}
            n_placed.append(len(placed))
            point |= placed
        if len(self._spaces) > 1 and n_placed.count(max(n_placed)) == 1:
            point[_WHICH] = float(np.argmax(n_placed))
        return point

    def _known_as(self, which: int, name: str) -> str:
        return name if len(self._spaces) == 1 else f"{_WHICH}[{which}].{name}"


def index_of(value: Any, choices: Sequence[Any]) -> int | None:
    """Return the index of a value among choices, 1 and 1.0 being the same; None without one."""
    for index, choice in enumerate(choices):
        are_numbers = is_number(choice) and is_number(value)
        if choice == value if are_numbers else described(choice) == described(value):
            return index
    return None


def _part(name: str, given: Any) -> _Part:
    if hasattr(given, "ppf") and hasattr(given, "cdf"):
        return _Discrete(given) if hasattr(given, "pmf") else _Continuous(given)
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
        raise TypeError(
            f"{name} must be a list of values or a distribution of scipy.stats, "
            f"such as scipy.stats.loguniform(0.01, 100), got {given!r}."
        )
    if not len(given):
        raise ValueError(f"{name} must not be empty, got {given!r}.")
    return _Values(tuple(native(value) for value in given))
