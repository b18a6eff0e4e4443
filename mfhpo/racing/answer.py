"""What is known so far, for an answer at any time: who leads, what it rests on, what is missing."""

import math
from collections.abc import Sequence

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.confidence import StudentMixtureRadius
from mfhpo.knowledge.noise import CONTRADICTED
from mfhpo.knowledge.normality import REMEDY
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.policy import Labels
from mfhpo.racing.claims import outcomes_in_words, unseen_in_words, unseen_share
from mfhpo.racing.evidence import Evidence
from mfhpo.racing.roster import Roster

# Of the average of all values: finite from two values on, and wrong in one case of twenty on the
# side that matters.
_RADIUS_OF_AVERAGE = StudentMixtureRadius(prior=0.01)
_LEVEL_OF_AVERAGE = 0.1


def surest_arm(evidence: Evidence, arms: IntArray) -> int:
    """Return the arm with the highest lower bound, at the highest fidelity with most pulls.

    Arms with the most pulls, or one less, are compared by their means until all have finite radii.
    Turns say nothing, and an arm with equal values gets a finite radius first, however bad it is.
    """
    counts = evidence.counts[arms]
    pulled = (counts > 0).sum(axis=0)
    fidelity = int(np.flatnonzero(pulled == pulled.max())[-1])
    means = evidence.means(arms, fidelity)
    half = evidence.half_widths(arms, fidelity)
    compared = counts[:, fidelity] >= max(counts[:, fidelity].max() - 1, 1)
    if np.isfinite(half[compared]).all():
        return int(arms[np.argmax(means - half)])
    return int(arms[np.argmax(np.where(compared, means, -np.inf))])


def surest_at_target(evidence: Evidence, arms: IntArray, bias: Bias | None) -> int:
    """Return the arm with the highest lower bound on its target mean; see `surest_by`."""
    lowest, _ = evidence.intervals(arms, bias)
    return surest_by(lowest, evidence, arms)


def surest_by(lowest: FloatArray, evidence: Evidence, arms: IntArray) -> int:
    """Return the arm with the highest of these lower bounds on target means, else `surest_arm`.

    They count once they are finite for all arms with the most target pulls, or one less, for the
    reason given there.
    """
    counts = evidence.counts[arms, -1]
    if np.isfinite(lowest[counts >= counts.max() - 1]).all():
        return int(arms[np.argmax(lowest)])
    return surest_arm(evidence, arms)


def cautious_value(seen: PullStatistics) -> float:
    """Return what the leader is worth at least, while its own interval is infinite.

    It is the lower end of an always-valid interval for the mean of all values at the target, in the
    only cell of `seen`. The leader's own values are selected ones; the average is not. The leader
    is assumed to be no worse. -inf for fewer than two values.
    """
    count, squares = seen.counts[0], seen.squares[0]
    half = _RADIUS_OF_AVERAGE(count, _LEVEL_OF_AVERAGE, squares=squares)
    return float(seen.sums[0, 0] / max(int(count[0]), 1) - half[0])


def remaining_pulls(evidence: Evidence, arms: IntArray, leader: int, epsilon: float) -> float:
    """Return target pulls that separate the leader, infinite for a tie, NaN if unknown."""
    counts = evidence.counts[arms]
    common = np.flatnonzero(counts.all(axis=0))
    if not common.size:
        return math.nan
    means = evidence.means(arms, int(common[-1]))
    leads = arms == leader
    gaps = np.abs(means[leads] - means) + epsilon
    gaps[leads] = gaps[~leads].min()
    target = counts.shape[1] - 1
    needed = evidence.pulls_until(target, gaps / 2.0)
    return float(np.maximum(0.0, needed - counts[:, target]).sum())


def bias_condition(bias: Bias | None, n_pilot: int, level: float) -> str:
    """Name the condition on the fidelities' bias for a certificate, as a clause.

    The bounds may be estimates from `n_pilot` arms, with an error probability of `level`.
    """
    if bias is None:
        return "the bias is as it will be found"
    if bias.source == "declared":
        return "the declared bias bounds hold"
    if bias.source == "widened":
        return "the bias bounds hold as they were widened"
    share = 100.0 * unseen_share(n_pilot, level)
    return (
        f"the arms' biases are alike ({n_pilot} were seen, which covers all but {share:.2g} % of "
        f"the arms)"
    )


def bias_in_words(bias: Bias | None, n_pilot: int) -> str:
    """Say what a certificate assumes about the fidelities' bias."""
    if bias is None:
        return "bias: not known yet"
    words = {
        "declared": "declared",
        "estimated": f"estimated from {n_pilot} arms at every fidelity, taking the arms' biases as "
        "normal and exchangeable",
        "widened": "widened because observations contradicted them",
    }
    bounds = ", ".join(f"{bound:.3g}" for bound in bias.bounds)
    return f"{bias.kind} bias bounds ({bounds}): {words[bias.source]}"


def leads(evidence: Evidence, active: IntArray, arm: int) -> bool:
    """Tell whether no active arm has a larger mean at the arm's highest fidelity."""
    seen = np.flatnonzero(evidence.counts[arm])
    if not seen.size:
        return False
    highest = int(seen[-1])
    means = evidence.means(active[evidence.counts[active, highest] > 0], highest)
    mean = float(evidence.means(np.array([arm]), highest)[0])
    return len(means) > 1 and mean >= float(means.max())


def lost_leader(
    evidence: Evidence,
    roster: Roster,
    failures: IntArray,
    winner: int,
    compared: Sequence[int],
) -> int | None:
    """Return an arm that left for its failures, and was or would be the best by its values.

    It would be if it alone has target values, or has the larger mean at the highest of the
    `compared` fidelities where both have values.
    """
    counts = evidence.counts
    for arm in np.flatnonzero(roster.withdrawn & failures.any(axis=1)).tolist():
        shared = [m for m in compared if counts[arm, m] and counts[winner, m]]
        if shared:
            own, best = evidence.means(np.array([arm, winner]), shared[-1])
            is_ahead = own > best
        else:
            is_ahead = counts[arm, -1] > 0
        if is_ahead or roster.led[arm]:
            return int(arm)
    return None


def not_compared(
    values: IntArray, roster: Roster, failures: IntArray, labels: Labels
) -> tuple[str, ...]:
    """Return arms that left without a comparison, and their outcomes: numbers of values, (K,)."""
    return tuple(
        f"{labels.arm(arm)}: {outcomes_in_words(int(values[arm]), int(failures[arm].sum()))}"
        for arm in np.flatnonzero(roster.withdrawn).tolist()
    )


def unseen(evidence: Evidence, roster: Roster, arm: int | None, delta: float) -> str:
    """Say what target values of an arm and its closest rival cannot exclude."""
    if arm is None:
        return ""
    target = evidence.counts.shape[1] - 1
    pulled = evidence.counts[:, target]
    others = np.flatnonzero(~(roster.withdrawn | roster.merged))
    others = others[others != arm]
    counts = [("this arm", int(pulled[arm]))]
    if others.size:
        means = np.where(pulled[others] > 0, evidence.means(others, target), -np.inf)
        rival = int(others[np.argmax(means)])
        counts.append((f"arm {rival}, its closest rival", int(pulled[rival])))
    return unseen_in_words(counts, delta)


def notices(
    evidence: Evidence, arms: IntArray, compared: Sequence[int], labels: Labels
) -> tuple[str, ...]:
    """Return observations that speak against the conditions of a certificate."""
    found = [CONTRADICTED] if evidence.noise.widened else []
    found += [
        f"{labels.arm(arm)} at {labels.fidelity(fidelity)}: values beyond the declared bounds, on "
        f"which the claim rests; declare wider ones"
        for fidelity in compared
        for arm in evidence.beyond_bounds(arms, fidelity)
    ]
    if evidence.supposes_normal:
        found += [
            f"{labels.arm(arm)} at {labels.fidelity(fidelity)}: {words}; {REMEDY}"
            for fidelity in compared
            for arm, words in evidence.departures(arms, fidelity, labels.value)
        ]
    return tuple(found)
