"""Where players are believed to gain least by deviating, and how much: by games that are drawn."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from mfhpo.games.actions import Actions
from mfhpo.games.dissatisfaction import Beliefs, Estimate
from mfhpo.games.equilibrium import Deviation, Dissatisfaction, Utility
from mfhpo.games.model.fitting import LearnedUtility
from mfhpo.games.model.mogp import MultiOutputGP
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.knowledge.space import Point

_POSSIBLE = 16  # models of each player from which games are drawn, where these are fitted
_DRAWS = 128  # games
_QUANTILES = ndtri((np.arange(128) + 0.5) / 128)  # that stand for a normal distribution
_STEPS, _MOVES = (0.05, 0.05, 0.02, 0.02, 0.01), 16  # small moves from the best profile

# How near to a player's own the actions are that are looked at beside all others where players
# answer each other, in distances of these.
_NEAR = (1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.12, 0.12, 0.06, 0.06, 0.03, 0.03)
_TIE = 1e-9  # of a player's unit


def settled(profile: FloatArray, beliefs: Beliefs, units: FloatArray) -> FloatArray:
    """Return the profile that players leave least, on the way of best responses by the means.

    Ever nearer actions are added. Gains are in `units`, shape (n_players,).
    """
    way = [profile]
    for step in _NEAR:
        # Actions near a player's own stay so while others move.
        finer, reached = beliefs.around(way[-1], step), way[-1]
        for player, unit in enumerate(units):
            reached = best_response(reached, player, finer, unit)
        way.append(reached)
    own_units = np.array([model.unit for model in beliefs.models])

    def unrest(at: FloatArray) -> float:
        finer = (beliefs.around(at, step) for step in (_NEAR[0], _NEAR[-1]))
        gains = np.stack([each.dissatisfaction(at[None, :], Estimate.MEAN)[0] for each in finer])
        return float((gains * own_units / units).max())

    return min(way, key=unrest)


def best_response(profile: FloatArray, player: int, beliefs: Beliefs, unit: float) -> FloatArray:
    """Return the profile after a player moved to its best action, if it gains anything."""
    model, features = beliefs.models[player], beliefs.actions.features(profile[None, :])
    moved, there = beliefs.best_response(profile[None, :], player, Estimate.MEAN)
    gains = there[0] - model.mean(features, model.top)[0] > _TIE * unit
    return moved[0] if gains else profile


class Statements:
    """What is said about profiles, by games that are drawn from what may be believed.

    The `beliefs` hold each player's likeliest model; the actions of the profiles that were
    `evaluated` are looked at, too.
    """

    def __init__(
        self,
        beliefs: Beliefs,
        learned: Sequence[LearnedUtility],
        evaluated: Sequence[Point],
        rng: np.random.Generator,
    ) -> None:
        self._rng = rng
        self._possible = [each.possible(_POSSIBLE, rng) for each in learned]
        self._actions = beliefs.actions
        if evaluated:
            cube = [self._actions.space.place(profile, rng) for profile in evaluated]
            self._actions = self._actions.including(np.unique(cube, axis=0))
        self._beliefs = replace(beliefs, actions=self._actions)
        constants = [each.seen.constant for each in learned]
        # The scale of a utility that seems to be the same everywhere is as small as rounding.
        least = [0.0 if value is None else abs(value) or 1.0 for value in constants]
        self._games = DrawnGames(self._actions, self._possible, np.array(least), _DRAWS, rng)
        self._units = np.median(self._games.units, axis=0)

    def most_stable(self, start: FloatArray) -> FloatArray:
        """Return the profile to recommend, shape (number of parameters,), searched from `start`."""
        actions, games = self._actions, self._games
        reached = start
        if not actions.is_finite:
            # By the likeliest models: the mean over all that may be true takes what was never seen
            # for as good as all the rest, if some of these models say little of it.
            reached = settled(start, self._beliefs, self._units)
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
        found = {}
        for player, name in enumerate(self._actions.players):
            mean, interval = np.inf, (0.0, np.inf)
            if self._possible[player][0].n:
                mean = float(drawn[:, player].mean())
                lower, upper = _interval(drawn[:, player], probability)
                interval = min(lower, mean), max(upper, mean)
            found[name] = Dissatisfaction(mean, interval, float(self._units[player]))
        return found

    def utilities(self, profile: FloatArray, probability: float) -> dict[str, Utility]:
        """Return each player's utility at a profile."""
        features = self._actions.features(profile[None, :])
        found = {}
        for name, models in zip(self._actions.players, self._possible, strict=True):
            found[name] = Utility(np.nan, (-np.inf, np.inf))
            if models[0].n:
                predicted = np.array([model.predict(features, model.top) for model in models])
                means, variances = predicted[:, 0], predicted[:, 1]  # (n_models, 1)
                believed = means + np.sqrt(variances) * _QUANTILES
                found[name] = Utility(float(means.mean()), _interval(believed, probability))
        return found

    def deviations(self, profile: FloatArray, probability: float) -> dict[str, Deviation]:
        """Return each player's possible gain by deviating, and how, by the likeliest models."""
        finer = self._beliefs.around(profile, step=1.0)
        found = {}
        for player, (name, gain) in enumerate(self.dissatisfaction(profile, probability).items()):
            moved = best_response(profile, player, finer, gain.unit)
            found[name] = Deviation(gain, self._actions.space.at(moved))
        return found


def _interval(values: FloatArray, probability: float) -> tuple[float, float]:
    """Return what holds this share of the values."""
    outside = (1.0 - probability) / 2.0
    lower, upper = np.quantile(values, (outside, 1.0 - outside))
    return float(lower), float(upper)


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

    `n_draws` is a multiple of the number of each player's possible `models`. ``units`` are the
    utilities' scales in each game, (n_draws, n_players), at least `least_units`.
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
        """Return the largest dissatisfaction of players that were observed, in their units, (n,).

        It is the mean over games, or the median if there are several models.
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
