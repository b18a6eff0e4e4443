"""What trials evaluate: profiles of a game, at levels of its fidelity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial

from mfhpo.games import Query
from mfhpo_optuna.games.fidelity import GameFidelity
from mfhpo_optuna.games.space import GameSpace
from mfhpo_optuna.games.under_way import Plan

__all__ = ["Queries"]


class Queries:
    """Finds out what trials evaluate.

    Parameters
    ----------
    space
        The parameters.
    parameters
        Names of those that a profile has.
    fidelity, levels
        The fidelity, and the levels of each of its parameters.
    n_players
        Number of players.
    """

    def __init__(
        self,
        space: GameSpace,
        parameters: Sequence[str],
        fidelity: GameFidelity,
        levels: tuple[tuple[Any, ...], ...],
        n_players: int,
    ) -> None:
        self._space = space
        self._parameters = tuple(parameters)
        self._fidelity = fidelity
        self._levels = levels
        self._n_players = n_players

    def of(self, trial: FrozenTrial, plan: Plan | None) -> Query | None:
        """What a trial evaluates, or None if that is no profile of the game at one of its levels.

        What was asked for counts, then what it was enqueued with, then what was planned for it, and
        then what it would have drawn.

        Parameters
        ----------
        trial
            The trial, running or finished.
        plan
            What the sampler planned for it; None for a trial that is not its own.
        """
        set_by = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
        point = {name: self._place(trial, name, set_by, plan) for name in self._parameters}
        levels = [self._level(player, set_by, plan) for player in range(self._n_players)]
        known = {name: place for name, place in point.items() if place is not None}
        at = tuple(level for level in levels if level is not None)
        if len(known) < len(point) or len(at) < len(levels):
            return None
        return Query(known, at)

    def _place(
        self, trial: FrozenTrial, name: str, set_by: Mapping[str, Any], plan: Plan | None
    ) -> float | None:
        if name in set_by:
            return self._space.place(name, set_by[name])
        if plan is None:
            return None
        if plan.profile is not None and name in plan.profile:
            return plan.profile[name]
        drawn = self._space.drawn(trial.number, name, self._space.distributions[name])
        return self._space.place(name, drawn)

    def _level(self, player: int, set_by: Mapping[str, Any], plan: Plan | None) -> int | None:
        fidelity = self._fidelity.of_player(player)
        if fidelity is None:
            return 0
        known = self._levels[0 if self._fidelity.joint else player]
        if fidelity.name in set_by:
            value = set_by[fidelity.name]
            return known.index(value) if value in known else None
        if plan is None or not plan.levels[player] < len(known):
            return None
        return plan.levels[player]
