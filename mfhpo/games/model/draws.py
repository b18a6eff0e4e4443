"""Utilities drawn from what is believed, and what players would gain by deviating in each draw."""

from collections.abc import Sequence

import numpy as np

from mfhpo.games.actions import Actions
from mfhpo.games.model.mogp import MultiOutputGP
from mfhpo.knowledge.arrays import FloatArray

_FEATURES = 512
# Of draws six digits are enough, and their cosines take a tenth of the time.
_PRECISION = np.float32


class DrawnUtilities:
    """Functions drawn from a player's posterior at the target.

    A function is drawn from the prior, by random Fourier features (Rahimi and Recht, NIPS 2007). It
    is moved by what the model learns from the observations less its values there (Wilson et al.,
    Efficiently sampling functions from Gaussian process posteriors, ICML 2020).
    """

    def __init__(self, model: MultiOutputGP, n_draws: int, rng: np.random.Generator) -> None:
        lengths = model.hyperparameters.length_scales
        n_levels = len(lengths)
        self._model = model
        frequencies = rng.standard_normal((*lengths.shape, _FEATURES)) / lengths[:, :, None]
        phases = rng.uniform(0.0, 2.0 * np.pi, (n_levels, _FEATURES))
        weights = np.sqrt(2.0 / _FEATURES) * rng.standard_normal((n_levels, _FEATURES, n_draws))
        self._frequencies, self._phases = frequencies.astype(_PRECISION), phases.astype(_PRECISION)
        self._weights = weights.astype(_PRECISION)
        self._moves = model.moves(self._prior_at_observations(rng, n_draws))

    def __call__(self, features: FloatArray) -> FloatArray:
        """Return values at points of shape (n, d), shape (n, n_draws)."""
        known = self._model.hyperparameters
        prior = known.amplitudes[-1, -1] * self._from_kernel(self._model.top, features)
        return np.asarray(known.offsets[-1] + prior + self._model.moved(features, self._moves))

    def _from_kernel(self, kernel: int, features: FloatArray) -> FloatArray:
        turns = features.astype(_PRECISION) @ self._frequencies[kernel] + self._phases[kernel]
        return np.asarray((np.cos(turns) @ self._weights[kernel]).astype(np.float64))

    def _prior_at_observations(self, rng: np.random.Generator, n_draws: int) -> FloatArray:
        """Return observations of the prior's functions (Eq. 19), shape (n, n_draws)."""
        known = self._model.hyperparameters
        features, levels = self._model.observed
        noise = np.sqrt(self._model.noise)[:, None] * rng.standard_normal((len(levels), n_draws))
        drawn = known.offsets[levels, None] + noise
        for kernel, amplitudes in enumerate(known.amplitudes.T):
            drawn += amplitudes[levels, None] * self._from_kernel(kernel, features)
        return drawn


class DrawnGames:
    """Games drawn from the beliefs about all players' utilities.

    Each player has as many `models` that may be true as all others; `n_draws`, the number of games,
    is a multiple of that number. A player's utility is taken to have at least the scale in
    `least_units`, shape (n_players,); ``units`` are the scales in each game, shape (n_draws,
    n_players).
    """

    def __init__(
        self,
        actions: Actions,
        models: Sequence[Sequence[MultiOutputGP]],
        least_units: FloatArray,
        n_draws: int,
        rng: np.random.Generator,
    ) -> None:
        self._actions, self._n_draws = actions, n_draws
        self._utilities, scales = [], []
        for of_player in models:
            n = n_draws // len(of_player)
            self._utilities.append([DrawnUtilities(model, n, rng) for model in of_player])
            scales.append(np.repeat([model.unit for model in of_player], n))
        self.units: FloatArray = np.maximum(np.stack(scales, axis=1), least_units)
        self._is_sure = max(map(len, models)) == 1
        self._known = [player for player, (model, *_) in enumerate(models) if model.n]

    def dissatisfaction(self, cube: FloatArray, actions: Actions | None = None) -> FloatArray:
        """Return players' gains by deviating, in their units (Eq. 2), (n, n_draws, n_players)."""
        actions = self._actions if actions is None else actions
        features = actions.features(cube)
        gains = np.zeros((len(cube), self._n_draws, len(actions)))
        for player, utilities in enumerate(self._utilities):
            own, columns = actions.own_features[player], actions.columns[player]
            here = _values(utilities, features)
            deviating = np.repeat(features[:, None, :], len(own), axis=1)
            deviating[:, :, columns] = own
            there = _values(utilities, deviating.reshape(-1, features.shape[1]))
            best = there.reshape(len(cube), len(own), self._n_draws).max(axis=1)
            gains[:, :, player] = np.maximum(best - here, 0.0)
        return gains

    def worst(self, cube: FloatArray) -> FloatArray:
        """Return the largest dissatisfaction of any player, in their units, over games, shape (n,).

        Players without observations do not count. It is the mean over games if the models are
        known, else the median, so that models that are far off do not decide.
        """
        gains = (self.dissatisfaction(cube) / self.units)[:, :, self._known]
        return self._over_games(gains.max(axis=2, initial=0.0))

    def worst_of_all_profiles(self) -> FloatArray:
        """Return `worst` of all combinations of so few actions, in less time."""
        shape = self._actions.shape
        assert shape is not None
        features = self._actions.features(self._actions.profiles)
        worst = np.zeros((*shape, self._n_draws))
        for player in self._known:
            drawn = _values(self._utilities[player], features).reshape(*shape, self._n_draws)
            gains = (drawn.max(axis=player, keepdims=True) - drawn) / self.units[:, player]
            worst = np.maximum(worst, gains)
        return self._over_games(worst.reshape(-1, self._n_draws))

    def _over_games(self, worst: FloatArray) -> FloatArray:
        return worst.mean(axis=1) if self._is_sure else np.median(worst, axis=1)


def _values(utilities: Sequence[DrawnUtilities], features: FloatArray) -> FloatArray:
    """Return all functions drawn from a player's models at points, shape (n, n_draws)."""
    return np.concatenate([drawn(features) for drawn in utilities], axis=1)
