"""Evaluations besides those that decide: of a winner, and to see whether bias bounds hold."""

import warnings

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Bias, BiasAudit, BiasContradictedWarning
from mfhpo.knowledge.confidence import MixtureRadius
from mfhpo.problem import Pull
from mfhpo.racing.rule import Known
from mfhpo.racing.sentences import evaluations_to_see

SHARE_TO_SEE = 1.0 / 6.0
"""A certificate by normal noise waits until outcomes of this share would have been seen."""

_UNIT_RADIUS = MixtureRadius(1.0)

# What shows whether the declared bias bounds hold must be paid for. So much of the race's cost may
# have gone into an arm's evaluations at one level, and the price may be that of so many at the
# target; what takes more is not looked for.
_SHARE_OF_AUDIT = 0.5
_MOST_TO_AUDIT = 60.0


def lacking(known: Known, winner: int) -> dict[int, int]:
    """Return how many pulls a winner lacks at which fidelity."""
    return known.needs.lacking(known, winner, usually_lacking(known, winner))


def usually_lacking(known: Known, winner: int) -> dict[int, int]:
    """Return it for rules that have no say in it."""
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


def pull_to_audit(known: Known, leader: int, counts: IntArray, left: float) -> Pull | None:
    """Return the next pull that checks the declared bounds on the leading arm, or None.

    `counts` (K, M) has pulls under way, and `left` is what may be spent.
    """
    bias, target = known.bias, known.problem.target
    is_due = known.audits_bias and known.waits and known.waits_for_repeats
    if not is_due or bias is None or bias.source != "declared":
        return None
    arms = _concerned(known, leader, counts, bias)
    if arms is None:
        return None
    audit = BiasAudit(bias.kind, *known.evidence.counts.shape)
    scales = known.evidence.noise_scales()
    # Where there are no repeats yet, values may spread as at other levels.
    variances = np.where(np.isnan(scales), np.fmax.reduce(scales), scales) ** 2
    costs = known.spending.all()
    allowance = _SHARE_OF_AUDIT * float(known.evidence.counts.sum(axis=0) @ costs)
    for m in np.flatnonzero(known.evidence.counts[:, :target].any(axis=0))[::-1].tolist():
        if costs[m] > costs[target]:
            continue  # it is dearer than what it stands for
        levels = [m, target]
        seen = counts[arms][:, levels]
        prices, spread = (np.tile(row[levels], (len(arms), 1)) for row in (costs, variances))
        needed = audit.needed(bias.bounds[m], seen, spread, prices)
        missing = np.maximum(needed - seen, 0.0)
        if not 0.0 < float((missing * prices).sum()) <= _MOST_TO_AUDIT * costs[target]:
            continue
        due = (missing > 0.0) & ((seen + 1) * prices <= allowance) & (prices <= left)
        if due.any():
            place = np.argmax(np.where(due, missing / needed, 0.0))
            row, column = np.unravel_index(int(place), due.shape)
            return Pull(int(arms[row]), levels[int(column)])
    return None


def _concerned(known: Known, leader: int, counts: IntArray, bias: Bias) -> IntArray | None:
    """Return the leader, and for order bounds, which are about two, the other with most pulls."""
    if bias.kind != "order":
        return np.array([leader])
    others = known.roster.rivals(leader)
    if not others.size:
        return None
    order = np.lexsort((counts[others].sum(axis=1), counts[others, known.problem.target]))
    return np.array([leader, others[order[-1]]])


def widen(known: Known, fidelity: int) -> bool:
    """Widen the bounds that values at a fidelity contradict, with a warning; if there are."""
    counts = known.evidence.counts
    seen = np.flatnonzero((counts[:, fidelity] > 0) & ((counts > 0).sum(axis=1) > 1))
    if not seen.size:
        return False
    assert known.bias is not None
    means, spread = known.evidence.means(seen), _spread_of(known, seen)
    audit, contradicted = BiasAudit(known.bias.kind, *counts.shape), False
    while found := audit.find(known.bias, fidelity, means, counts[seen], spread, seen.tolist()):
        contradicted = True
        warnings.warn(
            found.describe(known.labels.arm, known.labels.fidelity),
            BiasContradictedWarning,
            stacklevel=6,
        )
        known.bias = known.bias.widened(found.fidelity, found.widened_to)
    return contradicted


def _spread_of(known: Known, arms: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the values' variances, estimated or supposed, and degrees of freedom, (n, M)."""
    evidence = known.evidence
    noise, seen = evidence.noise, evidence.counts[arms]
    variances, degrees = np.full(seen.shape, np.inf), np.full(seen.shape, np.inf)
    for m, counts in enumerate(seen.T):
        if noise.is_estimated_at(m):
            degrees[:, m] = counts - 1.0
            own = noise.squares(arms, m) / np.maximum(degrees[:, m], 1.0)
            variances[:, m] = np.where(counts > 1, own, np.inf)
        else:
            radii = evidence.half_widths(arms, m)
            variances[:, m] = (radii / _UNIT_RADIUS(np.maximum(counts, 1), noise.level)) ** 2
    return variances, degrees
