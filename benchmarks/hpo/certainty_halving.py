"""Successive halving and Hyperband on a pool, which promise nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.hpo.certainty_answers import Answer
from benchmarks.hpo.certainty_pools import Pool

_REDUCTION = 3


@dataclass(frozen=True)
class Halved:
    """How successive halving ended.

    Parameters
    ----------
    order
        Its arms: those that came furthest first, and of these the best first.
    value
        What was seen of the first of them.
    cost
        In full evaluations.
    """

    order: tuple[int, ...]
    value: float
    cost: float


def halve(
    pool: Pool, arms: Sequence[int], first: int, sigma: float, rng: np.random.Generator
) -> Halved:
    """Successive halving: from a first level on, the best third goes to the next level.

    Karnin, Koren and Somekh, "Almost Optimal Exploration in Multi-Armed Bandits" (ICML 2013), as
    in Hyperband (Li et al., JMLR 2018).

    Parameters
    ----------
    pool
        The truth.
    arms
        Who takes part, at least one.
    first
        Index of the first level.
    sigma, rng
        The noise, in percent, and its source.
    """
    inside = np.asarray(arms, dtype=np.int64)
    behind: list[int] = []
    cost, best = 0.0, math.nan
    for level in range(first, pool.target + 1):
        begun = pool.costs[level - 1] if pool.continues and level > first else 0.0
        cost += len(inside) * float(pool.costs[level] - begun)
        values = pool.means[level, inside] + sigma * rng.standard_normal(len(inside))
        ranked = np.argsort(-values)
        inside, best = inside[ranked], float(values[ranked[0]])
        if level < pool.target:
            kept = max(1, len(inside) // _REDUCTION)
            behind = [*inside[kept:].tolist(), *behind]
            inside = inside[:kept]
    return Halved((*inside.tolist(), *behind), best, cost)


def hyperband(pool: Pool, sigma: float, rng: np.random.Generator) -> Answer:
    """Hyperband's brackets on the pool, each on arms of its own, in its usual proportions.

    The bracket with s promotions gets arms in proportion to 3^s / (s + 1), so that all brackets
    cost about the same (Li et al., JMLR 2018, Algorithm 1).
    """
    promotions = np.arange(pool.target, -1, -1)
    weights = float(_REDUCTION) ** promotions / (promotions + 1.0)
    ends = np.round(pool.n_arms * np.cumsum(weights) / weights.sum()).astype(np.int64)
    parts = np.split(rng.permutation(pool.n_arms), ends[:-1])
    brackets = [
        halve(pool, arms.tolist(), first, sigma, rng)
        for first, arms in enumerate(parts)
        if len(arms)
    ]
    best = max(brackets, key=lambda bracket: bracket.value)
    return Answer(best.order[0], sum(bracket.cost for bracket in brackets))
