"""The parameters of a game as its trials told about them, between Optuna's values and places."""

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from mfhpo.search import Numeric, OneOf, Point
from mfhpo_optuna.games.declared import Players
from mfhpo_optuna.study.distributions import contains, described, kind_of, place_of, value_at

_ALONE = OneOf(1)  # stands for all parameters of a player that has nothing to choose


class GameSpace:
    """What is known about the distributions with which an objective asks for parameters.

    Those are the players' and the fidelities'.
    """

    def __init__(self, players: Players, fidelities: tuple[str, ...]) -> None:
        self.distributions: dict[str, BaseDistribution] = {}
        self._players = players
        self._names = frozenset((*players.parameters, *fidelities))

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def learn(self, distributions: Mapping[str, BaseDistribution]) -> None:
        """Take in the distributions of a trial that are new."""
        for name, distribution in distributions.items():
            if name in self:
                self.distributions.setdefault(name, distribution)

    def change(self, name: str, distribution: BaseDistribution) -> str:
        """Return what is wrong if an objective asks so, in a sentence, or nothing."""
        known = self.distributions.get(name, distribution)
        if _is_same(known, distribution):
            return ""
        return (
            f"the objective suggests {name!r} as {distribution}, but did as {known} before; a game "
            f"needs the same actions in every trial. Suggest it with the same range, or begin "
            f"another study."
        )

    def actions(self) -> dict[str, dict[str, Numeric | OneOf]]:
        """Return what each player can choose, by parameter, without those of one value."""
        actions: dict[str, dict[str, Numeric | OneOf]] = {}
        for player, names in self._players.owned.items():
            kinds = {name: kind_of(self.distributions[name]) for name in names}
            own = {name: kind for name, kind in kinds.items() if kind is not None}
            actions[player] = own or {names[0]: _ALONE}
        return actions

    def place(self, name: str, value: Any) -> float | None:
        """Return where a value lies in its range, as in a `Point`; None if it is outside."""
        distribution = self.distributions[name]
        if not contains(distribution, value):
            return None
        if distribution.single():
            return 0.0
        if isinstance(distribution, CategoricalDistribution):
            return index_of(value, distribution.choices)
        # Rounding may lead outside of the range of a number.
        return min(max(place_of(value, distribution), 0.0), 1.0)

    def value(self, name: str, place: float, asked: BaseDistribution | None = None) -> Any:
        """Return the value at a place, as an objective has asked for it just now."""
        distribution = asked or self.distributions[name]
        if place >= 1.0 and isinstance(distribution, FloatDistribution) and not distribution.step:
            return distribution.high  # corners are often where a game ends
        return value_at(place, distribution)

    def params(self, point: Point) -> dict[str, Any]:
        """Return all players' parameters at a profile, those of one value included."""
        return {name: self.value(name, point.get(name, 0.0)) for name in self._players.parameters}

    def shown(self, name: str, place: float) -> float:
        """Return the place of the value that is evaluated for a place."""
        found = self.place(name, self.value(name, place))
        return place if found is None else found


def index_of(value: Any, values: Sequence[Any]) -> int | None:
    """Return the place of the first of some values that is equal; a storage may have brought it."""
    known, sought = [*map(described, values)], described(value)
    return known.index(sought) if sought in known else None


def _is_same(one: BaseDistribution, other: BaseDistribution) -> bool:
    """Tell whether two distributions are equal; a storage makes lists of tuples."""
    if isinstance(one, CategoricalDistribution) and isinstance(other, CategoricalDistribution):
        return bool(described(one.choices) == described(other.choices))
    return bool(one == other)
