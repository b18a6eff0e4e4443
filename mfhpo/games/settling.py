"""Where players come to rest who answer each other, by the means of their models."""

from collections.abc import Sequence

import numpy as np

from mfhpo.games.actions import Actions
from mfhpo.games.model.mogp import MultiOutputGP
from mfhpo.knowledge.arrays import FloatArray

# How near to a player's own the actions are that are looked at beside all others, in distances of
# these.
_STEPS = (1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.12, 0.12, 0.06, 0.06, 0.03, 0.03)
_TIE = 1e-9  # of a player's unit


def settled(
    profile: FloatArray, actions: Actions, models: Sequence[MultiOutputGP], units: FloatArray
) -> FloatArray:
    """Return the profile that best responses reach, with ever nearer actions added.

    Among the profiles on the way, it is the one that players would leave least. Gains are in
    `units`, shape (n_players,).
    """
    way = [profile]
    for step in _STEPS:
        # Actions near a player's own stay so while others move.
        finer, reached = actions.around(way[-1], step), way[-1]
        for player, model in enumerate(models):
            reached = best_response(reached, player, finer, model, float(units[player]))
        way.append(reached)
    return min(way, key=lambda at: _unrest(at, actions, models, units))


def best_response(
    profile: FloatArray, player: int, actions: Actions, model: MultiOutputGP, unit: float
) -> FloatArray:
    """Return the profile after a player moved to its best action, if it gains anything."""
    utilities, stays = _utilities(profile, player, actions, model)
    best = int(np.argmax(utilities))
    if utilities[best] - stays <= _TIE * unit:
        return profile
    moved = profile.copy()
    moved[actions.cube_columns[player]] = actions.own[player][best]
    return moved


def _unrest(
    profile: FloatArray, actions: Actions, models: Sequence[MultiOutputGP], units: FloatArray
) -> float:
    worst = 0.0
    for step in (_STEPS[0], _STEPS[-1]):
        finer = actions.around(profile, step)
        for player, model in enumerate(models):
            utilities, stays = _utilities(profile, player, finer, model)
            worst = max(worst, (float(utilities.max()) - stays) / float(units[player]))
    return worst


def _utilities(
    profile: FloatArray, player: int, actions: Actions, model: MultiOutputGP
) -> tuple[FloatArray, float]:
    """Return a player's mean utility with each of its actions, shape (k,), and if it stays."""
    features = actions.features(profile[None, :])
    own, columns = actions.own_features[player], actions.columns[player]
    deviating = model.deviations(features, own, columns).means()[0]
    return deviating, float(model.mean(features, model.top)[0])
