"""From a policy's answer to one in the terms of its study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mfhpo.games import Equilibrium, Utility
from mfhpo_optuna.games.equilibrium import StudyDeviation, StudyEquilibrium
from mfhpo_optuna.games.study import NashStudy

__all__ = ["answer_of", "deviations_of"]


def answer_of(game: NashStudy) -> StudyEquilibrium:
    """The answer of a game at the moment, also before anything is known.

    Parameters
    ----------
    game
        The study's game.
    """
    answer = game.recommend()
    if game.policy is None or answer is None:
        return StudyEquilibrium(
            params={},
            dissatisfaction={},
            utilities={},
            probability=game.declared.probability,
            finished=False,
            reason="no trial has told all players' parameters and objectives yet",
            cost=0.0,
            budget=game.declared.budget,
            trials=0,
            evaluations=0,
        )
    signs = dict(zip(game.players.names, game.signs, strict=True))
    return StudyEquilibrium(
        params=game.space.params(answer.profile) if answer.profile else {},
        dissatisfaction=answer.dissatisfaction,
        utilities={
            player: _in_own_sign(utility, signs[player])
            for player, utility in answer.utilities.items()
        },
        probability=answer.probability,
        finished=answer.finished,
        reason=_reason(answer),
        cost=answer.cost,
        budget=answer.budget,
        trials=answer.n_queries,
        evaluations=answer.n_evaluations,
    )


def deviations_of(game: NashStudy, params: Mapping[str, Any]) -> dict[str, StudyDeviation]:
    """What each player may gain by deviating from a profile.

    Parameters
    ----------
    game
        The study's game.
    params
        All players' parameters; fidelities are ignored.

    Raises
    ------
    ValueError
        If parameters are missing or out of range, or nothing was observed yet.
    """
    if game.policy is None:
        raise ValueError("no trial has told all players' parameters and objectives yet.")
    profile = {}
    for name in game.players.parameters:
        if name not in params:
            raise ValueError(
                f"params must have the parameters {list(game.players.parameters)}, got "
                f"{list(params)}."
            )
        place = game.space.place(name, params[name])
        if place is None:
            raise ValueError(
                f"params[{name!r}] must be within {game.space.distributions[name]}, got "
                f"{params[name]!r}."
            )
        profile[name] = place
    # Those with one value alone are no part of the policy's game.
    own = {name: profile.get(name, 0.0) for name in game.policy.actions.parameters}
    return {
        player: StudyDeviation(found.gain, game.space.params(found.profile))
        for player, found in game.policy.deviations(own).items()
    }


def _reason(answer: Equilibrium) -> str:
    if not answer.profile:
        return f"none of the {answer.n_queries} trials gave a value"
    if answer.finished:
        return "the budget is used up"
    if not answer.n_evaluations:
        return "nothing was evaluated at the target fidelity yet"
    return f"{answer.budget - answer.cost:.6g} of the budget is left"


def _in_own_sign(utility: Utility, sign: float) -> Utility:
    lower, upper = sorted(sign * end for end in utility.interval)
    return Utility(sign * utility.mean, (lower, upper))
