"""A game as arguments declare it: its players, and the levels at which they are measured."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from optuna.distributions import BaseDistribution

from mfhpo._validation import shown
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import as_fidelity
from mfhpo_optuna.study.distributions import levels_in

FidelityLike: TypeAlias = str | Fidelity


class Players:
    """The players of a game, in the order of the study's directions, and what each of them owns."""

    def __init__(self, owned: Mapping[str, Sequence[str]]) -> None:
        right = (
            "players must map each player's name to a list of its parameters' names, such as "
            "{'row': ['x'], 'column': ['y']}"
        )
        if not isinstance(owned, Mapping):
            raise TypeError(f"{right}, got {shown(owned)}.")
        if not owned:
            raise ValueError(f"{right}, got none.")
        self.owned: dict[str, tuple[str, ...]] = {}
        self.owners: dict[str, str] = {}
        for player, names in owned.items():
            is_list = isinstance(names, Sequence) and not isinstance(names, str)
            are_names = is_list and all(isinstance(name, str) and name for name in names)
            if not (isinstance(player, str) and are_names):
                raise TypeError(f"{right}, got players[{player!r}]={names!r}.")
            if not names:
                raise ValueError(
                    f"players[{player!r}] has no parameters, so it has nothing to decide; leave "
                    f"the player and its objective out."
                )
            for name in names:
                if name in self.owners:
                    raise ValueError(
                        f"the parameter {name!r} belongs to {self.owners[name]!r} and to "
                        f"{player!r}; each must have one owner."
                    )
                self.owners[name] = player
            self.owned[player] = tuple(names)
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
        self.fidelities = tuple(map(_fidelity, listed))
        self.names = tuple(fidelity.name for fidelity in self.fidelities)
        for position, name in enumerate(self.names):
            owner = players.owners.get(name)
            if owner is not None:
                raise ValueError(
                    f"fidelity={name!r} is the sampler's to decide, but {owner!r} owns a parameter "
                    f"of that name; leave it out of players[{owner!r}]."
                )
            if name in self.names[:position]:
                raise ValueError(
                    f"fidelity has {name!r} for several players; one run serves them all then: "
                    f"give fidelity={name!r}."
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
                f"the levels of {without} differ from those of other players and do not say what "
                f"they cost; give Fidelity(name, levels=[...], costs=[...]) for each player, with "
                f"costs in the unit of the budget."
            )
        return dict(zip(self._players, by_fidelity, strict=True))


def _fidelity(declared: FidelityLike) -> Fidelity:
    fidelity = as_fidelity(declared)
    if fidelity.costs == "measured":
        raise ValueError(
            "costs='measured' cannot be had for games: what a query will cost must be known before "
            "it is made. Give costs=[...], such as seconds that were measured before."
        )
    return fidelity
