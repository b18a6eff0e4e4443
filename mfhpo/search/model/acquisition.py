"""Where in a search space a better configuration is most to be expected."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, ndtr, ndtri

from mfhpo.knowledge.arrays import BoolArray, FloatArray
from mfhpo.search.model.process import LevelProcess

_RANDOM, _AROUND = 300, 20  # places tried at first: anywhere, and around each good one
_EDGE = 1.0 - 1e-9
_NEAREST = 1e-4  # least distance from an end of what is drawn near it
_BY_END = 2.0 / 3.0  # share of coordinates drawn anew that are at or near an end
# Around good places: step, share of the coordinates moved, share drawn anew.
_STEP, _SHARE, _ANEW = 0.1, 0.5, 0.05
# Then around the best so far: rounds, places kept, moves of each; and as above, with a step that is
# halved after each round.
_ROUNDS, _KEPT, _MOVED = 6, 8, 12
_WIDE_STEP, _MOVED_SHARE, _MOVED_ANEW = 0.2, 0.4, 0.2
# Share of the coordinates that are drawn anew in every other random place.
_RANDOM_ANEW = 0.4
# Equally likely outcomes of a step, in standard deviations, the best first.
_OUTCOMES = -ndtri((np.arange(50) + 0.5) / 50)


def expected_improvement(
    mean: FloatArray, spread: FloatArray, best: float, noise: float = 0.0
) -> FloatArray:
    """Return the expected improvement of normal variables over `best`.

    With `noise`, the standard deviation of an observation, the improvement counts for the share of
    the spread that one observation removes (Huang, Allen, Notz and Zeng, Global optimization of
    stochastic black-box systems via sequential kriging meta-models, Journal of Global Optimization
    34, 2006). Without it, noise draws a search back to the same places.
    """
    z = (mean - best) / spread
    # The scaled error function keeps the small difference of two terms that far below are alike.
    below = np.minimum(z, 0.0)
    ratio = 1.0 / np.sqrt(2.0 * np.pi) + 0.5 * below * erfcx(-below / np.sqrt(2.0))
    tail = np.exp(-0.5 * z**2) * np.maximum(ratio, 0.0)
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    improvement: FloatArray = spread * np.where(z < 0.0, tail, z * ndtr(z) + density)
    if noise > 0.0:
        improvement *= 1.0 - noise / np.hypot(spread, noise)
    return improvement


@dataclass(frozen=True)
class View:
    """The model after some observations, and the arms that it knows: not all, if there are many."""

    process: LevelProcess
    features: FloatArray
    arms: list[int]
    means: FloatArray
    spreads: FloatArray
    best: float

    def improvement(self, means: FloatArray, spreads: FloatArray) -> FloatArray:
        """Return the possible gain at the target, less what noise hides."""
        return expected_improvement(means, spreads, self.best, self.process.target_noise)

    def best_level(self, features: FloatArray, lowest: int, costs: FloatArray) -> int:
        """Return the level that gains most for its cost, if only the best go from it to the target.

        `costs` are by level.
        """
        top = len(costs) - 1
        levels = np.arange(lowest, top)
        repeated = np.repeat(features, len(levels), axis=0)
        mean, moved, left = self.process.learnt_at(repeated, levels)
        means = mean[:, None] + moved[:, None] * _OUTCOMES
        spreads = np.repeat(left[:, None], len(_OUTCOMES), axis=1)
        improvements = self.improvement(means, spreads)
        share = np.arange(1, len(_OUTCOMES) + 1) / len(_OUTCOMES)
        gains = np.cumsum(improvements, axis=1) / len(_OUTCOMES)
        rates = (gains / (costs[levels, None] + share * costs[-1])).max(axis=1)
        now, spread = self.process.at_target(features)
        at_once = float(self.improvement(now, spread)[0]) / costs[-1]
        return int(levels[np.argmax(rates)]) if rates.max() > at_once else top


def best_place(
    merit: Callable[[FloatArray], FloatArray],
    good: FloatArray,
    rng: np.random.Generator,
    ordered: BoolArray,
) -> tuple[FloatArray, float]:
    """Search the unit cube for the largest merit, at random and then nearby: place and merit.

    `good` places have shape (m, d); `ordered` says which coordinates have an order, shape (d,).
    """
    cube = _Cube(ordered, rng)
    anywhere = rng.random((_RANDOM, good.shape[1]))
    anywhere[::2] = cube.partly_anew(anywhere[::2], _RANDOM_ANEW)
    around = cube.partly_anew(cube.moved(good, _AROUND, _STEP, _SHARE), _ANEW)
    places = np.vstack([anywhere, around])
    merits = merit(places)
    step = _WIDE_STEP
    for _ in range(_ROUNDS):
        kept = np.argsort(-merits, kind="stable")[:_KEPT]
        moved = cube.moved(places[kept], _MOVED, step, _MOVED_SHARE)
        moved = cube.partly_anew(moved, _MOVED_ANEW)
        places = np.vstack([places[kept], moved])
        merits = np.append(merits[kept], merit(moved))
        step /= 2.0
    best = int(np.argmax(merits))
    return places[best], float(merits[best])


@dataclass(frozen=True)
class _Cube:
    """Draws places; `ordered` says which coordinates have an order, shape (d,)."""

    ordered: BoolArray
    rng: np.random.Generator

    def moved(self, places: FloatArray, copies: int, step: float, share: float) -> FloatArray:
        """Return copies of places with some ordered coordinates moved a little."""
        repeated = np.repeat(places, copies, axis=0)
        chosen = self.rng.random(repeated.shape) < share
        rows = np.arange(len(repeated))
        chosen[rows, self.rng.integers(repeated.shape[1], size=len(repeated))] = True
        moves = step * self.rng.normal(size=repeated.shape) * (chosen & self.ordered)
        # Clipped rather than reflected: the best value is often at the end of a range.
        return np.clip(repeated + moves, 0.0, _EDGE)

    def partly_anew(self, places: FloatArray, share: float) -> FloatArray:
        """Draw some coordinates anew; if they are ordered, two thirds of them at or near an end.

        The best value is often there, and small moves hardly ever reach a corner.
        """
        shape = places.shape
        away = _NEAREST ** self.rng.random(shape) * (self.rng.random(shape) < 0.5)
        by_end = np.where(self.rng.random(shape) < 0.5, away, 1.0 - away)
        chosen = self.ordered & (self.rng.random(shape) < _BY_END)
        drawn = np.where(chosen, by_end, self.rng.random(shape))
        partly = np.where(self.rng.random(shape) < share, drawn, places)
        return np.clip(partly, 0.0, _EDGE)
