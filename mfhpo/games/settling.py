"""Where players come to rest who answer each other, by all models that may be true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mfhpo.games.actions import Actions
from mfhpo.games.mogp import MultiOutputGP

__all__ = ["best_response", "settled"]

FloatArray: TypeAlias = npt.NDArray[np.float64]

# How near to a player's own the actions are that are looked at beside all others, in distances of
# these.
_STEPS = (1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.12, 0.12, 0.06, 0.06, 0.03, 0.03)
_TIE = 1e-9  # of a player's unit


def settled(
    profile: FloatArray,
    actions: Actions,
    possible: Sequence[Sequence[MultiOutputGP]],
    units: FloatArray,
) -> FloatArray:
    """Where best responses lead, with ever nearer actions beside those that are looked at.

    Utilities are the means over all models that may be true of a player. One model alone, be it the
    likeliest, may be far off where observations are noisy.

    Parameters
    ----------
    profile
        Where they begin, a point of the unit cube, shape (number of parameters,).
    actions
        The players' actions.
    possible
        Of each player the models that may be true.
    units
        In which players' gains are held against each other, shape (n_players,).

    Returns
    -------
    array of shape (number of parameters,)
        Of the profiles on the way, the first one among them, that which players would leave least.
    """
    way = [profile]
    for step in _STEPS:
        # Actions near a player's own stay so while others move.
        finer, reached = actions.around(way[-1], step), way[-1]
        for player, models in enumerate(possible):
            reached = best_response(reached, player, finer, models, float(units[player]))
        way.append(reached)
    return min(way, key=lambda at: _unrest(at, actions, possible, units))


def best_response(
    profile: FloatArray,
    player: int,
    actions: Actions,
    models: Sequence[MultiOutputGP],
    unit: float,
) -> FloatArray:
    """The profile in which a player has moved to its best action, by the mean over its models.

    A player that has nothing to gain stays: one to which all actions are alike, or of whom nothing
    was observed.

    Parameters
    ----------
    profile
        A point of the unit cube, shape (number of parameters,).
    player
        Its index.
    actions
        What it can do.
    models
        That may be true of it.
    unit
        In which its gains are counted.
    """
    utilities = _of_deviations(profile, player, actions, models)
    best = int(np.argmax(utilities))
    if utilities[best] - _of_staying(profile, actions, models) <= _TIE * unit:
        return profile
    moved = profile.copy()
    moved[actions.cube_columns[player]] = actions.own[player][best]
    return moved


def _unrest(
    profile: FloatArray,
    actions: Actions,
    possible: Sequence[Sequence[MultiOutputGP]],
    units: FloatArray,
) -> float:
    """The largest gain, with deviations far, near and nearer."""
    worst = 0.0
    for step in (_STEPS[0], _STEPS[-1]):
        finer = actions.around(profile, step)
        for player, models in enumerate(possible):
            stays = _of_staying(profile, actions, models)
            best = float(_of_deviations(profile, player, finer, models).max())
            worst = max(worst, (best - stays) / float(units[player]))
    return worst


def _of_staying(profile: FloatArray, actions: Actions, models: Sequence[MultiOutputGP]) -> float:
    """A player's utility, as models have it in the mean."""
    features = actions.features(profile[None, :])
    return float(np.mean([model.mean(features, model.top)[0] for model in models]))


def _of_deviations(
    profile: FloatArray, player: int, actions: Actions, models: Sequence[MultiOutputGP]
) -> FloatArray:
    """A player's utility, as models have it in the mean, with each of its actions, shape (k,)."""
    features = actions.features(profile[None, :])
    own, columns = actions.own_features[player], actions.columns[player]
    means: FloatArray = np.mean(
        [model.deviations(features, own, columns).means()[0] for model in models], axis=0
    )
    return means
