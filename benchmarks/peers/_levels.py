"""Levels in the terms of halving: resources that are a constant factor apart."""

from __future__ import annotations

import math

FACTOR = 3
"""Levels are about this far apart; it is also the default of nearly all implementations."""


def step_of(level: int) -> int:
    """The resource that stands for a level: 1, 3, 9, ...

    Halving promotes at resources that are exact powers of its factor; told of epochs 2, 6, 17 and
    52 as they are, most implementations would find no rung at 17 or none at 52.

    Examples
    --------
    >>> [step_of(level) for level in range(4)]
    [1, 3, 9, 27]
    """
    return int(FACTOR**level)


def level_of(step: float) -> int:
    """The level that a resource stands for; some implementations round on the way.

    Examples
    --------
    >>> level_of(8.999999)
    2
    """
    return round(math.log(step, FACTOR))
