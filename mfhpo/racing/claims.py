"""The sentences of a certificate: what it claims, under which conditions, what it cannot see."""

import math
from collections.abc import Sequence

FIXED = (
    "the interval covers what varies between evaluations of the same configuration, and not what "
    "the objective keeps fixed, such as folds, a test set or a seed"
)
"""The scope of an interval, in every answer that has one."""


def joined(parts: Sequence[str]) -> str:
    """Join phrases to a list in a sentence: "a, b and c"."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def wrong_in_words(delta: float, conditions: Sequence[str]) -> str:
    """Return the probability of a wrong claim, with all its conditions.

    Examples
    --------
    >>> wrong_in_words(0.05, ["evaluations are independent", "the noise is normal"])
    'wrong with probability at most 0.05 if evaluations are independent and the noise is normal'
    """
    words = f"wrong with probability at most {delta:g}"
    return f"{words} if {joined(conditions)}" if conditions else words


def corrected_in_words(corrected: float, mean: float) -> str:
    """Return what a winner's mean is when corrected for the choice; "" where that is the same.

    Examples
    --------
    >>> corrected_in_words(0.9081, mean=0.912)
    '0.9081 when corrected for having been chosen as the best'
    """
    if math.isnan(corrected) or f"{corrected:.5g}" == f"{mean:.5g}":
        return ""
    return f"{corrected:.5g} when corrected for having been chosen as the best"


def unseen_share(evaluations: int, delta: float) -> float:
    """Return the largest share of outcomes that may have stayed unseen: 1 - delta^(1/n).

    A more frequent outcome is missing from n independent evaluations with probability below delta.
    """
    return 1.0 - delta ** (1.0 / evaluations) if evaluations else 1.0


def evaluations_to_see(share: float, delta: float) -> int:
    """Return how many independent evaluations miss such a share of outcomes with at most delta."""
    return math.ceil(math.log(delta) / math.log1p(-share))


def unseen_in_words(
    counts: Sequence[tuple[str, int]], delta: float, unit: str = "evaluations"
) -> str:
    """Say which rare outcomes the evaluations of some configurations cannot exclude.

    Examples
    --------
    >>> unseen_in_words([("trial 3", 10), ("trial 8", 4)], 0.05)
    'outcomes rarer than 26 % of evaluations of trial 3 (10 seen) and 53 % of trial 8 (4 seen)'
    """
    shares = [f"{_percent(unseen_share(seen, delta))} %" for _, seen in counts]
    words = [
        f"{share} of {f'{unit} of ' * (not place)}{name} ({seen} seen)"
        for place, (share, (name, seen)) in enumerate(zip(shares, counts, strict=True))
    ]
    return f"outcomes rarer than {joined(words)}"


def _percent(share: float) -> str:
    return "100" if share > 0.995 else f"{100.0 * share:.2g}"
