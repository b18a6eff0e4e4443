"""Audits of bias bounds: evaluations that check them, and wider ones where they fail."""

import warnings

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Bias, BiasAudit, BiasContradictedWarning
from mfhpo.knowledge.confidence import MixtureRadius
from mfhpo.problem import Pull
from mfhpo.racing.rule import Known

_UNIT_RADIUS = MixtureRadius(1.0)

# What shows whether the declared bias bounds hold must be paid for. So much of the race's cost may
# have gone into an arm's evaluations at one level, and the price may be that of so many at the
# target; what takes more is not looked for.
_SHARE_OF_AUDIT = 0.5
_MOST_TO_AUDIT = 60.0


def pull_to_audit(known: Known, leader: int, counts: IntArray, left: float) -> Pull | None:
    """Return the next pull that checks the declared bounds on the leading arm.

    Order bounds concern two arms, so the other arm with most target pulls is pulled, too.
    `counts` (K, M) has pulls under way, and `left` is what may be spent.
    """
    bias, target = known.bias, known.problem.target
    is_due = known.audits_bias and known.waits and known.waits_for_repeats
    if not is_due or bias is None or bias.source != "declared":
        return None
    arms = _concerned(known, leader, counts, bias)
    if arms is None:
        return None
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
        needed = _audit_of(known, bias).needed(bias.bounds[m], seen, spread, prices)
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
    if not known.audits_bias or not seen.size:
        return False
    assert known.bias is not None
    means, spread = known.evidence.all_means(seen), _spread_of(known, seen)
    contradicted = False
    while found := _audit_of(known, known.bias).find(
        known.bias, fidelity, means, counts[seen], spread, seen.tolist()
    ):
        contradicted = True
        warnings.warn(
            found.describe(known.labels.arm, known.labels.fidelity),
            BiasContradictedWarning,
            stacklevel=6,
        )
        known.bias = known.bias.widened(found.fidelity, found.widened_to)
    return contradicted


def _audit_of(known: Known, bias: Bias) -> BiasAudit:
    problem = known.problem
    return BiasAudit(bias.kind, problem.n_arms, problem.n_fidelities)


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
