"""The costs of evaluations of a game, and the levels that tell most about the target for it."""

import numbers
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from mfhpo._validation import check_costs, check_sequence, shown
from mfhpo.games.model.mogp import MultiOutputGP
from mfhpo.knowledge.arrays import FloatArray, IntArray


class LevelCosts:
    """Costs of the levels at which players' utilities are measured; see `GamePolicy`."""

    def __init__(
        self,
        costs: Sequence[float] | Mapping[str, Sequence[float]],
        players: Sequence[str],
        joint: bool,
    ) -> None:
        self._joint = joint
        if not isinstance(costs, Mapping):
            by_player = [check_costs(costs, "numbers")] * len(players)
        elif joint:
            raise ValueError(
                f"costs must be one for each level where one run serves all players, got "
                f"{dict(costs)!r}."
            )
        elif set(costs) != set(players):
            raise ValueError(
                f"costs must have an entry for each of the players {list(players)}, got "
                f"{shown(sorted(map(str, costs)))}."
            )
        else:
            by_player = [check_costs(costs[one], "numbers", f"costs[{one!r}]") for one in players]
        self.by_player: tuple[FloatArray, ...] = tuple(map(np.array, by_player))
        """Of each player's levels."""
        self.tops = tuple(len(own) - 1 for own in by_player)
        """Index of each player's target level."""
        self.least = self.of((0,) * len(players))
        """Of the cheapest query."""
        self.of_evaluation = self.of(self.tops)
        """Of an evaluation at the target for all players."""

    def of(self, levels: Sequence[int]) -> float:
        """Return the cost of a query at these levels."""
        paid = [own[level] for own, level in zip(self.by_player, levels, strict=True)]
        return float(paid[0] if self._joint else sum(paid))

    def checked(self, name: str, levels: Sequence[int]) -> tuple[int, ...]:
        """Return an index of a level for each player; ValueError if they are none."""
        check_sequence(name, levels, "an index for each player")
        fits = len(levels) == len(self.tops) and all(
            isinstance(level, numbers.Integral) and 0 <= level <= top
            for level, top in zip(levels, self.tops, strict=True)
        )
        if not fits:
            raise ValueError(
                f"{name} must be an index for each player, from 0 to {self.tops}, got {levels!r}."
            )
        if self._joint and len(set(levels)) > 1:
            raise ValueError(
                f"{name} must be the same for all players of a joint run, got {levels!r}."
            )
        return tuple(map(int, levels))

    def table(self) -> FloatArray:
        """Return costs of levels, (n_players, M) or one row; missing ones cost the target's."""
        rows = self.by_player[:1] if self._joint else self.by_player
        n_levels = max(len(own) for own in rows)
        return np.array([np.pad(own, (0, n_levels - len(own)), mode="edge") for own in rows])


About = Literal["target", "level"]

_ROUNDING = 1e-9
_STEPS = 50
# Factor by which the price of costs rises until a budget pays for the levels, and how often, at
# most: where information is none, or costs hardly differ, no price may tell the levels apart.
_DEARER, _RISES = 1.05, 2_000


def information_of(model: MultiOutputGP, features: FloatArray, about: About) -> FloatArray:
    """Return an observation's information at each level and point, in nats, (M, n_points).

    It is mutual information with the utility at the level (Eq. 24), or at the target: ``-ln(1 -
    r**2) / 2`` with ``r**2 = c**2 / (s_M**2 (s_m**2 + noise))``, for the posterior variances at
    both levels, their covariance and the noise.
    """
    noise = model.hyperparameters.noise[:, None]
    variances, shared = model.with_target(features)
    if about == "level":
        return np.asarray(0.5 * np.log1p(variances / noise))
    # One root at a time: products of variances have no place in a number where units are extreme.
    of_target, of_level = np.sqrt(variances[-1]), np.sqrt(variances + noise)
    known, r = (of_target > 0.0) & (of_level > 0.0), np.zeros(shared.shape)
    np.divide(shared, of_target, out=r, where=known)
    np.divide(r, of_level, out=r, where=known)
    return np.asarray(-0.5 * np.log1p(-np.clip(r**2, 0.0, 1.0 - _ROUNDING)))


def best_levels(
    information: FloatArray, costs: FloatArray, budget: float
) -> tuple[IntArray, FloatArray]:
    """Return each profile's levels with the most information per cost, and the ratios (Eq. 28).

    Dinkelbach's iteration (On nonlinear fractional programming, Management Science 1967) is exact.
    Where the budget does not pay for these levels, all costs are made dearer until it does.
    `information` has the shape (n_profiles, n_players, M), minus infinity at missing levels;
    `costs` are positive, (n_players, M). ValueError if the cheapest levels cost more than the
    `budget`.
    """
    least, allowed = costs.min(axis=1), budget * (1.0 + _ROUNDING)
    if least.sum() > allowed:
        raise ValueError(
            f"budget must be at least {least.sum():g}, the sum of the lowest costs, got {budget!r}."
        )
    # Not the levels that cannot be paid even if all others are the cheapest.
    information = np.where(costs - least[:, None] + least.sum() > allowed, -np.inf, information)

    def at(prices: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        worths = information - prices[:, None, None] * costs
        levels = np.where(np.isinf(prices)[:, None], costs.argmin(axis=1), worths.argmax(axis=2))
        gained = np.take_along_axis(information, levels[:, :, None], axis=2).sum(axis=(1, 2))
        return levels, gained, costs[np.arange(len(costs)), levels].sum(axis=1)

    prices = np.zeros(len(information))
    for _ in range(_STEPS):
        levels, gained, paid = at(prices)
        if (gained / paid <= prices * (1.0 + _ROUNDING)).all():
            break
        prices = np.maximum(prices, gained / paid)
    for rise in range(_RISES):
        if (paid <= allowed).all():
            break
        dearer = np.inf if rise == _RISES - 1 else _DEARER * prices
        prices = np.where(paid > allowed, dearer, prices)
        levels, gained, paid = at(prices)
    return levels, gained / paid
