"""The parameters of a game as trials tell about them: values, places, and what may be wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.trial import FrozenTrial

from mfhpo.search import Numeric, OneOf, Point
from mfhpo_optuna.games.declared import GameFidelity, Players
from mfhpo_optuna.study.distributions import (
    contains,
    described,
    did_you_mean,
    kind_of,
    place_of,
    value_at,
)

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


def index_of(value: Any, values: Sequence[Any]) -> int | None:
    """Return the place of the first of some values that is equal; a storage may have brought it."""
    known, sought = [*map(described, values)], described(value)
    return known.index(sought) if sought in known else None


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
                f"asked for {sorted(asked)}. Suggest it in every trial, such as by "
                f"trial.suggest_int({name!r}, ...), or do not declare it."
                f"{did_you_mean(name, foreign)}"
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
    return (
        f"the objective suggests {', '.join(map(repr, names))} in trial {trial.number}, which no "
        f"player owns; players={ {player: list(own) for player, own in players.owned.items()} }. "
        f"Give it to one of them, or set it without suggesting it.{did_you_mean(names[0], known)}"
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
