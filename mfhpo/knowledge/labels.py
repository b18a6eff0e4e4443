"""How a policy names arms, fidelities and values in its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Labels"]


@dataclass(frozen=True)
class Labels:
    """Names for messages; whoever runs a policy may give it better ones than indices.

    Parameters
    ----------
    arm, fidelity
        Name of an arm or a fidelity, given its index.
    value
        A value as whoever runs the policy knows it, which may have been mirrored to be maximised.
    """

    arm: Callable[[int], str] = "arm {}".format
    fidelity: Callable[[int], str] = "fidelity {}".format
    value: Callable[[float], float] = float
