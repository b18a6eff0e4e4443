"""How long each fidelity is worth exploring, and which fidelities are worth having."""

import itertools

import numpy as np

from mfhpo.knowledge.arrays import BoolArray, FloatArray

# Beyond this many fidelities the search over subsets is replaced by one over nested ones.
_EXHAUSTIVE_UP_TO = 12


def costs_of_precision(costs: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the cost of a mean of a given precision at each fidelity, lambda_m sigma_m^2, (M,).

    In Theorem 2 sigma_m^2 goes with lambda_m. The product is scaled to the cost at the target.
    Costs are returned as they are if a scale is unknown (NaN) or the target has no noise.
    """
    if not (np.isfinite(scales).all() and scales[-1] > 0.0):
        return costs
    return np.asarray(costs * (scales / scales[-1]) ** 2, dtype=np.float64)


def convenience_thresholds(
    margins: FloatArray, costs: FloatArray, epsilon: float = 0.0
) -> FloatArray:
    """Return the thresholds alpha_m at which phases end (Poiani et al. 2022, Eq. 8).

    With gamma_m, see Section 5. From a gap of 2 margin_m + alpha_m on, fidelity m discards an arm
    more cheaply than any dearer one. With a tolerance (not in the paper), fidelity k pays for a gap
    of max(gap, epsilon), so that m also pays off from 2 margin_m + (epsilon - 2 margin_k)
    sqrt(lambda_m / lambda_k) on; the larger threshold counts.

    All have shape (M,); costs increase, and the last threshold is 0.
    """
    roots = np.sqrt(costs)
    thresholds = np.zeros(len(costs))
    for m in range(len(costs) - 1):
        dearer = slice(m + 1, None)
        for_gaps = 2.0 * (margins[m] - margins[dearer]) * roots[m] / (roots[dearer] - roots[m])
        for_epsilon = (epsilon - 2.0 * margins[dearer]) * roots[m] / roots[dearer]
        thresholds[m] = float(np.maximum(for_gaps, for_epsilon).max())
    return thresholds


def assumption_1_holds(margins: FloatArray, costs: FloatArray) -> bool:
    """Tell whether exploring all cheaper fidelities in vain costs no more than the present one.

    This is Assumption 1 of Poiani et al. (2022): ``sum_(l<m) e_l <= e_m`` for every m < M, where
    e_m is, up to a common factor, the cost lambda_m / alpha_m^2 of one arm's phase.
    """
    effort = _phase_efforts(margins, costs)
    return bool(np.all(np.cumsum(effort)[:-1] <= effort[1:] * (1.0 + 1e-12)))


def select_fidelities(margins: FloatArray, costs: FloatArray, preselect: bool = True) -> BoolArray:
    """Choose the fidelities to race on; costs need not increase here.

    Dominated fidelities go first (Poiani et al. 2022, footnote 1), perhaps the target itself. With
    `preselect`, the largest set with the unbiased fidelity that satisfies Assumption 1 is kept
    (Section 4.2). Among equally large ones, it is the cheapest to explore in vain.
    """
    n_fidelities = len(costs)
    kept = np.ones(n_fidelities, dtype=bool)
    for m in range(n_fidelities):
        no_worse = (costs <= costs[m]) & (margins <= margins[m])
        better = (costs < costs[m]) | (margins < margins[m])
        kept[m] = not (no_worse & (better | (np.arange(n_fidelities) < m))).any()
    # Of what is not dominated, what is dearer is less biased: the last one has no bias.
    candidates = sorted(np.flatnonzero(kept).tolist(), key=lambda m: costs[m])
    if not preselect or assumption_1_holds(margins[candidates], costs[candidates]):
        return kept
    *lower, last = candidates
    subsets = [[*lower[start:], last] for start in range(1, len(lower) + 1)]
    if len(lower) <= _EXHAUSTIVE_UP_TO:
        chosen = (itertools.combinations(lower, size) for size in range(len(lower)))
        subsets = [[*some, last] for some in itertools.chain.from_iterable(chosen)]
    valid = [subset for subset in subsets if assumption_1_holds(margins[subset], costs[subset])]
    best = min(valid, key=lambda s: (-len(s), float(_phase_efforts(margins[s], costs[s]).sum())))
    kept[:] = False
    kept[best] = True
    return kept


def _phase_efforts(margins: FloatArray, costs: FloatArray) -> FloatArray:
    thresholds = convenience_thresholds(margins, costs)[:-1]
    return np.asarray(4.0 * costs[:-1] / thresholds**2, dtype=np.float64)
