"""Other searches for equilibria, to compare with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mfhpo._validation import check_count
from mfhpo.games.equilibrium import Query
from mfhpo.games.policy import Awaited, GamePolicy
from mfhpo.knowledge.space import Numeric, OneOf

__all__ = ["ProbabilityOfEquilibrium"]

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

_JITTER = 1e-9


class ProbabilityOfEquilibrium(GamePolicy):
    """The profile that is an equilibrium with the largest probability, at the target fidelity.

    Whether a player would deviate depends on its utilities at all its actions with the others'
    actions as they are; they are drawn from its posterior, and the probability of a profile is the
    product over the players. It needs a game with few profiles, and raises ValueError for others.

    Parameters
    ----------
    players, costs, budget, **options
        See `GamePolicy`.
    draws
        From the posterior, of each player.

    References
    ----------
    Picheny, Binois and Habbal, A Bayesian optimization approach to find Nash equilibria, Journal of
    Global Optimization 2019.
    """

    def __init__(
        self,
        players: Mapping[str, Mapping[str, Numeric | OneOf]],
        costs: Sequence[float] | Mapping[str, Sequence[float]],
        budget: float,
        *,
        draws: int = 200,
        **options: Any,
    ) -> None:
        super().__init__(players, costs, budget, **options)
        self._draws = check_count("draws", draws, 1)
        if self.actions.shape is None:
            raise ValueError(
                f"players must have few actions, for all profiles are looked at, got "
                f"{math.prod(len(own) for own in self.actions.own)} profiles."
            )

    def _choose(self, remaining: float, awaited: Sequence[Awaited]) -> Query | None:
        rng = np.random.default_rng((self._seed, len(self._told), len(awaited)))
        shape = self.actions.shape
        assert shape is not None
        probability = np.ones(math.prod(shape))
        for player in range(len(self.actions)):
            probability *= self._stays(player, shape, rng)
        return self.target_query(self.actions.profiles[int(np.argmax(probability))])

    def _stays(self, player: int, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Probability that a player has no better action, at all profiles, shape (n_profiles,)."""
        model = self.models[player]
        indices: IntArray = np.arange(math.prod(shape)).reshape(shape)
        rows = np.moveaxis(indices, player, -1).reshape(-1, shape[player])
        stays = np.zeros(math.prod(shape))
        normal = rng.standard_normal((shape[player], self._draws))
        for row in rows:
            features = self.points[row]
            covariance = model.covariances(features, model.top)
            values, vectors = np.linalg.eigh(covariance)
            root = vectors * np.sqrt(np.maximum(values, _JITTER * abs(values[-1])))
            drawn = model.mean(features, model.top)[:, None] + root @ normal
            best = np.bincount(drawn.argmax(axis=0), minlength=len(row))
            stays[row] = best / self._draws
        return stays
