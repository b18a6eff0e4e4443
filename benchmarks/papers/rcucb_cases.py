"""The instances of the RCUCB paper, with limits and published figures, and who plays them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.papers.rcucb_baselines import LimitThompson, LimitUCB
from benchmarks.papers.rcucb_instances import (
    LOCK_IN_LIMITS,
    LOCK_IN_PENALTY,
    PUBLISHED_COST,
    PUBLISHED_PENALTY,
    CensoredInstance,
    independent,
    lock_in,
    low_censoring,
    many_arms,
    negatively_correlated,
    positively_correlated,
    published_limits,
)
from benchmarks.simulation import rcucb
from benchmarks.simulation.draws import Draw
from mfhpo.censored import RCUCB, CensoredPolicy, Charge
from mfhpo.knowledge.arrays import FloatArray

PUBLISHED_ROUNDS = 100_000


@dataclass(frozen=True)
class Case:
    """An instance with its limits, and what is known of it.

    Parameters
    ----------
    instance, limits, penalty
        The problem.
    published
        Published shares of censored rounds, by method.
    reference
        Regret after 100,000 rounds in an independent implementation, by method.
    goal
        What the default's regret after 100,000 rounds must not exceed.
    """

    instance: Callable[[], CensoredInstance]
    limits: FloatArray
    penalty: Charge
    published: dict[str, float]
    reference: dict[str, float]
    goal: float | None = None


def _case(
    instance: Callable[[], CensoredInstance],
    limits: FloatArray,
    published: tuple[float, float, float] | None,
    reference: dict[str, float],
    goal: float | None = None,
) -> Case:
    shares = dict(zip(("published curves", "TS", "UCB"), published or (), strict=False))
    return Case(instance, limits, PUBLISHED_PENALTY, shares, reference, goal)


_GRID, _M_1, _GRID_20 = published_limits(), np.array([0.5, 0.9]), published_limits(20)


def _regrets(*figures: float) -> dict[str, float]:
    names = ("printed", "published curves", "UCB", "TS", "Bernstein", "KL")
    return dict(zip(names, figures, strict=False))


CASES = {
    "PosCorr": _case(
        positively_correlated,
        _GRID,
        (0.6399, 0.7516, 0.7993),
        _regrets(31691, 1581, 24865, 8071, 8900, 3700),
        4500,
    ),
    "NegCorr": _case(
        negatively_correlated,
        _GRID,
        (0.7700, 0.8510, 0.8894),
        _regrets(14966, 101, 14166, 3123, 8100, 2000),
        2400,
    ),
    "Indep": _case(
        independent,
        _GRID,
        (0.4462, 0.5749, 0.5455),
        _regrets(10339, 2221, 23192, 5885, 8200, 2300),
        2700,
    ),
    "PosCorr, M_1": _case(
        positively_correlated,
        _M_1,
        (0.5876, 0.5688, 0.5919),
        _regrets(34469, 1513, 13549, 5166),
    ),
    "NegCorr, M_1": _case(
        negatively_correlated,
        _M_1,
        (0.7266, 0.7081, 0.7246),
        _regrets(14549, 72, 3590, 1095),
    ),
    "Indep, M_1": _case(
        independent, _M_1, (0.4122, 0.4158, 0.4142), _regrets(10141, 2143, 7159, 4260)
    ),
    "PosCorr, grid 20": _case(
        positively_correlated,
        _GRID_20,
        (0.6126, 0.7383, 0.8157),
        _regrets(33150, 1630, 31576, 9654),
    ),
    "NegCorr, grid 20": _case(
        negatively_correlated,
        _GRID_20,
        (0.7477, 0.8396, 0.9185),
        _regrets(14723, 151, 20661, 3503),
    ),
    "Indep, grid 20": _case(
        independent, _GRID_20, (0.4282, 0.5639, 0.5870), _regrets(10208, 2307, 30729, 6662)
    ),
    "F.2, 20 arms": _case(
        partial(many_arms, 20), published_limits(5), None, _regrets(33.7e3, 2.1e3, 32.4e3, 9.9e3)
    ),
    "F.2, 50 arms": _case(
        partial(many_arms, 50), published_limits(5), None, _regrets(48.8e3, 4.9e3, 39.6e3, 16.4e3)
    ),
    "F.2, 80 arms": _case(
        partial(many_arms, 80), published_limits(5), None, _regrets(56.3e3, 7.0e3, 43.5e3, 22.3e3)
    ),
    "F.3": _case(
        low_censoring,
        published_limits(10, 0.6),
        None,
        _regrets(14646, 498, 19618, 1577, 2400, 560),
        700,
    ),
    "lock-in": Case(lock_in, np.array(LOCK_IN_LIMITS), LOCK_IN_PENALTY, {}, {}),
}


@cache
def problem(name: str) -> tuple[CensoredInstance, FloatArray]:
    """The instance, and how much every pair is worse than the best one."""
    case = CASES[name]
    instance = case.instance()
    gains = instance.gains(case.limits, PUBLISHED_COST, case.penalty)
    return instance, gains.max() - gains


# The method that `RCUCB` uses if it is not told which.
DEFAULT = "KL+"
COUNTED = "published curves"
"""The method with which the paper's figures were made; see `benchmarks.papers.rcucb`."""

Player = CensoredPolicy | LimitUCB | LimitThompson

# A method makes a policy from the number of arms, the limits, cost and penalty, and a seed.
Method = Callable[[int, FloatArray, Charge, Charge, int], Player]


def play(policy: Player, draw: Draw, rounds: int) -> None:
    """Play rounds at once (see `benchmarks.simulation.rcucb.play`)."""
    if isinstance(policy, CensoredPolicy):
        rcucb.play(policy, draw, rounds)
    else:
        policy.play(draw, rounds)


def _rcucb(**options: Any) -> Method:
    def make(n_arms: int, limits: FloatArray, cost: Charge, penalty: Charge, seed: int) -> RCUCB:
        return RCUCB(n_arms, limits, cost=cost, penalty=penalty, **options)

    return make


def _ucb(n_arms: int, limits: FloatArray, cost: Charge, penalty: Charge, seed: int) -> LimitUCB:
    return LimitUCB(n_arms, limits, cost=cost, penalty=penalty)


def _thompson(
    n_arms: int, limits: FloatArray, cost: Charge, penalty: Charge, seed: int
) -> LimitThompson:
    return LimitThompson(n_arms, limits, cost=cost, penalty=penalty, seed=seed)


METHODS: dict[str, Method] = {
    DEFAULT: _rcucb(confidence="kl+"),
    "KL": _rcucb(confidence="kl"),
    "Bernstein": _rcucb(confidence="bernstein"),
    "printed": _rcucb(confidence="printed"),
    COUNTED: _rcucb(confidence="published curves", survival="count"),
    "published curves, Kaplan-Meier": _rcucb(confidence="published curves"),
    "UCB": _ucb,
    "TS": _thompson,
}
