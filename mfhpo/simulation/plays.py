"""Run a policy that maximises reward on an instance: whole blocks of plays at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from mfhpo.regret.elimination import MFElimination
from mfhpo.regret.mf_ucb import MFUCB
from mfhpo.regret.regret import regret_per_cost, regret_per_play
from mfhpo.simulation.instances import Instance
from mfhpo.simulation.runner import check_shape

__all__ = ["PlaysResult", "run_plays"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PlaysResult:
    """What a policy played, and what it missed.

    Parameters
    ----------
    cost, pulls
        What was paid, and number of plays.
    counts
        Number of plays of every arm at every fidelity, shape (K, M).
    regret_per_cost, regret_per_play
        The regret of paper 000 (Eq. 1) and of paper 002 (Eq. 9).
    """

    cost: float
    pulls: int
    counts: IntArray
    regret_per_cost: float
    regret_per_play: float


def run_plays(
    policy: MFUCB | MFElimination, instance: Instance, rng: np.random.Generator, capital: float
) -> PlaysResult:
    """Play until the next play would exceed the capital, or the policy's budget.

    Called again with the same policy, generator and more capital, it plays on.

    Parameters
    ----------
    policy
        A policy with declared bias, costs and noise, made for the instance's problem.
    instance
        What is pulled.
    rng
        Source of the draws.
    capital
        Largest total cost.

    Raises
    ------
    ValueError
        If the policy has another number of arms or fidelities, or cannot be run in blocks.

    Examples
    --------
    >>> from mfhpo.simulation.instances import GaussianInstance
    >>> instance = GaussianInstance([[0.0, 0.4], [0.1, 0.5]], costs=[1.0, 10.0], variance=0.01)
    >>> policy = MFUCB(instance.problem())
    >>> result = run_plays(policy, instance, np.random.default_rng(0), capital=1e4)
    >>> policy.recommend().arm, result.cost
    (1, 9998.0)
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
