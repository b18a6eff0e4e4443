"""What became of one race: its cost, and how its printed answer compares with the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.assumptions.scenarios import FloatArray
from benchmarks.assumptions.truth import read, verdict

__all__ = ["Outcome", "judged"]

# Of rounding, in the sums that the means come from.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Outcome:
    """One race.

    Parameters
    ----------
    certified
        Whether it ended with a certificate.
    wrong
        Whether that is for an arm that is not within epsilon of the best of all arms.
    is_false
        Whether a printed sentence is false: the claim about the arms that the text says were
        compared, or that a candidate is worse than another one.
    missed
        Whether a certified winner's interval misses its mean.
    cost
        Evaluations at the target, or what costs as much.
    noticed
        Whether the text has a notice, or names what was not compared.
    refused
        Whether the race ended before its cap without a certificate.
    text
        The printed answer.
    """

    certified: bool
    wrong: bool
    is_false: bool
    missed: bool
    cost: float
    noticed: bool
    refused: bool
    text: str


def judged(
    text: str,
    winner: int | None,
    means: FloatArray,
    *,
    epsilon: float,
    not_compared: Sequence[int],
    cost: float,
    finished: bool,
) -> Outcome:
    """Compare a printed answer with the true means, shape (K,)."""
    claims = read(text)
    found = verdict(claims, winner, means, not_compared)
    wrong = False
    if claims.certified and winner is not None:
        wrong = bool(means[winner] < means.max() - epsilon - _ROUNDING)
    return Outcome(
        certified=claims.certified,
        wrong=wrong,
        is_false=found.claim_is_false or found.worse_is_false,
        missed=claims.certified and found.winner_is_missed,
        cost=cost,
        noticed=bool(claims.notices or not_compared),
        refused=finished and not claims.certified,
        text=text,
    )
