"""Where players are believed to gain least by deviating, and how much that is."""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from mfhpo.games.actions import Actions
from mfhpo.games.equilibrium import Deviation, Dissatisfaction, Utility
from mfhpo.games.model.draws import DrawnGames
from mfhpo.games.model.mogp import MultiOutputGP
from mfhpo.games.settling import best_response, settled
from mfhpo.knowledge.arrays import FloatArray

POSSIBLE = 16
"""Models of each player from which games are drawn, where hyperparameters are fitted."""

_DRAWS = 128  # games
_QUANTILES = ndtri((np.arange(128) + 0.5) / 128)  # that stand for a normal distribution
_STEPS, _MOVES = (0.05, 0.05, 0.02, 0.02, 0.01), 16  # small moves from the best profile


class Statements:
    """What is said about profiles, by games that are drawn from what may be believed.

    Each player has its `likeliest` model, as many `possible` ones as all others, and perhaps the
    utility that it seems to have everywhere (`constants`). What such a player might gain is not
    divided by its scale, which is as small as rounding.
    """

    def __init__(
        self,
        actions: Actions,
        likeliest: Sequence[MultiOutputGP],
        possible: Sequence[Sequence[MultiOutputGP]],
        constants: Sequence[float | None],
        rng: np.random.Generator,
    ) -> None:
        self._actions = actions
        self._likeliest = likeliest
        self._rng = rng
        least = [0.0 if value is None else abs(value) or 1.0 for value in constants]
        self._possible = possible
        self._games = DrawnGames(self._actions, possible, np.array(least), _DRAWS, rng)
        self._units = np.median(self._games.units, axis=0)

    def most_stable(self, start: FloatArray) -> FloatArray:
        """Return the profile to recommend, shape (number of parameters,), searched from `start`."""
        actions, games = self._actions, self._games
        reached = start
        if not actions.is_finite:
            # By the likeliest models: the mean over all that may be true takes what was never seen
            # for as good as all the rest, if some of these models say little of it.
            reached = settled(start, actions, self._likeliest, self._units)
        if actions.shape is None:
            # Where not all profiles can be compared, moves would lead to what the draws overrate.
            return reached
        best = int(np.argmin(games.worst_of_all_profiles()))
        chosen, least = self._best(np.stack((reached, actions.profiles[best])))
        for step in () if actions.is_finite else _STEPS:
            moved = chosen + step * self._rng.standard_normal((_MOVES, len(chosen)))
            other, worst = self._best(np.clip(moved, 0.0, 1.0))
            if worst < least:
                chosen, least = other, worst
        return chosen

    def _best(self, profiles: FloatArray) -> tuple[FloatArray, float]:
        worst = self._games.worst(profiles)
        chosen = int(np.argmin(worst))
        return profiles[chosen], float(worst[chosen])

    def dissatisfaction(
        self, profile: FloatArray, probability: float
    ) -> dict[str, Dissatisfaction]:
        """Return each player's possible gain by deviating from a profile."""
        finer = None if self._actions.is_finite else self._actions.around(profile, step=1.0)
        drawn = self._games.dissatisfaction(profile[None, :], finer)[0]
        outside = (1.0 - probability) / 2.0
        found = {}
        for player, name in enumerate(self._actions.players):
            unit = float(self._units[player])
            if not self._possible[player][0].n:
                found[name] = Dissatisfaction(np.inf, (0.0, np.inf), unit)
                continue
            lower, upper = np.quantile(drawn[:, player], (outside, 1.0 - outside))
            mean = float(drawn[:, player].mean())
            interval = (min(float(lower), mean), max(float(upper), mean))
            found[name] = Dissatisfaction(mean, interval, unit)
        return found

    def utilities(self, profile: FloatArray, probability: float) -> dict[str, Utility]:
        """Return each player's utility at a profile."""
        features = self._actions.features(profile[None, :])
        outside = (1.0 - probability) / 2.0
        found = {}
        for name, models in zip(self._actions.players, self._possible, strict=True):
            if not models[0].n:
                found[name] = Utility(np.nan, (-np.inf, np.inf))
                continue
            predicted = [model.predict(features, model.top) for model in models]
            means = np.array([float(mean[0]) for mean, _ in predicted])
            deviations = np.sqrt([float(variance[0]) for _, variance in predicted])
            believed = means[:, None] + deviations[:, None] * _QUANTILES
            lower, upper = np.quantile(believed, (outside, 1.0 - outside))
            found[name] = Utility(float(means.mean()), (float(lower), float(upper)))
        return found

    def deviations(self, profile: FloatArray, probability: float) -> dict[str, Deviation]:
        """Return each player's possible gain by deviating, and how, by the likeliest models."""
        gains = self.dissatisfaction(profile, probability)
        finer = self._actions.around(profile, step=1.0)
        found = {}
        for player, name in enumerate(self._actions.players):
            unit = float(self._units[player])
            moved = best_response(profile, player, finer, self._likeliest[player], unit)
            found[name] = Deviation(gains[name], self._actions.space.at(moved))
        return found
