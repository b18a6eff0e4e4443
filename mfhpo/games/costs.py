"""What evaluations of a game cost, for each player or for all of them together."""

import numbers
from collections.abc import Mapping, Sequence

import numpy as np

from mfhpo._validation import check_costs, check_sequence, shown
from mfhpo.knowledge.arrays import FloatArray


class LevelCosts:
    """Costs of the levels at which players' utilities are measured; see `GamePolicy`."""

    def __init__(
        self,
        costs: Sequence[float] | Mapping[str, Sequence[float]],
        players: Sequence[str],
        joint: bool,
    ) -> None:
        self._joint = joint
        if not isinstance(costs, Mapping):
            by_player = [check_costs(costs, "numbers")] * len(players)
        elif joint:
            raise ValueError(
                f"costs must be one for each level where one run serves all players, got "
                f"{dict(costs)!r}."
            )
        elif set(costs) != set(players):
            raise ValueError(
                f"costs must have an entry for each of the players {list(players)}, got "
                f"{shown(sorted(map(str, costs)))}."
            )
        else:
            by_player = [check_costs(costs[one], "numbers", f"costs[{one!r}]") for one in players]
        self.by_player: tuple[FloatArray, ...] = tuple(map(np.array, by_player))
        """Of each player's levels."""
        self.tops = tuple(len(own) - 1 for own in by_player)
        """Index of each player's target level."""
        self.least = self.of((0,) * len(players))
        """Of the cheapest query."""
        self.of_evaluation = self.of(self.tops)
        """Of an evaluation at the target for all players."""

    def of(self, levels: Sequence[int]) -> float:
        """Return the cost of a query at these levels."""
        paid = [own[level] for own, level in zip(self.by_player, levels, strict=True)]
        return float(paid[0] if self._joint else sum(paid))

    def checked(self, name: str, levels: Sequence[int]) -> tuple[int, ...]:
        """Return an index of a level for each player; ValueError if they are none."""
        check_sequence(name, levels, "an index for each player")
        fits = len(levels) == len(self.tops) and all(
            isinstance(level, numbers.Integral) and 0 <= level <= top
            for level, top in zip(levels, self.tops, strict=True)
        )
        if not fits:
            raise ValueError(
                f"{name} must be an index for each player, from 0 to {self.tops}, got {levels!r}."
            )
        if self._joint and len(set(levels)) > 1:
            raise ValueError(
                f"{name} must be the same for all players of a joint run, got {levels!r}."
            )
        return tuple(map(int, levels))

    def table(self) -> FloatArray:
        """Return costs of levels, (n_players, M) or one row; missing ones cost the target's."""
        rows = self.by_player[:1] if self._joint else self.by_player
        n_levels = max(len(own) for own in rows)
        return np.array([np.pad(own, (0, n_levels - len(own)), mode="edge") for own in rows])
