"""The seeds of trials, and what is written down about their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mfhpo.knowledge.fidelity import native

_MASK = (1 << 31) - 1  # seeds have 31 bits


def scalars(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers and texts of a flat result, without the configuration."""
    plain = {name: native(value) for name, value in result.items()}
    return {
        name: value
        for name, value in plain.items()
        if isinstance(value, (bool, int, float, str)) and not name.startswith("config/")
    }


def replicate_seed(
    seed: int, arm: int, fidelity: int, r: int, *, n_arms: int, n_fidelities: int
) -> int:
    """Return the seed of an arm's r-th pull at a fidelity, from 0 to 2**31 - 1.

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
