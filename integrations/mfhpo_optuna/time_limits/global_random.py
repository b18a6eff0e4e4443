"""The global generators that objectives may draw from: `random` and `numpy.random`."""

from __future__ import annotations

import random
import sys
from typing import Any

__all__ = ["draw_seeds", "seed_globals"]


def draw_seeds() -> tuple[int, int]:
    """Draw seeds for `random` and `numpy.random` in another process from the ones in this process.

    So they differ from call to call, and whoever seeds the generators here gets the same again.
    """
    return random.getrandbits(32), _numpy_random().randint(0, 2**32, dtype="uint32")


def seed_globals(seed: int, numpy_seed: int) -> None:
    """Seed the global generators of this process.

    Parameters
    ----------
    seed, numpy_seed
        For `random` and for `numpy.random`, each below 2**32.
    """
    random.seed(seed)
    _numpy_random().seed(numpy_seed)


def _numpy_random() -> Any:
    # No algorithm of ours draws from it: it is meant as the state that objectives may use.
    return sys.modules["numpy"].random
