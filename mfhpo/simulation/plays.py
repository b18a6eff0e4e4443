"""Play a policy that maximises reward on an instance, in whole blocks, and count the regret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.regret.elimination import MFElimination
from mfhpo.regret.mf_ucb import MFUCB
from mfhpo.simulation.instances import Instance
from mfhpo.simulation.runner import check_shape

__all__ = ["PlaysResult", "regret_per_cost", "regret_per_play", "run_plays"]


@dataclass(frozen=True)
class PlaysResult:
    """What a policy played, and what it missed."""

    cost: float  # what was paid
    pulls: int  # number of plays
    counts: IntArray  # plays of every arm at every fidelity, shape (K, M)
    regret_per_cost: float  # paper 000, Eq. 1
    regret_per_play: float  # paper 002, Eq. 9


def run_plays(
    policy: MFUCB | MFElimination, instance: Instance, rng: np.random.Generator, capital: float
) -> PlaysResult:
    """Play until the next play would exceed the capital, or the policy's budget.

    Called again with the same policy, generator and more capital, it plays on. Raises ValueError if
    the policy has another number of arms or fidelities, or cannot be run in blocks.
    """
    check_shape(policy, instance)
    policy.play(partial(instance.running_sums, rng), capital)
    counts, targets, costs = policy.counts, instance.means[-1], instance.costs.tolist()
    return PlaysResult(
        cost=policy.cost,
        pulls=policy.pulls,
        counts=counts,
        regret_per_cost=regret_per_cost(targets, costs, counts, capital),
        regret_per_play=regret_per_play(targets, costs, counts, capital),
    )


def regret_per_cost(
    means: npt.ArrayLike, costs: Sequence[float], counts: npt.ArrayLike, capital: float
) -> float:
    """The regret of paper 000 (Eq. 1): a play earns its arm's target mean times its cost.

    Capital that is left over earns nothing. The oracle plays the best arm, at any fidelity. `means`
    are those at the target, shape (K,), `counts` the plays of every arm at every fidelity, shape
    (K, M). Raises ValueError if the shapes do not fit, or the plays cost more than the capital.
    """
    targets, paid = _costs_of_arms(means, costs, counts, capital)
    return float(capital * targets.max() - paid @ targets)


def regret_per_play(
    means: npt.ArrayLike, costs: Sequence[float], counts: npt.ArrayLike, capital: float
) -> float:
    """The regret of paper 002 (Eq. 9): a play earns its arm's target mean, whatever it cost.

    The oracle plays the best arm at the cheapest fidelity. For the rest see `regret_per_cost`.
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
