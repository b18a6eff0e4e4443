"""Seeds of pulls: fresh ones, that can be told beforehand."""

from __future__ import annotations

import numpy as np

__all__ = ["replicate_seed"]

_BITS = 31
_MASK = (1 << _BITS) - 1


def replicate_seed(
    seed: int, arm: int, fidelity: int, r: int, *, n_arms: int, n_fidelities: int
) -> int:
    """The seed of an arm's r-th pull at a fidelity, from 0 to 2**31 - 1.

    No two pulls of a race share one, before 2**31 divided by the number of pairs of arms and
    fidelities were begun of one pair.

    >>> replicate_seed(7, 0, 0, 0, n_arms=2, n_fidelities=3)
    232282773
    """
    number = (r * n_arms + arm) * n_fidelities + fidelity
    # Each step maps the numbers of 31 bits onto themselves one to one, so that none occurs twice.
    for key in np.random.SeedSequence(seed).generate_state(3).tolist():
        number = ((number ^ (key & _MASK)) * ((key << 1 | 1) & _MASK)) & _MASK
        number ^= number >> 16
    return number
