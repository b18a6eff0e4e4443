"""What a race must cost at least, and what it will cost: to be asked before spending.

The lower bound is Theorem 1 of Poiani et al. (2022); the predictions follow the proof of its
Theorem 2 with the radius that is really used. Which fidelities are worth exploring, and how long,
is at the end.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mfhpo._validation import (
    check_array,
    check_instance,
    check_nonnegative,
    check_probability,
    unwrapped,
)
from mfhpo.knowledge.arrays import BoolArray, FloatArray
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.confidence import default_radius, pulls_until
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Problem


@dataclass(frozen=True)
class CostPrediction:
    """What a race is going to cost, in the unit of the problem's costs.

    Attributes
    ----------
    lower_bound
        The least that any method can expect to pay (Theorem 1).
    expected, pulls
        What IISE pays if every mean is seen without noise, and its pulls at each fidelity, shape
        (M,).
    top_fidelity_only
        What successive elimination at the target pays, predicted like `expected`.
    """

    lower_bound: float
    expected: float
    top_fidelity_only: float
    pulls: tuple[float, ...]


# A fidelity, the level of its radii, its margin and its threshold.
_Phase: TypeAlias = tuple[int, float, float, float]


def predict_cost(
    problem: Problem,
    delta: float,
    *,
    gaps: Sequence[float] | FloatArray | None = None,
    means: npt.ArrayLike | None = None,
    epsilon: float = 0.0,
) -> CostPrediction:
    """Predict what a race will cost, before anything is spent.

    Parameters
    ----------
    problem
        Its costs and bias must be declared, and its noise be `SubGaussian` (else ValueError).
    delta
        Probability of a wrong answer, in (0, 1).
    epsilon
        Tolerance in the unit of the values.
    gaps
        A guess by how much the best arm's target mean exceeds that of the others, shape (K - 1,).
        Cheaper fidelities are then taken as unbiased.
    means
        Guessed means at all fidelities, shape (M, K), instead of gaps.
    """
    delta, epsilon = unwrapped(delta), unwrapped(epsilon)
    costs, bias, scales = declared(problem)
    table = _means(problem, gaps, means)
    lower_bound = cost_lower_bound(problem, delta, means=table, epsilon=epsilon)
    margins = np.array(bias.margins)
    compared = costs_of_precision(costs, scales)
    kept = np.flatnonzero(select_fidelities(margins, compared))
    thresholds = convenience_thresholds(margins[kept], compared[kept], epsilon)
    level = delta / (problem.n_arms * problem.n_fidelities)
    race: list[_Phase] = [
        (m, level, margins[m], alpha) for m, alpha in zip(kept.tolist(), thresholds, strict=True)
    ]
    top: list[_Phase] = [(problem.target, delta / problem.n_arms, 0.0, 0.0)]
    expected = _pulls(problem, race, table, epsilon)
    return CostPrediction(
        lower_bound=lower_bound,
        expected=_paid(expected, costs),
        top_fidelity_only=_paid(_pulls(problem, top, table, epsilon), costs),
        pulls=tuple(expected.tolist()),
    )


def cost_lower_bound(
    problem: Problem,
    delta: float,
    *,
    gaps: Sequence[float] | FloatArray | None = None,
    means: npt.ArrayLike | None = None,
    epsilon: float = 0.0,
) -> float:
    """Return the least cost that a delta-correct method can expect to pay.

    For normal noise it is ``ln(1 / (2.4 delta))`` times the sum over arms of the smallest ``2
    lambda_m sigma_m^2 / distance^2`` (Poiani et al. 2022, Theorem 1). The distance is that of the
    arm's mean at fidelity m from the nearest one that would change the right answer. With a
    tolerance only arms count whose answer is forced. It is infinite for a tie of the best arms and
    epsilon = 0.

    Parameters
    ----------
    problem, delta, epsilon, gaps, means
        See `predict_cost`. The means should satisfy the bias bounds.
    """
    costs, bias, sigmas = declared(problem)
    table = _means(problem, gaps, means)
    delta = check_probability("delta", delta)
    epsilon = check_nonnegative("epsilon", epsilon)
    if problem.n_arms == 1:
        return 0.0
    target = table[-1]
    best = int(np.argmax(target))
    others = np.arange(problem.n_arms) != best
    second = float(target[others].max())
    biases = table - target
    bounds = np.array(bias.bounds)[:, None]
    if bias.kind == "max":
        lowest_bias, highest_bias = -bounds, bounds
    else:
        lowest_bias = _largest_of_the_others(biases) - bounds
        highest_bias = bounds - _largest_of_the_others(-biases)
    # What an arm's mean at each fidelity must be moved by before another answer is right.
    distance = target[best] + epsilon + lowest_bias - table
    distance[:, best] = (table - second + epsilon - highest_bias)[:, best]
    with np.errstate(divide="ignore", invalid="ignore"):
        per_fidelity = 2.0 * (costs * sigmas**2)[:, None] / np.maximum(distance, 0.0) ** 2
    per_fidelity[distance <= 0.0] = np.inf
    gap = target[best] - target
    gap[best] = target[best] - second
    forced = (gap > epsilon) | (epsilon == 0.0)
    total = float(per_fidelity.min(axis=0)[forced].sum())
    information = math.log(1.0 / (2.4 * delta))
    return information * total if information > 0.0 and total > 0.0 else 0.0


def _largest_of_the_others(values: FloatArray) -> FloatArray:
    ascending = np.sort(values, axis=1)
    largest, next_largest = ascending[:, -1:], ascending[:, -2:-1]
    return np.where(values == largest, next_largest, largest)


def _pulls(
    problem: Problem, phases: Sequence[_Phase], means: FloatArray, epsilon: float
) -> FloatArray:
    """Return pulls at each fidelity, shape (M,), if every sample mean equals its mean."""
    totals, arms = np.zeros(len(means)), np.arange(means.shape[1])
    for fidelity, level, margin, threshold in phases:
        if len(arms) < 2:
            break
        radius = default_radius(problem.noise, fidelity, problem.n_fidelities)
        pulls_to = partial(pulls_until, radius, level)
        values = means[fidelity, arms]
        leads = arms == arms[np.argmax(values)]
        gaps = (values[leads] - values)[~leads]
        leave = pulls_to((gaps - margin) / 2.0)
        stop = float(pulls_to((gaps + epsilon - margin) / 2.0).max())
        # Pulls of each arm after which the phase ends (Algorithm 1): never for a threshold of 0.
        most = float(pulls_to(np.array([threshold / 4.0]))[0])
        end = min(float(leave.max()), stop, most)
        totals[fidelity] = float(np.minimum(leave, end).sum()) + end
        if stop <= most:
            break
        arms = np.concatenate((arms[~leads][leave > end], arms[leads]))
    return totals


def _paid(pulls: FloatArray, costs: FloatArray) -> float:
    used = pulls > 0.0
    return float(pulls[used] @ costs[used])


def declared(problem: Problem) -> tuple[FloatArray, Bias, FloatArray]:
    """Return costs (M,), bias and noise scales (M,) that a problem declares, or raise."""
    check_instance("problem", problem, Problem, "a mfhpo.Problem")
    for name, value in (("costs", problem.costs), ("bias", problem.bias)):
        if value is None:
            raise ValueError(
                f"{name}=None: a cost is predicted from declared {name}; set {name} in the Problem."
            )
    noise, n_fidelities = problem.noise, problem.n_fidelities
    if not isinstance(noise, SubGaussian):
        raise ValueError(
            f"noise={noise!r}: a cost is predicted from a declared noise scale; set "
            f"noise=SubGaussian(sigma) in the Problem (values within [a, b]: sigma = (b - a) / 2)."
        )
    assert problem.bias is not None
    sigmas = np.array([noise.at(m, n_fidelities) for m in range(n_fidelities)])
    return np.array(problem.costs), problem.bias, sigmas


def checked_means(problem: Problem, means: npt.ArrayLike) -> FloatArray:
    """Return means at all fidelities as an array of shape (M, K), or raise."""
    shape = (problem.n_fidelities, problem.n_arms)
    table = check_array("means", means, "numbers")
    if table.shape != shape or not np.isfinite(table).all():
        raise ValueError(
            f"means must be finite and have shape (fidelities, arms) = {shape}, got "
            f"{table.shape}; the cheapest fidelity is the first row."
        )
    return table


def _means(
    problem: Problem, gaps: Sequence[float] | FloatArray | None, means: npt.ArrayLike | None
) -> FloatArray:
    """Return means at all fidelities, (M, K)."""
    if (gaps is None) == (means is None):
        raise ValueError("give either gaps or means, exactly one of them.")
    if means is not None:
        return checked_means(problem, means)
    given = check_array("gaps", gaps, "numbers")
    if given.shape != (problem.n_arms - 1,) or not (given >= 0.0).all():
        raise ValueError(
            f"gaps must be at least 0, for {problem.n_arms - 1} arms other than the best; got "
            f"{given.tolist()}."
        )
    return np.tile(np.append(0.0, -given), (problem.n_fidelities, 1))


# Beyond this many fidelities the search over subsets is replaced by one over nested ones.
_EXHAUSTIVE_UP_TO = 12


def costs_of_precision(costs: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the cost of a mean of a given precision at each fidelity, lambda_m sigma_m^2, (M,).

    It is scaled to the cost at the target. Costs are returned as they are if a scale is unknown
    (NaN) or the target has no noise.
    """
    if not (np.isfinite(scales).all() and scales[-1] > 0.0):
        return costs
    return np.asarray(costs * (scales / scales[-1]) ** 2, dtype=np.float64)


def convenience_thresholds(
    margins: FloatArray, costs: FloatArray, epsilon: float = 0.0
) -> FloatArray:
    """Return the thresholds alpha_m at which phases end (Poiani et al. 2022, Eq. 8).

    From a gap of 2 margin_m + alpha_m on, fidelity m discards an arm more cheaply than any dearer
    one. With a tolerance (not in the paper), fidelity k pays for a gap
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
    """Tell whether exploring all cheaper fidelities in vain costs no more than each one.

    ``sum_(l<m) e_l <= e_m``, e_m being the cost lambda_m / alpha_m^2 of one arm's phase.
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
