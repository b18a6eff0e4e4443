"""How much each player would gain by deviating, and the profile where that is least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from mfhpo.games.actions import Actions
from mfhpo.games.model.mogp import MultiOutputGP
from mfhpo.knowledge.arrays import FloatArray

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

    There is a model of each player; `beta` is the half-width of the utilities' bounds, in posterior
    standard deviations (Eq. 31).
    """

    actions: Actions
    models: Sequence[MultiOutputGP]
    beta: float

    def dissatisfaction(self, cube: FloatArray, estimate: Estimate) -> FloatArray:
        """Return players' possible gains by deviating from profiles (Eq. 2 and 32), (n, n_players).

        Gains are in the scales of the players' models, and never below 0 by the means. By the
        bounds they are never below the bounds' distance, because staying is a deviation, too.
        """
        features = self.actions.features(cube)
        gains = np.empty((len(cube), len(self.actions)))
        for player, model in enumerate(self.models):
            stays, here = self._bounds(model, features, estimate)
            best = self.best_response(cube, player, estimate)[1]
            gains[:, player] = (np.maximum(best, stays) - here) / model.unit
        return gains

    def best_response(
        self, cube: FloatArray, player: int, estimate: Estimate
    ) -> tuple[FloatArray, FloatArray]:
        """Return profiles after a player moved to its best action, and its bound or mean there.

        The more are asked for, the fewer deviations are looked at.
        """
        model, actions = self.models[player], self.actions
        own, columns = actions.own_features[player], actions.columns[player]
        deviations = model.deviations(actions.features(cube), own, columns)
        means = bounds = deviations.means()
        looked_at = np.broadcast_to(np.arange(means.shape[1]), means.shape)
        if estimate is not Estimate.MEAN:
            n_looked_at = means.shape[1]
            if len(cube) * n_looked_at > _ALL_LOOKED_AT:
                n_looked_at = min(_LOOKED_AT, n_looked_at)
            looked_at = np.argpartition(-means, n_looked_at - 1, axis=1)[:, :n_looked_at]
            half = estimate.value * self.beta * np.sqrt(deviations.variances(looked_at))
            bounds = np.take_along_axis(means, looked_at, axis=1) + half
        rows, best = np.arange(len(cube)), bounds.argmax(axis=1)
        moved = cube.copy()
        moved[:, actions.cube_columns[player]] = actions.own[player][looked_at[rows, best]]
        return moved, bounds[rows, best]

    def around(self, profile: FloatArray, step: float) -> Beliefs:
        """Add actions near each player's own in a profile (see `Actions.around`)."""
        return replace(self, actions=self.actions.around(profile, step))

    def least(
        self, estimate: Estimate, rng: np.random.Generator, starts: FloatArray | None = None
    ) -> FloatArray:
        """Return the profile of the smallest largest dissatisfaction.

        If the players' actions are few, all profiles are compared. Otherwise best responses and
        small moves improve the best of many profiles and of `starts`.
        """
        actions, n_starts = self.actions, _STARTS
        if actions.shape is None:
            chosen = rng.permutation(len(actions.profiles))[:_SCREENED]
        else:
            worst, n_starts = self._of_all_profiles(estimate, actions.shape), _STARTS_OF_GRID
            if actions.is_finite:
                return np.asarray(actions.profiles[np.argmin(worst)])
            chosen = np.argsort(worst)[:n_starts]
        candidates = actions.profiles[chosen]
        if starts is not None:
            candidates = np.concatenate((candidates, starts))
        worst = self.dissatisfaction(candidates, estimate).max(axis=1)
        order = np.argsort(worst)[:n_starts]
        return self._improved(candidates[order], worst[order], estimate, rng)

    def _improved(
        self, profiles: FloatArray, worst: FloatArray, estimate: Estimate, rng: np.random.Generator
    ) -> FloatArray:
        starts, step, n_moves = profiles.copy(), _FIRST_STEP, _MOVES
        if self.actions.shape is not None:
            step, n_moves = _FIRST_STEP_OF_GRID, _MOVES_OF_GRID
        n_profiles, n_parameters = profiles.shape
        for _ in range(_ROUNDS):
            if step < _LAST_STEP:
                break
            responses = self._responses(profiles, estimate)
            shift = step * rng.standard_normal((n_moves, n_profiles, n_parameters))
            # Half of the moves change one parameter alone.
            alone = rng.integers(n_parameters, size=(n_moves // 2, n_profiles, 1))
            shift[: n_moves // 2] *= np.arange(n_parameters) == alone
            tried = np.concatenate((responses, np.clip(profiles + shift, 0.0, 1.0)))
            gains = self.dissatisfaction(tried.reshape(-1, n_parameters), estimate)
            found = gains.max(axis=1).reshape(len(tried), n_profiles)
            chosen, rows = found.argmin(axis=0), np.arange(n_profiles)
            better = found[chosen, rows] < worst
            profiles[better] = tried[chosen, rows][better]
            worst[better] = found[chosen, rows][better]
            if not better.any():
                step *= _SHRINK
        # Among so few, more deviations are looked at: some profiles seemed better than they are.
        ends = np.concatenate((profiles, starts))
        return np.asarray(ends[np.argmin(self.dissatisfaction(ends, estimate).max(axis=1))])

    def _responses(self, profiles: FloatArray, estimate: Estimate) -> FloatArray:
        """Return profiles after each player's best response, and all, (n_players + 1, n, d)."""
        players = range(len(self.actions))
        moves = [self.best_response(profiles, player, estimate)[0] for player in players]
        everyone = profiles.copy()
        for columns, moved in zip(self.actions.cube_columns, moves, strict=True):
            everyone[:, columns] = moved[:, columns]
        return np.stack((*moves, everyone))

    def _of_all_profiles(self, estimate: Estimate, shape: tuple[int, ...]) -> FloatArray:
        """Return the largest dissatisfaction at each profile of the product, (n_profiles,)."""
        worst = np.full(shape, -np.inf)
        features = self.actions.features(self.actions.profiles)
        for player, model in enumerate(self.models):
            bounds = self._bounds(model, features, estimate)
            there, here = (bound.reshape(shape) for bound in bounds)
            gains = (there.max(axis=player, keepdims=True) - here) / model.unit
            worst = np.maximum(worst, gains)
        return worst.ravel()

    def _bounds(
        self, model: MultiOutputGP, features: FloatArray, estimate: Estimate
    ) -> tuple[FloatArray, FloatArray]:
        if estimate is Estimate.MEAN:
            means = model.mean(features, model.top)
            return means, means
        means, variances = model.predict(features, model.top)
        half = estimate.value * self.beta * np.sqrt(variances)
        return means + half, means - half
