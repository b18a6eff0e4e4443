"""Where a better configuration is most to be expected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr

__all__ = ["best_place", "expected_improvement"]

FloatArray = npt.NDArray[np.float64]

_RANDOM, _AROUND = 300, 20  # places tried at first: anywhere, and around each good one
_EDGE = 1.0 - 1e-9
# Of what is tried around good places: step, share of the coordinates moved, and drawn anew.
_STEP, _SHARE, _ANEW = 0.1, 0.5, 0.05
# Then around the best so far: rounds, places kept, moves of each, and the same again. The first
# step is wide, each further one half of it.
_ROUNDS, _KEPT, _MOVED = 6, 8, 12
_WIDE_STEP, _MOVED_SHARE, _MOVED_ANEW = 0.2, 0.4, 0.2
# Share of the coordinates that are drawn anew in every other random place.
_RANDOM_ANEW = 0.4


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

    Coordinates are drawn at the ends of their ranges more often than chance would. A model knows
    least there, so that this is where much may be expected, and where the best value of a parameter
    often is; but in a few dimensions already random places, and small moves from them, hardly ever
    come to a corner.

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
    anywhere = rng.random((_RANDOM, good.shape[1]))
    anywhere[::2] = _partly_anew(anywhere[::2], _RANDOM_ANEW, rng)
    around = _partly_anew(_moved(good, _AROUND, _STEP, _SHARE, rng), _ANEW, rng)
    places = np.vstack([anywhere, around])
    merits = merit(places)
    step = _WIDE_STEP
    for _ in range(_ROUNDS):
        kept = np.argsort(-merits, kind="stable")[:_KEPT]
        moved = _moved(places[kept], _MOVED, step, _MOVED_SHARE, rng)
        moved = _partly_anew(moved, _MOVED_ANEW, rng)
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


def _partly_anew(places: FloatArray, share: float, rng: np.random.Generator) -> FloatArray:
    """Some coordinates drawn anew: a third of them anywhere, the others at one end or the other."""
    drawn = np.clip(rng.uniform(-1.0, 2.0, places.shape), 0.0, _EDGE)
    partly: FloatArray = np.where(rng.random(places.shape) < share, drawn, places)
    return partly
