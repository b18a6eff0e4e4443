"""The fidelity of a game: one that serves all players, or one for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from optuna.distributions import BaseDistribution

from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_optuna.games.players import Players
from mfhpo_optuna.study.levels import levels_in

__all__ = ["GameFidelity"]

FidelityLike = str | Fidelity


class GameFidelity:
    """How much cheaper, and how much less faithfully, players' utilities can be measured.

    Parameters
    ----------
    declared
        A parameter's name or a `Fidelity`, which all players share; a mapping from each player to
        one of its own; None: there is none.
    costs
        Of an evaluation at each level, or of each player's, instead of those of a `Fidelity`.
    joint
        None, or what follows from `declared` anyway: whether one run serves all players.
    players
        The players.

    Attributes
    ----------
    fidelities
        One if all players share it, one for each of them, or none.

    Raises
    ------
    TypeError, ValueError
        For arguments of the wrong type, or that do not fit each other.

    Examples
    --------
    >>> players = Players({"row": ["x"], "column": ["y"]})
    >>> GameFidelity("epochs", None, None, players).joint
    True
    """

    def __init__(
        self,
        declared: FidelityLike | Mapping[str, FidelityLike] | None,
        costs: Sequence[float] | Mapping[str, Sequence[float]] | None,
        joint: bool | None,
        players: Players,
    ) -> None:
        if joint is not None and not isinstance(joint, bool):
            raise TypeError(f"joint must be True, False or None, got {joint!r}.")
        self.joint = not isinstance(declared, Mapping)
        if joint is not None and joint != self.joint:
            remedy = (
                "one fidelity serves all players, for a trial has one value of it; to measure each "
                "player by itself give fidelity={player: name}"
                if self.joint
                else "fidelities of their own are paid for by themselves; for one run that serves "
                "all players give one fidelity"
            )
            raise ValueError(f"joint={joint!r} does not go with fidelity={declared!r}: {remedy}.")
        if declared is None and costs is not None:
            raise ValueError(
                f"costs={costs!r} are those of a fidelity's levels, but there is none; the budget "
                f"is in trials then. Leave costs out."
            )
        listed: list[FidelityLike] = []
        if isinstance(declared, Mapping):
            if set(declared) != set(players.names):
                raise ValueError(
                    f"fidelity must have an entry for each of the players {list(players.names)}, "
                    f"got {sorted(map(str, declared))}."
                )
            listed = [declared[player] for player in players.names]
        elif declared is not None:
            listed = [declared]
        if isinstance(costs, Mapping):
            if self.joint or set(costs) != set(players.names):
                raise ValueError(
                    f"costs must be one for each level, or have an entry for each player if "
                    f"fidelity has, got costs={dict(costs)!r} with fidelity={declared!r}."
                )
            by_entry = [costs[player] for player in players.names]
            self.fidelities = tuple(map(_fidelity, listed, by_entry))
        else:
            self.fidelities = tuple(_fidelity(entry, costs) for entry in listed)
        self._players = players
        self._check_names(players)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that set the level, none of which a player owns."""
        return tuple(fidelity.name for fidelity in self.fidelities)

    def of_player(self, player: int) -> Fidelity | None:
        """What sets a player's level, or None."""
        if not self.fidelities:
            return None
        return self.fidelities[0 if self.joint else player]

    def levels(
        self, distributions: Mapping[str, BaseDistribution]
    ) -> tuple[tuple[Any, ...], ...] | None:
        """Each fidelity's levels; None if too little is known.

        Parameters
        ----------
        distributions
            With which the objective asks for parameters, as far as is known.

        Raises
        ------
        ValueError
            If a declared level is not in its parameter's distribution.
        """
        levels: list[tuple[Any, ...]] = []
        for fidelity in self.fidelities:
            if fidelity.name in distributions:
                levels.append(levels_in(fidelity, distributions[fidelity.name]))
            elif fidelity.levels is not None:
                levels.append(tuple(fidelity.levels))
            else:
                return None
        return tuple(levels)

    def costs(
        self, levels: Sequence[tuple[Any, ...]]
    ) -> tuple[float, ...] | dict[str, tuple[float, ...]]:
        """Cost of one evaluation at each level, by player if each has a fidelity of its own.

        Parameters
        ----------
        levels
            Each fidelity's.

        Raises
        ------
        ValueError
            If there are costs neither declared nor to be had from the levels, or if levels that
            differ from player to player do not say what they cost in one unit.
        """
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
        return dict(zip(self._players.names, by_fidelity, strict=True))

    def _check_names(self, players: Players) -> None:
        for position, name in enumerate(self.names):
            owner = players.owner(name)
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


def _fidelity(
    declared: FidelityLike, costs: Sequence[float] | Literal["measured"] | None
) -> Fidelity:
    fidelity = Fidelity(declared) if isinstance(declared, str) else declared
    if not isinstance(fidelity, Fidelity):
        raise TypeError(
            f"fidelity must be a name, a Fidelity, a mapping from players to them, or None, got "
            f"{declared!r}."
        )
    if costs is not None:
        if fidelity.costs is not None:
            raise ValueError(
                f"costs={costs!r}, but the fidelity {fidelity.name!r} has the costs "
                f"{fidelity.costs!r}; give one of them."
            )
        fidelity = replace(fidelity, costs=costs)
    if fidelity.costs == "measured":
        raise ValueError(
            "costs='measured' cannot be had for games: what a query will cost must be known before "
            "it is made. Give costs=[...], such as seconds that were measured before."
        )
    return fidelity
