"""Gains of players that deviate from a profile, in the terms of their study."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mfhpo.experiment import Answer
from mfhpo.games import Dissatisfaction
from mfhpo_optuna.games.study import NashStudy

StudyEquilibrium: TypeAlias = Answer


@dataclass(frozen=True)
class StudyDeviation:
    """The best deviation of one player from a profile, all others staying.

    Parameters
    ----------
    gain
        What it may bring the player, in the unit of its objective.
    params
        All players' parameters after it, by the model's means.
    """

    gain: Dissatisfaction
    params: dict[str, Any]


def deviations_of(game: NashStudy, params: Mapping[str, Any]) -> dict[str, StudyDeviation]:
    """Return what each player may gain by deviating from a profile; fidelities are ignored.

    Raises ValueError if parameters are missing or out of range, or nothing was observed yet.
    """
    if game.policy is None:
        raise ValueError("no trial has told all players' parameters and objectives yet.")
    if not game.policy.has_seen:
        raise ValueError("no trial has given values yet.")
    space, names = game.trials.space, game.trials.kind.players.parameters
    profile = {}
    for name in names:
        if name not in params:
            raise ValueError(f"params must have the parameters {list(names)}, got {list(params)}.")
        place = space.place(name, params[name])
        if place is None:
            raise ValueError(
                f"params[{name!r}] must be within {space.distributions[name]}, got "
                f"{params[name]!r}."
            )
        profile[name] = place
    # Those with one value alone are no part of the policy's game.
    own = {name: profile[name] for name in game.policy.actions.parameters}
    return {
        player: StudyDeviation(found.gain, space.params(found.profile))
        for player, found in game.policy.deviations(own).items()
    }
