"""Which configurations make a portfolio: each next one helps most on the data sets together."""

from __future__ import annotations

import numpy as np

from mfhpo.knowledge.arrays import FloatArray


def normalised(values: FloatArray) -> FloatArray:
    """Regrets of candidates on data sets, 0 for the best one and 1 for the median and below.

    Parameters
    ----------
    values
        The larger the better, shape (data sets, candidates).
    """
    best = values.max(axis=1, keepdims=True)
    spread = np.maximum(best - np.median(values, axis=1, keepdims=True), 1e-12)
    regrets: FloatArray = np.minimum((best - values) / spread, 1.0)
    return regrets


def greedy(regrets: FloatArray, n: int, first: int = 0) -> list[int]:
    """Choose candidates in an order; each lowers the mean of the least regrets so far the most.

    Of those that lower it as much, the one with the least mean regret of its own is taken.

    Parameters
    ----------
    regrets
        Shape (data sets, candidates).
    n
        How many to choose.
    first
        The candidate that is chosen before any other.

    Examples
    --------
    >>> greedy(np.array([[0.6, 0.5, 0.0, 0.9], [0.6, 0.5, 0.9, 0.0]]), n=3)
    [0, 1, 2]
    """
    chosen = [first]
    least = regrets[:, first]
    own = regrets.mean(axis=0)
    while len(chosen) < n:
        gained = np.minimum(least[:, None], regrets).mean(axis=0)
        gained[chosen] = np.inf
        equal = np.flatnonzero(gained <= gained.min() + 1e-12)
        chosen.append(int(equal[own[equal].argmin()]))
        least = np.minimum(least, regrets[:, chosen[-1]])
    return chosen
