"""What is known so far, for an answer at any time: who leads, what it rests on, what is missing."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mfhpo.knowledge.bias import Bias
from mfhpo.racing.claims import unseen_share
from mfhpo.racing.evidence import Evidence

__all__ = ["bias_condition", "bias_in_words", "remaining_pulls", "surest_arm", "surest_at_target"]

IntArray = npt.NDArray[np.int64]


def surest_arm(evidence: Evidence, arms: IntArray) -> int:
    """The arm with the highest lower bound, at the highest fidelity where most were pulled.

    Lower bounds keep an arm with a few lucky values from leading one with many good ones. Where no
    radius is finite yet, only the arms that were pulled most often are compared.

    Parameters
    ----------
    evidence
        What was observed.
    arms
        The arms to choose from, shape (n,), n >= 1.
    """
    counts = evidence.counts[arms]
    pulled = (counts > 0).sum(axis=0)
    fidelity = int(np.flatnonzero(pulled == pulled.max())[-1])
    means = evidence.means(arms, fidelity)
    half = evidence.half_widths(arms, fidelity)
    if np.isfinite(half).any():
        return int(arms[np.argmax(means - half)])
    most = counts[:, fidelity] == counts[:, fidelity].max()
    return int(arms[np.argmax(np.where(most, means, -np.inf))])


def surest_at_target(evidence: Evidence, arms: IntArray, bias: Bias | None) -> int:
    """The arm with the highest lower bound on its target mean, by all that the bias bounds allow.

    `surest_arm` where no bound is finite yet.
    """
    lowest, _ = evidence.intervals(arms, bias)
    if not np.isfinite(lowest).any():
        return surest_arm(evidence, arms)
    return int(arms[np.argmax(lowest)])


def remaining_pulls(evidence: Evidence, arms: IntArray, leader: int, epsilon: float) -> float:
    """Pulls at the target fidelity that would tell the leader from the rest, if means are right.

    Parameters
    ----------
    evidence
        What was observed.
    arms
        The remaining arms, shape (n,), n >= 2, the leader among them.
    leader
        The best of them so far.
    epsilon
        Tolerance of the race.

    Returns
    -------
    float
        Infinite where no number will do (a tie), NaN where too little is known.
    """
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
    """What must be true of the fidelities' bias for a certificate, as a clause.

    Parameters
    ----------
    bias
        The bounds in force.
    n_pilot
        Number of arms from which they were estimated.
    level
        The error probability that was set aside for the estimate.
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
    """What is taken for true of the fidelities' bias, for a certificate."""
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
