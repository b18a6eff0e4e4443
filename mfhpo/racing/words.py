"""The words of a race's answer: why it stands as it does, and on what that rests."""

import math
from dataclasses import replace

import numpy as np

from mfhpo.knowledge.noise import within_range
from mfhpo.problem import Recommendation
from mfhpo.racing.course import outcomes, why_nothing_is_certified
from mfhpo.racing.extra_pulls import is_short_at_target, lacking
from mfhpo.racing.noise_evidence import LEAST_REPEATS
from mfhpo.racing.rule import Known
from mfhpo.racing.sentences import joined, unseen_in_words, unseen_share

_SAME = (
    "draw a new seed or split in every evaluation, or evaluate one fold in each, the replicate; "
    "declare sigma=0 if there is no noise"
)


def answer(
    known: Known,
    leader: tuple[int | None, float, tuple[float, float], int],
    finished: bool,
    awaited: bool,
    provisos: tuple[str, ...],
) -> Recommendation:
    """Return the best answer so far, given what `Policy.leader` returns.

    `awaited` says whether the race goes on although it has a winner; for `finished` and `provisos`
    see `Policy`.
    """
    roster = known.roster
    arm, mean, interval, fidelity = leader
    # A winner that was compared with nothing is none.
    is_compared = known.certified is not None or not roster.is_lonely
    ended = known.winner is not None and is_compared and not awaited
    refused = why_nothing_is_certified(known, arm) if ended and arm is not None else ""
    certified = ended and not refused
    conditions, assumptions = _suppositions(known)
    usual = Recommendation(
        arm=arm,
        mean=mean,
        interval=within_range(interval, known.problem.noise),
        fidelity=fidelity,
        delta=known.delta,
        epsilon=known.epsilon,
        finished=finished,
        certified=certified,
        reason=_reason(known, arm, finished, awaited),
        cost=known.spending.paid,
        pulls=known.pulls,
        survivors=tuple(known.arms.tolist()),
        compared=known.problem.n_arms - int((roster.withdrawn | roster.merged).sum()),
        assumptions=assumptions,
        remaining_cost=_remaining_cost(known, arm) if known.needs.certifies else None,
        conditions=conditions,
        unseen=_unseen(known, arm),
        not_compared=tuple(
            f"{known.labels.arm(gone)}: {outcomes(known, gone)}"
            for gone in np.flatnonzero(roster.withdrawn).tolist()
        ),
        failures=int(known.failures.sum()),
        notices=_notices(known),
        is_exact=known.needs.is_exact(known),
    )
    found = known.needs.words(known, usual)
    return replace(
        found,
        reason=refused or found.reason,
        remaining_cost=0.0 if certified else None if refused else found.remaining_cost,
        conditions=(*found.conditions, *provisos),
    )


def _reason(known: Known, arm: int | None, finished: bool, awaited: bool) -> str:
    if arm is None:
        return "every arm failed and left the race"
    if not known.needs.certifies:
        reason = known.needs.reason
        if finished:
            return f"{_end(known)}; {reason}"
        return f"the pilot is not complete; {reason}" if known.piloting else reason
    winner = known.winner
    if winner is None:
        reason = f"{len(known.arms)} arms are not told apart yet"
        if known.piloting:
            reason = "the pilot is not complete"
    elif awaited:
        reason = "the winner is evaluated more often, to see what a few values cannot show"
        if known.needs.repeats(known):
            reason = "a few evaluations are made twice, to see whether a replicate gives one value"
        elif is_short_at_target(known, winner):
            reason = "the winner's value at the target is still being measured"
    elif known.certified is not None:
        return known.needs.reason
    elif known.roster.is_lonely:
        return "every other arm left without being compared, because its pulls failed"
    elif known.roster.eliminated.any():
        compared = " that was compared" if known.roster.withdrawn.any() else ""
        return f"every other arm{compared} was eliminated"
    else:
        return "the only arm"
    return f"{_end(known)} and {reason}" if finished else reason


def _end(known: Known) -> str:
    if end := known.needs.end(known):
        return end
    if known.hides_noise:
        return f"all repeated evaluations gave exactly the same value: {_SAME}"
    return f"the budget of {known.spending.budget:g} is spent"


def _suppositions(known: Known) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the conditions of a certificate, and the assumptions that it rests on."""
    conditions, assumptions = ["evaluations are independent", known.evidence.assumption], []
    if known.evidence.noise.is_estimated:
        assumptions.append("noise: estimated, that of each configuration from its own values")
    if len(known.compared) > 1:
        condition, assumption = _bias_in_words(known)
        conditions.append(condition)
        assumptions.append(assumption)
    elif known.problem.n_fidelities > 1:
        assumptions.append("bias: nothing is taken for true of it; the target's values decide")
    return tuple(conditions), tuple(assumptions)


def _bias_in_words(known: Known) -> tuple[str, str]:
    bias, n_pilot = known.bias, known.n_pilot
    if bias is None:
        return "the bias is as it will be found", "bias: not known yet"
    share = 100.0 * unseen_share(n_pilot, known.bias_level)
    condition, source = {
        "declared": ("the declared bias bounds hold", "declared"),
        "estimated": (
            f"the arms' biases are alike ({n_pilot} were seen, which covers all but {share:.2g} % "
            f"of the arms)",
            f"estimated from {n_pilot} arms at every fidelity, taking the arms' biases as normal "
            f"and exchangeable",
        ),
        "widened": (
            "the bias bounds hold as they were widened",
            "widened because observations contradicted them",
        ),
    }[bias.source]
    bounds = ", ".join(f"{bound:.3g}" for bound in bias.bounds)
    return condition, f"{bias.kind} bias bounds ({bounds}): {source}"


def _notices(known: Known) -> tuple[str, ...]:
    noise, labels = known.evidence.noise, known.labels
    found: list[str] = []
    if known.needs.certifies:
        found = [
            f"all repeated evaluations at {labels.fidelity(m)} gave exactly the same value: {_SAME}"
            for m in known.compared
            if noise.is_hidden(m, LEAST_REPEATS)
        ]
        if known.bias is not None and known.bias.source == "widened":
            found.append("observations contradicted the declared bias bounds, which were widened")
        unaudited = noise.unaudited if known.waits else {}
        if unaudited and not known.waits_for_repeats:
            levels = joined([labels.fidelity(m) for m in unaudited])
            found.append(
                f"too few repeats at {levels} to see whether the declared sigma is too small"
            )
    return (*found, *known.evidence.notices(np.flatnonzero(~known.roster.merged), labels))


def _remaining_cost(known: Known, leader: int | None) -> float | None:
    if leader is None or known.piloting or known.hides_noise:
        return None
    winner, cost_of = known.winner, known.spending.of
    if winner is not None:
        missing_of_winner = lacking(known, winner).items()
        return sum((n * cost_of(m) for m, n in missing_of_winner), start=0.0)
    missing = _remaining_pulls(known, leader)
    if math.isnan(missing):
        return None
    return missing if math.isinf(missing) else missing * cost_of(known.problem.target)


def _remaining_pulls(known: Known, leader: int) -> float:
    """Return target pulls that separate the leader, infinite for a tie, NaN if unknown."""
    evidence, arms, target = known.evidence, known.arms, known.problem.target
    counts = evidence.counts[arms]
    common = np.flatnonzero(counts.all(axis=0))
    if not common.size:
        return math.nan
    means = evidence.means(arms, int(common[-1]))
    leads = arms == leader
    gaps = np.abs(means[leads] - means) + known.epsilon
    gaps[leads] = gaps[~leads].min()
    needed = evidence.pulls_until(target, gaps / 2.0)
    return float(np.maximum(0.0, needed - counts[:, target]).sum())


def _unseen(known: Known, arm: int | None) -> str:
    if arm is None or not known.needs.rests_on_noise(known):
        return ""
    target, others = known.problem.target, known.roster.rivals(arm)
    pulled = known.evidence.counts[:, target]
    others = others[~known.roster.ruled_out[others]]
    counts = [("this arm", int(pulled[arm]))]
    if others.size:
        means = np.where(pulled[others] > 0, known.evidence.means(others, target), -np.inf)
        rival = int(others[np.argmax(means)])
        counts.append(("its closest rival", int(pulled[rival])))
    return unseen_in_words(counts, known.delta)
