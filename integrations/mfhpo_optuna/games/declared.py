"""A game: its players and levels as declared, its actions as trials tell, and what may be wrong."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import FrozenTrial

from mfhpo._validation import check_instance, check_name, check_names, shown
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import as_fidelity
from mfhpo.search import Numeric, OneOf, Point
from mfhpo_optuna.study.distributions import (
    contains,
    described,
    did_you_mean,
    index_of,
    kind_of,
    levels_in,
    place_of,
    value_at,
)

FidelityLike: TypeAlias = str | Fidelity

_ALONE = OneOf(1)  # stands for all parameters of a player that has nothing to choose


class Players:
    """The players of a game, in the order of the study's directions, and what each of them owns."""

    def __init__(self, owned: Mapping[str, Sequence[str]]) -> None:
        right = "each player's name with a list of its parameters, as {'row': ['x']}"
        check_instance("players", owned, Mapping, right)
        self.owned: dict[str, tuple[str, ...]] = {}
        self.owners: dict[str, str] = {}
        for player, names in owned.items():
            check_name("players", player, right)
            self.owned[player] = check_names(f"players[{player!r}]", names, "a list of names")
            for name in self.owned[player]:
                if name in self.owners:
                    raise ValueError(
                        f"the parameter {name!r} belongs to {self.owners[name]!r} and to "
                        f"{player!r}; each must have one owner."
                    )
                self.owners[name] = player
        if not (self.owned and all(self.owned.values())):
            raise ValueError(
                f"players must be {right}, got {shown(owned)}; leave out who decides nothing, and "
                f"the objective."
            )
        self.names = tuple(self.owned)
        self.parameters = tuple(self.owners)


class GameFidelity:
    """How much cheaper, and how much less faithfully, players' utilities can be measured.

    It is declared as for `NashSampler`. ``fidelities`` holds one if all players share it
    (``joint``), one for each of them, or none; ``names`` are their parameters.
    """

    def __init__(
        self, declared: FidelityLike | Mapping[str, FidelityLike] | None, players: Players
    ) -> None:
        self.joint = not isinstance(declared, Mapping)
        if not isinstance(declared, Mapping):
            listed = [] if declared is None else [declared]
        elif set(declared) != set(players.names):
            raise ValueError(
                f"fidelity must have an entry for each of the players {list(players.names)}, got "
                f"{sorted(map(str, declared))}."
            )
        else:
            listed = [declared[player] for player in players.names]
        self._players = players.names
        self.fidelities = tuple(map(as_fidelity, listed))
        if any(fidelity.costs == "measured" for fidelity in self.fidelities):
            raise ValueError(
                "costs='measured' cannot be had for games: give costs=[...], such as seconds that "
                "were measured before."
            )
        self.names = tuple(fidelity.name for fidelity in self.fidelities)
        for name in self.names:
            if name in players.owners or self.names.count(name) > 1:
                raise ValueError(
                    f"fidelity={name!r} is the sampler's to decide: leave it out of players, and "
                    f"give fidelity={name!r} where one run serves all of them."
                )

    def levels(
        self, distributions: Mapping[str, BaseDistribution]
    ) -> tuple[tuple[Any, ...], ...] | None:
        """Return each fidelity's levels by the known distributions; None if too few are known."""
        levels = [
            levels_in(each, distributions[each.name]) if each.name in distributions else each.levels
            for each in self.fidelities
        ]
        known = tuple(tuple(own) for own in levels if own is not None)
        return known if len(known) == len(levels) else None

    def of_players(self, levels: Sequence[tuple[Any, ...]]) -> list[tuple[str, tuple[Any, ...]]]:
        """Return each player's fidelity and its levels; none at all without a fidelity."""
        own = [*zip(self.names, levels, strict=True)]
        return own * len(self._players) if self.joint else own

    def sizes(self, levels: Sequence[tuple[Any, ...]]) -> tuple[int, ...]:
        """Return how many levels each player has."""
        found = tuple(len(known) for _, known in self.of_players(levels))
        return found or (1,) * len(self._players)

    def costs(
        self, levels: Sequence[tuple[Any, ...]]
    ) -> tuple[float, ...] | dict[str, tuple[float, ...]]:
        """Return the costs of levels, by player if each has a fidelity; ValueError without."""
        if not self.fidelities:
            return (1.0,)
        by_fidelity = []
        for fidelity, own in zip(self.fidelities, levels, strict=True):
            costs = fidelity.costs_of(own)
            if costs is None:
                raise ValueError(f"the costs of {fidelity.name!r} must be numbers.")
            by_fidelity.append(costs)
        if self.joint:
            return by_fidelity[0]
        without = [fidelity.name for fidelity in self.fidelities if fidelity.costs is None]
        if without and len(set(by_fidelity)) > 1:
            raise ValueError(
                f"the levels of {without} differ from those of other players: give "
                f"Fidelity(name, levels=[...], costs=[...]), with costs in the unit of the budget."
            )
        return dict(zip(self._players, by_fidelity, strict=True))


class GameSpace:
    """The known distributions of the parameters of players and fidelities."""

    def __init__(self, players: Players, fidelities: tuple[str, ...]) -> None:
        self.distributions: dict[str, BaseDistribution] = {}
        self._players = players
        self._names = frozenset((*players.parameters, *fidelities))

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def change(self, name: str, distribution: BaseDistribution) -> str:
        """Return what is wrong if an objective asks so, in a sentence, or nothing."""
        known = self.distributions.get(name, distribution)
        if known == distribution:
            return ""
        choices = getattr(known, "choices", None)  # of tuples, a storage makes lists
        if choices and described(choices) == described(getattr(distribution, "choices", None)):
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


def fault_of(trial: FrozenTrial, players: Players, fidelity: GameFidelity, space: GameSpace) -> str:
    """Return why a trial that succeeded is no evaluation of the game, or nothing if it is one."""
    asked = trial.distributions
    # A parameter with one value alone decides nothing, whoever suggests it.
    foreign = [name for name, how in asked.items() if name not in space and not how.single()]
    wanted = {name: f"players[{who!r}] owns {name!r}" for name, who in players.owners.items()}
    wanted |= {name: f"fidelity={name!r}" for name in fidelity.names}
    for name, declared in wanted.items():
        if name not in asked:
            return (
                f"{declared}, but the objective did not ask for it in trial {trial.number}; it "
                f"asked for {sorted(asked)}.{did_you_mean(name, foreign)}"
            )
    if foreign:
        return unowned(trial, foreign, players, fidelity)
    changes = (space.change(name, distribution) for name, distribution in asked.items())
    change = next(filter(None, changes), "")
    return f"trial {trial.number}: {change}" if change else ""


def unowned(
    trial: FrozenTrial, names: Sequence[str], players: Players, fidelity: GameFidelity
) -> str:
    """Return a sentence that says which suggested parameters nobody owns."""
    known = [*players.parameters, *fidelity.names]
    owned = {player: list(own) for player, own in players.owned.items()}
    return (
        f"the objective suggests {', '.join(map(repr, names))} in trial {trial.number}, which no "
        f"player owns; players={owned}.{did_you_mean(names[0], known)}"
    )


def other_game(study_name: str, earlier: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return why a study that began with an earlier game cannot go on with this one, or nothing."""
    # Objectives are told apart by the order of the players alone.
    have_other_order = bool(earlier) and list(earlier["players"]) != list(now["players"])
    for name in ("players", "fidelity", "levels", "costs"):
        if name not in earlier or name not in now:
            continue
        if earlier[name] != now[name] or (name == "players" and have_other_order):
            return (
                f"study {study_name!r} was begun with {name}={earlier[name]}, and cannot go on "
                f"with {name}={now[name]}; give the same, or begin another study."
            )
    return ""
