"""Failures of arms: when an arm leaves a race for them, and what that means for the others."""

import math

import numpy as np
from scipy.special import betainc, betaln

from mfhpo.knowledge.arrays import IntArray
from mfhpo.racing.claims import outcomes_in_words
from mfhpo.racing.rule import Known

# Probability with which an arm ever leaves that fails in half of its evaluations: so many are
# tolerated, as it then costs twice as much as one that never fails.
_LEVEL = 0.01


def fails_too_often(values: int, failures: int, max_failures: int, elsewhere: int = 0) -> bool:
    """Tell whether an arm leaves because its evaluations at a fidelity give no value.

    An arm without values, also `elsewhere`, leaves after `max_failures` failures. One with values
    leaves once its failure rate at a fidelity is confidently above one half.
    """
    if failures < max_failures:
        return False
    if values + elsewhere == 0:
        return True
    return failures > values and evidence_of_failing(values, failures) >= 1.0 / _LEVEL


def evidence_of_failing(values: int, failures: int) -> float:
    """Return how strongly the outcomes say that more than half of the evaluations fail.

    It is the likelihood of a failure rate drawn evenly between one half and 1, over that of one
    half. This is a nonnegative supermartingale for every rate up to one half, so that it ever
    reaches 1 / a with probability at most a (Ville's inequality).
    """
    a, b = failures + 1.0, values + 1.0
    # The integral of r^failures (1 - r)^values from one half to 1, over that from 0 on.
    mass = float(betainc(b, a, 0.5))
    if mass == 0.0:
        return 0.0
    log_ratio = float(betaln(a, b)) + math.log(mass) + (failures + values + 1) * math.log(2.0)
    return math.exp(min(log_ratio, 700.0))


def n_values(known: Known) -> IntArray:
    """Return how many values each arm has given, shape (K,)."""
    intake = known.needs.intake
    if intake is not None and intake.in_order:
        return intake.n_values
    return np.asarray(known.evidence.counts.sum(axis=1))


def outcomes(known: Known, arm: int) -> str:
    """Say how many of an arm's evaluations gave no value, and why."""
    failures, stops = int(known.failures[arm].sum()), int(known.stops[arm].sum())
    return outcomes_in_words(int(n_values(known)[arm]), failures, stops)


def why_it_leaves(known: Known, arm: int, fidelity: int) -> str:
    """Say why an arm leaves the race, given where it failed last; empty if it stays."""
    counted, intake = known.missing[arm], known.needs.intake
    if intake is not None and intake.in_blocks:
        counted[known.problem.target] = intake.failures_of(arm)
    counts = known.evidence.counts[arm]
    at_all, values = int(counts.sum()), int(counts[fidelity])
    failures = int(counted[fidelity] if at_all else counted.sum())
    leaves = fails_too_often(values, failures, known.max_failures, at_all - values)
    if not leaves or known.roster.withdrawn[arm]:
        return ""
    missing, given = int(known.missing[arm].sum()), int(n_values(known)[arm])
    return (
        f"{known.labels.arm(arm)} leaves the race: {missing} of {missing + given} pulls gave no "
        f"value (they failed, were pruned, ran out of time or gave no number of a size up to "
        f"1e50), the last at {known.labels.fidelity(fidelity)}; mend the objective for this "
        f"configuration, or raise max_failures={known.max_failures}"
    )


def why_nothing_is_certified(known: Known, winner: int) -> str:
    """Say which arm left for its failures that was or would be the best; empty if none."""
    intake = known.needs.intake
    if intake is not None and intake.in_blocks:
        lost = intake.lost_leader(known.roster, known.missing, winner)
    else:
        lost = _lost_leader(known, winner)
    if lost is None:
        return ""
    return (
        f"{known.labels.arm(lost)} led when it left the race, or would lead by its values: it "
        f"{outcomes(known, lost)} evaluations, so that it could not be compared; mend the "
        f"objective for it, or leave it out"
    )


def _lost_leader(known: Known, winner: int) -> int | None:
    """Return an arm that left for its failures, and was or would be the best by its values.

    It would be if it alone has target values, or has the larger mean at the highest fidelity that
    is compared where both have values.
    """
    counts, roster = known.evidence.counts, known.roster
    for arm in np.flatnonzero(roster.withdrawn & known.missing.any(axis=1)).tolist():
        shared = [m for m in known.compared if counts[arm, m] and counts[winner, m]]
        is_ahead = counts[arm, -1] > 0
        if shared:
            own, best = known.evidence.means(np.array([arm, winner]), shared[-1])
            is_ahead = own > best
        if is_ahead or roster.led[arm]:
            return int(arm)
    return None
