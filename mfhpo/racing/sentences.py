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


def wrong_in_words(
    delta: float, conditions: Sequence[str], is_exact: bool = False, also: str = ""
) -> str:
    """Return the probability of a wrong claim, if there is one, with all its conditions.

    `also` names what may be wrong as often, such as "the interval".
    """
    words = "sure" if is_exact else f"wrong with probability at most {delta:g}"
    words += f" if {joined(conditions)}" if conditions else ""
    too = f"; {also} may be wrong with the same probability" if also and not is_exact else ""
    return words + too


def aim_in_words(epsilon: float, delta: float) -> str:
    """Say what is asked for; an epsilon that is not finite is to be found."""
    words = f"{epsilon:.3g}" if math.isfinite(epsilon) else "one standard deviation of the noise"
    return f"epsilon = {words}, delta = {delta:g}"


def bounds_in_words(delta: float, estimated: str) -> str:
    """Say how often bounds on gains are wrong: with probability delta, or approximately."""
    return f"approximate: {estimated}" if estimated else wrong_in_words(delta, ())


def corrected_in_words(corrected: float, mean: float) -> str:
    """Return what a winner's mean is when corrected for the choice; "" where that is the same."""
    if math.isnan(corrected) or f"{corrected:.5g}" == f"{mean:.5g}":
        return ""
    return f"{corrected:.5g} when corrected for having been chosen as the best"


def never_in_words(epsilon: float) -> str:
    """Say what it takes to certify where no number of evaluations suffices."""
    if epsilon:
        return "more replicates than there are, or a larger epsilon"
    return "no number will do (a tie, or too few replicates); set epsilon above 0"


def unseen_share(evaluations: int, delta: float) -> float:
    """Return the share of outcomes that may be unseen with probability delta: 1 - delta^(1/n)."""
    return 1.0 - delta ** (1.0 / evaluations) if evaluations else 1.0


def evaluations_to_see(share: float, delta: float) -> int:
    """Return how many independent evaluations miss such a share of outcomes with at most delta."""
    return math.ceil(math.log(delta) / math.log1p(-share))


def unseen_in_words(
    counts: Sequence[tuple[str, int]], delta: float, unit: str = "evaluations"
) -> str:
    """Say which rare outcomes the evaluations of some configurations cannot exclude."""
    percents = [100.0 * unseen_share(seen, delta) for _, seen in counts]
    shares = ["100 %" if percent > 99.5 else f"{percent:.2g} %" for percent in percents]
    words = [
        f"{share} of {f'{unit} of ' * (not place)}{name} ({seen} seen)"
        for place, (share, (name, seen)) in enumerate(zip(shares, counts, strict=True))
    ]
    return f"outcomes rarer than {joined(words)}"


def outcomes_in_words(values: int, failures: int, stops: int = 0) -> str:
    """Say how many of an arm's evaluations failed or were stopped, such as "failed 9 of 22"."""
    n = values + failures + stops
    stopped = f"was stopped at a time limit in {stops} of {n}"
    failed = f"failed {failures} of {n}"
    if not stops:
        return failed
    return f"{failed} and {stopped}" if failures else stopped
