"""The global generators that objectives may draw from: `random` and `numpy.random`."""

from __future__ import annotations

import itertools
import pickle
import random
import struct
import sys
import zlib
from typing import Any

__all__ = ["draw_seeds", "seed_globals"]

_calls = itertools.count()


def draw_seeds() -> tuple[int, int]:
    """Seeds for `random` and `numpy.random` in another process; nothing is drawn from them here.

    They differ from call to call, and are the same again in a program that seeds the generators
    and makes the same calls.
    """
    call = struct.pack("!Q", next(_calls))
    states = (random.getstate()[1], _numpy_random().get_state(legacy=False)["state"])
    first, second = (zlib.crc32(call, zlib.crc32(pickle.dumps(state))) for state in states)
    return first, second


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
    # Our own code never draws from it: it is meant as the state that objectives may use.
    return sys.modules["numpy"].random
