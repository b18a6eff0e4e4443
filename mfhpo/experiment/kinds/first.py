"""Which new arms of a search are tried first: those of earlier results, and those believed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mfhpo._validation import shown
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun, Origin
from mfhpo.knowledge.earlier import believed, near
from mfhpo.knowledge.space import Numeric, OneOf, Point


class Space(Protocol):
    """A space that configurations are drawn from; `kinds` are what parameters are to a model."""

    kinds: dict[str, Numeric | OneOf]

    def draw(self, point: Point | None, key: Sequence[int]) -> tuple[dict[str, Any], Point]:
        """Return the configuration at a point, the rest drawn by a seed, and its own point."""
        ...

    def place(self, values: Mapping[str, Any]) -> Point:
        """Return the point of some values, without those that the space does not have."""
        ...


class TriedFirst:
    """Says which values the first arms have: earlier ones, in turn with others that guard them."""

    def __init__(
        self,
        earlier: Sequence[Mapping[str, Any]],
        beliefs: Mapping[str, tuple[Any, float]],
        space: Space | None,
    ) -> None:
        self._earlier, self._beliefs = [*earlier], beliefs
        self._of_earlier: dict[int, Mapping[str, Any]] = {}  # by arm, what it was to have
        if space is None:
            return
        given, self._earlier = self._earlier, [*filter(space.place, self._earlier)]
        having = f"the space, with the parameters {shown(sorted(space.kinds))}"
        if given and not self._earlier:
            raise ValueError(
                f"earlier has no configuration with a value of {having}: the first one is "
                f"{shown(given[0])}. Give its parameters the names of the space."
            )
        for name, (centre, _) in self._beliefs.items():
            if not space.place({name: centre}):
                raise ValueError(
                    f"beliefs[{name!r}] must be a value of {having}, got {shown(centre)}."
                )

    def values_of(self, arm: int, is_first: bool) -> tuple[Origin, Mapping[str, Any]]:
        """Return why an arm is begun, and the values that one of the first has for that reason."""
        n_earlier = len(self._of_earlier)
        n_others = arm - n_earlier
        if is_first and n_earlier < len(self._earlier) and n_earlier <= n_others:
            return "earlier", self._earlier[n_earlier]
        values = believed(self._beliefs, n_others) if is_first else {}
        return ("belief" if values else "chosen"), values

    def point_in(
        self, space: Space, origin: Origin, values: Mapping[str, Any], key: Sequence[int]
    ) -> Point:
        """Return the point of values; numbers that are believed in are drawn around theirs."""
        point = dict(space.place(values))
        if origin == "belief":
            for number, name in enumerate(sorted(point)):
                if isinstance(space.kinds.get(name), Numeric):
                    point[name] = near(point[name], [*key, number])
        return point

    def adopt(self, arm: int, begun: Begun) -> None:
        """Learn from the claim of an arm."""
        if begun.origin == "earlier":
            self._of_earlier.setdefault(arm, begun.configuration)

    def n_of_earlier(self, known: Configurations) -> int:
        """Return how many arms have a value of the earlier configuration that they stand for."""
        return sum(
            any(known[arm].get(name) == value for name, value in values.items())
            for arm, values in self._of_earlier.items()
        )
