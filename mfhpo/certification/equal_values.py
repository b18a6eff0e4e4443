"""Equal values of candidates: they may mean a fixed seed, or a score that is too coarse."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from mfhpo.racing.claims import joined

Named: TypeAlias = Sequence[tuple[str, Sequence[float]]]
"""The values of candidates, with their names."""

LEAST_REPEATS = 4
"""Repeats that must all be equal before it is said that there is no noise to be seen."""


def vary(values: Sequence[float]) -> bool:
    """Return whether values differ."""
    return any(value != values[0] for value in values)


def on_constant_values(told: Named) -> list[str]:
    """Return the condition on candidates whose values are equal, though others' vary."""
    constant = [name for name, own in told if len(own) >= 3 and not vary(own)]
    if not (constant and any(vary(own) for _, own in told)):
        return []
    return [f"the equal values of {joined(constant)} are not due to a fixed seed or split"]


def on_coarse_values(told: Named, in_blocks: bool) -> list[str]:
    """Return a notice if scores in [0, 1] are too coarse for normal noise."""
    coarse = [
        name
        for name, own in told
        if len(own) >= LEAST_REPEATS and 2 * Counter(own).most_common(1)[0][1] > len(own)
    ]
    lies_within = all(0.0 <= value <= 1.0 for _, own in told for value in own)
    if not (coarse and lies_within):
        return []
    remedy = "take a finer score or more data"
    if not in_blocks:
        remedy = f"declare Bounded(0, 1) if no value can lie outside, or {remedy}"
    return [
        f"more than half of the values of {joined(coarse)} are equal, and all values lie in "
        f"[0, 1]: claims that rest on normal noise may be wrong; {remedy}"
    ]
