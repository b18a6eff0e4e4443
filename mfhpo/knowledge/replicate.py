"""The replicate that the evaluations of a block share, such as a split of the data or a seed."""

from functools import lru_cache

import numpy as np

from mfhpo.knowledge.arrays import IntArray

MOST_SHUFFLED = 1_000_000
"""The number of values up to which none is drawn twice."""


def replicate_of(block: int, seed: int, n_values: int) -> int:
    """Return the replicate of a block, from 0 to n_values - 1: the same for all arms."""
    if n_values <= MOST_SHUFFLED:
        return int(_shuffled(seed, n_values)[block % n_values])
    return int(np.random.default_rng([seed, block]).integers(n_values))


@lru_cache(maxsize=4)
def _shuffled(seed: int, n_values: int) -> IntArray:
    return np.random.default_rng(seed).permutation(n_values)
