"""Who owns which parameter, as it was declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Players"]


class Players:
    """The players of a game and the names of the parameters that each of them owns.

    Parameters
    ----------
    owned
        By player, in the order of the study's directions, the names of its parameters.

    Raises
    ------
    TypeError
        If it is no mapping from names to lists of names.
    ValueError
        If there is no player, a player owns nothing, or two own the same parameter.

    Examples
    --------
    >>> players = Players({"trainer": ["workers", "batch"], "server": ["threads"]})
    >>> players.names, players.owner("threads"), players.owner("epochs")
    (('trainer', 'server'), 'server', None)
    """

    def __init__(self, owned: Mapping[str, Sequence[str]]) -> None:
        right = "players must map each player's name to a list of its parameters' names, such as "
        right += "{'row': ['x'], 'column': ['y']}"
        if not isinstance(owned, Mapping):
            raise TypeError(f"{right}, got {owned!r}.")
        if not owned:
            raise ValueError(f"{right}, got none.")
        self.owned: dict[str, tuple[str, ...]] = {}
        self._owners: dict[str, str] = {}
        for player, names in owned.items():
            if not isinstance(player, str) or not _is_list_of_names(names):
                raise TypeError(f"{right}, got players[{player!r}]={names!r}.")
            if not names:
                raise ValueError(
                    f"players[{player!r}] has no parameters, so it has nothing to decide; leave "
                    f"the player and its objective out."
                )
            for name in names:
                if name in self._owners:
                    raise ValueError(
                        f"the parameter {name!r} belongs to {self._owners[name]!r} and to "
                        f"{player!r}; each must have one owner."
                    )
                self._owners[name] = player
            self.owned[player] = tuple(names)

    def __len__(self) -> int:
        return len(self.owned)

    @property
    def names(self) -> tuple[str, ...]:
        """The players."""
        return tuple(self.owned)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters of all players."""
        return tuple(self._owners)

    def owner(self, parameter: str) -> str | None:
        """The player that owns a parameter, or None."""
        return self._owners.get(parameter)


def _is_list_of_names(names: Any) -> bool:
    if isinstance(names, str) or not isinstance(names, Sequence):
        return False
    return all(isinstance(name, str) and name for name in names)
