"""The leader, for an answer at any time, and what it is worth at least."""

import numpy as np

from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.confidence import StudentMixtureRadius
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.racing.evidence import Evidence

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
