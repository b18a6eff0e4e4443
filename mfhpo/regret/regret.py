"""How much reward was missed, where the means are known: two notions, for simulations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["regret_per_cost", "regret_per_play"]

FloatArray = npt.NDArray[np.float64]


def regret_per_cost(
    means: npt.ArrayLike, costs: Sequence[float], counts: npt.ArrayLike, capital: float
) -> float:
    """The regret of paper 000 (Eq. 1): a play earns its arm's target mean times its cost.

    Capital that is left over earns nothing. The oracle plays the best arm, at any fidelity.

    Parameters
    ----------
    means
        Mean of every arm at the target fidelity, shape (K,).
    costs
        Cost of one play at each fidelity, shape (M,).
    counts
        Number of plays of every arm at every fidelity, shape (K, M).
    capital
        What could be spent, in the unit of the costs.

    Raises
    ------
    ValueError
        If the shapes do not fit, or the plays cost more than the capital.

    Examples
    --------
    >>> regret_per_cost([0.5, 1.0], costs=[1.0, 10.0], counts=[[4, 0], [0, 2]], capital=25.0)
    3.0
    """
    targets, paid = _costs_of_arms(means, costs, counts, capital)
    return float(capital * targets.max() - paid @ targets)


def regret_per_play(
    means: npt.ArrayLike, costs: Sequence[float], counts: npt.ArrayLike, capital: float
) -> float:
    """The regret of paper 002 (Eq. 9): a play earns its arm's target mean, whatever it cost.

    The oracle plays the best arm at the cheapest fidelity. Parameters and errors are those of
    `regret_per_cost`.

    Examples
    --------
    >>> regret_per_play([0.5, 1.0], costs=[1.0, 10.0], counts=[[4, 0], [0, 2]], capital=25.0)
    21.0
    """
    targets, _ = _costs_of_arms(means, costs, counts, capital)
    plays = np.asarray(counts, dtype=np.float64).sum(axis=1)
    return float(capital / costs[0] * targets.max() - plays @ targets)


def _costs_of_arms(
    means: npt.ArrayLike, costs: Sequence[float], counts: npt.ArrayLike, capital: float
) -> tuple[FloatArray, FloatArray]:
    """Target means and what was paid for each arm, both of shape (K,)."""
    targets = np.asarray(means, dtype=np.float64)
    plays = np.asarray(counts, dtype=np.float64)
    expected = (len(targets), len(costs))
    if plays.shape != expected:
        raise ValueError(
            f"counts must have shape {expected}, arms as in means and fidelities as in costs, got "
            f"{plays.shape}."
        )
    paid: FloatArray = plays @ np.asarray(costs, dtype=np.float64)
    # A hair more is allowed: sums of costs are rounded.
    if paid.sum() > capital * (1.0 + 1e-9):
        raise ValueError(
            f"capital={capital:g} is less than the {paid.sum():g} that the plays in counts cost."
        )
    return targets, paid
