"""How much each player would gain by deviating, and the profile where that is least."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from mfhpo.games.actions import Actions
from mfhpo.games.model.mogp import MultiOutputGP
from mfhpo.knowledge.arrays import FloatArray, IntArray

# Profiles that a search goes on from, and small random moves of each in a round. Where all profiles
# of a grid were compared before, less will do.
_STARTS, _MOVES = 8, 12
_STARTS_OF_GRID, _MOVES_OF_GRID = 3, 6
_SCREENED = 128  # among which the starts are chosen, where not all profiles can be looked at
# Deviations of a player whose variances are computed: all where that many are asked for, else those
# with the largest means.
_ALL_LOOKED_AT, _LOOKED_AT = 1024, 8
_ROUNDS = 24
_FIRST_STEP, _FIRST_STEP_OF_GRID, _LAST_STEP = 0.1, 0.03, 0.001
_SHRINK = 0.5


class Estimate(Enum):
    """Which estimate of the players' gains by deviating; so many half-widths are added to means."""

    MEAN = 0.0
    """By the posterior means."""
    LOWER = -1.0
    """The least that they may be (Eq. 32): the best lower bound minus the upper one here."""
    UPPER = 1.0
    """The most that they may be (Eq. 32)."""


@dataclass(frozen=True)
class Beliefs:
    """Beliefs about all players' utilities.

    The models, one for each player, keep predictions for the actions' profiles; `beta` is the
    half-width of the utilities' bounds, in posterior standard deviations (Eq. 31).
    """

    actions: Actions
    models: Sequence[MultiOutputGP]
    beta: float

    def dissatisfaction(self, cube: FloatArray, estimate: Estimate) -> FloatArray:
        """Return players' possible gains by deviating from profiles (Eq. 2 and 32), (n, n_players).

        Gains are in the scales of the players' models, and never below 0 by the means. By the
        bounds they are never below the bounds' distance, because staying is a deviation, too.
        """
        return self._gains_below(cube, estimate, None, np.arange(len(self.actions)))

    def best_response(self, cube: FloatArray, player: int, estimate: Estimate) -> FloatArray:
        """Return profiles in which a player has moved to its best action, by its bound or mean."""
        return self._best_response(cube, player, estimate, len(cube))

    def least(
        self, estimate: Estimate, rng: np.random.Generator, starts: FloatArray | None = None
    ) -> FloatArray:
        """Return the profile of the smallest largest dissatisfaction.

        If the players' actions are few, all profiles are compared. Otherwise best responses and
        small moves improve the best of many profiles and of `starts`.
        """
        actions = self.actions
        if actions.shape is not None:
            worst = self._of_all_profiles(estimate)
            if actions.is_finite:
                return np.asarray(actions.profiles[np.argmin(worst)])
            candidates = actions.profiles[np.argsort(worst)[:_STARTS_OF_GRID]]
        else:
            chosen = rng.permutation(len(actions.profiles))[:_SCREENED]
            candidates = actions.profiles[chosen]
        if starts is not None and len(starts):
            candidates = np.concatenate((candidates, starts))
        gains = self.dissatisfaction(candidates, estimate)
        n_starts = _STARTS if actions.shape is None else _STARTS_OF_GRID
        order = np.argsort(gains.max(axis=1))[:n_starts]
        return self._improved(candidates[order], gains[order], estimate, rng)

    def _improved(
        self, profiles: FloatArray, gains: FloatArray, estimate: Estimate, rng: np.random.Generator
    ) -> FloatArray:
        starts, step, n_moves = profiles, _FIRST_STEP, _MOVES
        if self.actions.shape is not None:
            step, n_moves = _FIRST_STEP_OF_GRID, _MOVES_OF_GRID
        n_parameters = profiles.shape[1]
        n_profiles = len(profiles)
        responses = self._responses(profiles, estimate, n_profiles)
        for _ in range(_ROUNDS):
            if step < _LAST_STEP:
                break
            shift = step * rng.standard_normal((n_moves, len(profiles), n_parameters))
            # Half of the moves change one parameter alone.
            alone = rng.integers(n_parameters, size=(n_moves // 2, len(profiles), 1))
            shift[: n_moves // 2] *= np.arange(n_parameters) == alone
            tried = np.concatenate((responses, np.clip(profiles + shift, 0.0, 1.0)))
            worst = gains.max(axis=1)
            found = self._gains_below(
                tried.reshape(-1, n_parameters),
                estimate,
                np.tile(worst, len(tried)),
                np.argsort(-gains.mean(axis=0)),
            ).reshape(len(tried), len(profiles), -1)
            chosen = found.max(axis=2).argmin(axis=0)
            rows = np.arange(len(profiles))
            better = found[chosen, rows].max(axis=1) < worst
            if not better.any():
                step *= _SHRINK
                continue
            profiles, gains = profiles.copy(), gains.copy()
            profiles[better] = tried[chosen, rows][better]
            gains[better] = found[chosen, rows][better]
            responses[:, better] = self._responses(profiles[better], estimate, n_profiles)
        # Among so few, more deviations are looked at: some profiles seemed better than they are.
        ends = np.concatenate((profiles, starts))
        return np.asarray(ends[np.argmin(self.dissatisfaction(ends, estimate).max(axis=1))])

    def _responses(self, profiles: FloatArray, estimate: Estimate, n_asked: int) -> FloatArray:
        """Return profiles after each player's best response, and all, (n_players + 1, n, d)."""
        moves = [
            self._best_response(profiles, player, estimate, n_asked)
            for player in range(len(self.actions))
        ]
        everyone = profiles.copy()
        for columns, moved in zip(self.actions.cube_columns, moves, strict=True):
            everyone[:, columns] = moved[:, columns]
        return np.stack((*moves, everyone))

    def _gains_below(
        self, cube: FloatArray, estimate: Estimate, limits: FloatArray | None, order: IntArray
    ) -> FloatArray:
        """Return players' gains where none reaches a profile's limit (n,), shape (n, n_players).

        Once one does, the other gains of that profile are infinite. Players who gain most come
        first, because they settle most profiles.
        """
        features = self.actions.features(cube)
        gains = np.full((len(cube), len(self.actions)), np.inf)
        left: IntArray = np.arange(len(cube))
        for player in order:
            model = self.models[player]
            stays, here = self._bounds(model, features[left], estimate)
            best = self._best_deviation(player, features[left], estimate, len(cube))[1]
            gains[left, player] = (np.maximum(best, stays) - here) / model.unit
            if limits is not None:
                left = left[gains[left, player] < limits[left]]
            if not len(left):
                break
        return gains

    def _of_all_profiles(self, estimate: Estimate) -> FloatArray:
        """Return the largest dissatisfaction at each profile of the product, (n_profiles,)."""
        shape = self.actions.shape
        assert shape is not None
        worst = np.full(shape, -np.inf)
        for player, model in enumerate(self.models):
            half = self.beta * np.sqrt(model.point_variances[-1])
            sign = estimate.value
            there = (model.point_means + sign * half).reshape(shape)
            here = (model.point_means - sign * half).reshape(shape)
            gains = (there.max(axis=player, keepdims=True) - here) / model.unit
            worst = np.maximum(worst, gains)
        return worst.ravel()

    def _best_response(
        self, cube: FloatArray, player: int, estimate: Estimate, n_asked: int
    ) -> FloatArray:
        chosen, _ = self._best_deviation(player, self.actions.features(cube), estimate, n_asked)
        moved = cube.copy()
        moved[:, self.actions.cube_columns[player]] = self.actions.own[player][chosen]
        return moved

    def _best_deviation(
        self, player: int, features: FloatArray, estimate: Estimate, n_asked: int
    ) -> tuple[IntArray, FloatArray]:
        """Return the index of a player's best action at each profile, and its value."""
        model, actions = self.models[player], self.actions
        deviations = model.deviations(
            features, actions.own_features[player], actions.columns[player]
        )
        means = deviations.means()
        rows = np.arange(len(features))
        if estimate is Estimate.MEAN:
            chosen = means.argmax(axis=1)
            return chosen, means[rows, chosen]
        n_looked_at = means.shape[1]
        if n_asked * n_looked_at > _ALL_LOOKED_AT:
            n_looked_at = min(_LOOKED_AT, n_looked_at)
        looked_at = np.argpartition(-means, n_looked_at - 1, axis=1)[:, :n_looked_at]
        half = estimate.value * self.beta * np.sqrt(deviations.variances(looked_at))
        bounds = np.take_along_axis(means, looked_at, axis=1) + half
        best = bounds.argmax(axis=1)
        return looked_at[rows, best], bounds[rows, best]

    def _bounds(
        self, model: MultiOutputGP, features: FloatArray, estimate: Estimate
    ) -> tuple[FloatArray, FloatArray]:
        if estimate is Estimate.MEAN:
            means = model.mean(features, model.top)
            return means, means
        means, variances = model.predict(features, model.top)
        half = estimate.value * self.beta * np.sqrt(variances)
        return means + half, means - half
