"""What trials evaluate: a profile at levels of the fidelity."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from optuna.trial import FrozenTrial

from mfhpo.games import Query
from mfhpo_optuna.games.declared import GameFidelity
from mfhpo_optuna.games.space import GameSpace
from mfhpo_optuna.study.attributes import ARGUMENTS, QUERY_KEY, WORKER, read_attribute


def planned(trial: FrozenTrial) -> Query | None:
    """Return what was noted on a trial, or None if nothing was planned for it.

    The profile is empty while the game is not known: parameters are drawn at random.
    """
    tag: Mapping[str, Any] = read_attribute(trial, QUERY_KEY) or {}
    return Query(tag.get("profile", {}), tuple(tag["levels"])) if "levels" in tag else None


def signature_of(trial: FrozenTrial) -> tuple[str | None, str | None]:
    """Return a trial's process and the digest of its arguments, as far as they are noted."""
    tag: Mapping[str, Any] = read_attribute(trial, QUERY_KEY) or {}
    return tag.get(WORKER), tag.get(ARGUMENTS)


def tag_of(plan: Query) -> dict[str, Any]:
    """Return a plan as plain JSON values, for other workers."""
    tag: dict[str, Any] = {"levels": list(plan.levels)}
    return tag | {"profile": dict(plan.profile)} if plan.profile else tag


@dataclass(frozen=True)
class Queries:
    """Finds out what trials evaluate, of a game with these parameters, fidelity and levels."""

    space: GameSpace
    parameters: tuple[str, ...]
    fidelity: GameFidelity
    levels: tuple[tuple[Any, ...], ...]
    n_players: int

    def of(self, trial: FrozenTrial, plan: Query | None) -> Query | None:
        """Return what a trial evaluates; None if that is no profile at one of the levels.

        What was asked for counts, then what it was enqueued with, then what was planned for it (if
        the trial is the sampler's own), and then what it would have drawn.
        """
        set_by = {**trial.system_attrs.get("fixed_params", {}), **trial.params}
        profile = {}
        for name in self.parameters:
            place = self._place(trial, name, set_by, plan)
            if place is None:
                return None
            profile[name] = place
        levels = []
        for player in range(self.n_players):
            level = self._level(player, set_by, plan)
            if level is None:
                return None
            levels.append(level)
        return Query(profile, tuple(levels))

    def _place(
        self, trial: FrozenTrial, name: str, set_by: Mapping[str, Any], plan: Query | None
    ) -> float | None:
        if name in set_by:
            return self.space.place(name, set_by[name])
        if plan is None:
            return None
        if name in plan.profile:
            return plan.profile[name]
        drawn = self.space.drawn(trial.number, name, self.space.distributions[name])
        return self.space.place(name, drawn)

    def _level(self, player: int, set_by: Mapping[str, Any], plan: Query | None) -> int | None:
        if not self.levels:
            return 0
        position = 0 if self.fidelity.joint else player
        name, known = self.fidelity.names[position], self.levels[position]
        if name in set_by:
            return known.index(set_by[name]) if set_by[name] in known else None
        if plan is None or not plan.levels[player] < len(known):
            return None
        return plan.levels[player]
