"""Where a better configuration is most to be expected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr

__all__ = ["best_place", "expected_improvement"]

FloatArray = npt.NDArray[np.float64]

_RANDOM, _AROUND = 300, 20  # places tried at first: anywhere, and around each good one
_STEP, _SHARE, _ELSEWHERE = 0.1, 0.5, 0.05
_EDGE = 1.0 - 1e-9
_ROUNDS, _KEPT, _MOVED, _MOVED_SHARE = 2, 8, 12, 0.4


def expected_improvement(
    mean: FloatArray, spread: FloatArray, best: float, noise: float = 0.0
) -> FloatArray:
    """How much better than `best` a normal variable is on average, counting what is worse as 0.

    Parameters
    ----------
    mean, spread
        Means and standard deviations, of the same shape.
    best
        What is to be beaten.
    noise
        Standard deviation of an observation. Where the variable is known nearly as well as an
        observation would tell, there is little to find out: the improvement counts for the share
        of the spread that an observation takes away. Without this, noise draws a search back to
        the same few places for ever.

    References
    ----------
    Jones, Schonlau and Welch, Efficient global optimization of expensive black-box functions,
    Journal of Global Optimization 13, 1998. Huang, Allen, Notz and Zeng, Global optimization of
    stochastic black-box systems via sequential kriging meta-models, Journal of Global Optimization
    34, 2006, for noise.

    Examples
    --------
    >>> expected_improvement(np.array([0.0]), np.array([1.0]), 0.0).round(4).tolist()
    [0.3989]
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


def best_place(
    merit: Callable[[FloatArray], FloatArray], good: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Search the unit cube for the place of the largest merit, at random and then nearby.

    Parameters
    ----------
    merit
        Takes places, shape (n, d), and returns their merits, shape (n,).
    good
        Places that are known to be good, shape (m, d); some are tried around them.
    rng
        Source of randomness.

    Returns
    -------
    array of shape (d,)
    """
    d = good.shape[1]
    around = _moved(good, _AROUND, _STEP, _SHARE, rng)
    anew = rng.random(around.shape) < _ELSEWHERE
    around = np.where(anew, rng.random(around.shape), around)
    places = np.vstack([rng.random((_RANDOM, d)), around])
    merits = merit(places)
    step = _STEP
    for _ in range(_ROUNDS):
        kept = np.argsort(-merits, kind="stable")[:_KEPT]
        moved = _moved(places[kept], _MOVED, step, _MOVED_SHARE, rng)
        places = np.vstack([places[kept], moved])
        merits = np.append(merits[kept], merit(moved))
        step /= 2.0
    best: FloatArray = places[int(np.argmax(merits))]
    return best


def _moved(
    places: FloatArray, copies: int, step: float, share: float, rng: np.random.Generator
) -> FloatArray:
    """Copies of places, each with at least one coordinate moved a little."""
    repeated = np.repeat(places, copies, axis=0)
    chosen = rng.random(repeated.shape) < share
    rows = np.arange(len(repeated))
    chosen[rows, rng.integers(repeated.shape[1], size=len(repeated))] = True
    moves = step * rng.normal(size=repeated.shape) * chosen
    # Clipped rather than reflected: the best value of a parameter is often the end of its range.
    clipped: FloatArray = np.clip(repeated + moves, 0.0, _EDGE)
    return clipped
