"""Evaluations of a winner before the race is over."""

from mfhpo.problem import Pull
from mfhpo.racing.claims import evaluations_to_see
from mfhpo.racing.rule import Known

SHARE_TO_SEE = 1.0 / 6.0
"""A certificate by normal noise waits until its arm's outcomes of this share would have been seen.

A few values cannot tell a frequent divergence from luck.
"""


def lacking(known: Known, winner: int) -> dict[int, int]:
    """Return how many pulls a winner lacks at which fidelity."""
    return known.needs.lacking(known, winner, usually_lacking(known, winner))


def usually_lacking(known: Known, winner: int) -> dict[int, int]:
    """Return the same for rules that have no say in it."""
    counts, target = known.evidence.counts[winner], known.problem.target
    missing = {target: known.measure - int(counts[target])}
    if known.waits:
        cost_of = known.spending.of
        unaudited = known.evidence.noise.unaudited if known.waits_for_repeats else {}
        for m, repeats in unaudited.items():
            if cost_of(m) <= cost_of(target):  # else it is dearer than what it stands for
                missing[m] = max(missing.get(m, 0), repeats + int(counts[m] == 0))
        planned = sum(max(missing.get(m, 0), 0) for m in known.compared)
        short = -_values_beyond_few(known, winner) - planned
        if short > 0:
            cheapest = min(known.compared, key=cost_of)
            missing[cheapest] = max(missing.get(cheapest, 0), 0) + short
    return {m: pulls for m, pulls in missing.items() if pulls > 0}


def _values_beyond_few(known: Known, arm: int) -> int:
    """Return how many values an arm has beyond those that show what a few cannot."""
    normal = known.evidence.supposes_normal
    awaited = evaluations_to_see(SHARE_TO_SEE, known.delta) if normal else 0
    return int(known.evidence.counts[arm, list(known.compared)].sum()) - awaited


def is_confirmed_by(known: Known, arm: int) -> bool:
    """Tell whether to compare all arms again, now that this one has another value."""
    # Later blocks of a winner alone are compared with nothing.
    if not known.waits or known.needs.intake is not None or known.winner != arm:
        return False
    return _values_beyond_few(known, arm) == 0


def is_short_at_target(known: Known, winner: int) -> bool:
    """Tell whether a winner has fewer values at the target than were asked for."""
    return bool(known.evidence.counts[winner, known.problem.target] < known.measure)


def next_pull(known: Known, winner: int, missing: dict[int, int]) -> Pull:
    """Return the next pull of a winner that lacks some."""
    if is_short_at_target(known, winner):
        return Pull(winner, known.problem.target)
    return Pull(winner, min(missing, key=known.spending.of))
