"""What a race must cost at least, and how the cheapest race would spend it.

Poiani, Degenne, Kaufmann, Metelli and Restelli, "Optimal Multi-Fidelity Best-Arm Identification",
NeurIPS 2024: the bound is attained as delta goes to 0, unlike that of `cost_lower_bound`, which
looks at one arm at a time.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from mfhpo._validation import check_probability
from mfhpo.identification.bounds import checked_means, declared
from mfhpo.identification.likelihood.likelihood import OwnBias
from mfhpo.knowledge.arrays import FloatArray, IntArray
from mfhpo.problem import Problem

# The bound is found to this relative accuracy, from below.
_ACCURACY = 1e-4
_MOST_CUTS = 200

# What rounding makes of means that are exactly as far from the target's as the bounds allow.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class TightBound:
    """The least expected cost of a right answer, and how it is spent.

    Attributes
    ----------
    cost
        No method that is right with probability 1 - delta can expect to pay less, for Gaussian
        noise; in the unit of the problem's costs.
    coefficient
        C*: the cost per unit of information; ``cost = C* ln(1 / (2.4 delta))``.
    shares
        Shares of the cost that the cheapest race spends on every arm and fidelity, shape (K, M).
    """

    cost: float
    coefficient: float
    shares: FloatArray


def tight_cost_lower_bound(problem: Problem, delta: float, *, means: npt.ArrayLike) -> TightBound:
    """Compute the lower bound that a good race comes close to.

    C* is the least cost of pulls w, not nearly whole numbers, with which every alternative in which
    another arm is better is at a distance of at least 1 from the means,

        sum over fidelities of w_im d(mu_im, eta)^2 / (2 sigma_m^2)
            + w_jm d(mu_jm, eta)^2 / (2 sigma_m^2)  >=  1  for all arms j and all eta,

    i being the best arm and d the distance from the means that xi_m allows around eta. For a given
    eta that is linear in w: a linear programme, to which the eta that is violated most is added
    until none is. Its dual is the max-min of the paper's Theorem 1.

    Parameters
    ----------
    problem
        Its costs and its bias, of kind "max", must be declared, and its noise be `SubGaussian`.
    delta
        Probability of a wrong answer.
    means
        Means at all fidelities, shape (M, K), the cheapest first. They must satisfy the bounds.
        Where an arm breaks them by less than its gap to the best arm, its means are moved within.

    Raises
    ------
    ValueError
        If something is not declared, the shape does not fit, two arms are best, there is no noise
        at some fidelity, or the means break the bounds.
    RuntimeError
        If the linear programme fails, or the bound is not found in 200 rounds.

    Examples
    --------
    >>> from mfhpo import Bias, SubGaussian
    >>> problem = Problem(2, costs=(1.0,), bias=Bias.max(0.0), noise=SubGaussian(1.0))
    >>> tight_cost_lower_bound(problem, 0.05, means=[[0.0, 1.0]]).coefficient
    8.0...
    """
    delta = check_probability("delta", delta)
    table, costs, bounds, variances = _problem_and_means(problem, means)
    if problem.n_arms == 1:
        return TightBound(0.0, 0.0, np.full((1, len(costs)), 1.0 / len(costs)))
    best = int(np.argmax(table[:, -1]))
    others = np.flatnonzero(np.arange(problem.n_arms) != best)
    gaps = table[best, -1] - table[others, -1]
    if not (gaps > 0.0).all():
        raise ValueError(
            f"means has two best arms, {best} and {others[np.argmin(gaps)]}: no cost is enough."
        )
    # In units of the costs and of the smallest gap, so that the solver's tolerances fit.
    unit = 2.0 * float(variances.max()) / float(gaps.min()) ** 2
    table = _within_bounds(table, bounds, best)
    cuts_for = partial(_cuts, table, bounds, variances / unit, best)
    cuts = [cuts_for(others, table[others, -1] + part * gaps) for part in np.linspace(0.0, 1.0, 9)]
    scaled_costs = np.tile(costs / costs.mean(), problem.n_arms)
    for _ in range(_MOST_CUTS):
        matrix = vstack(cuts)
        solution = linprog(
            scaled_costs, A_ub=-matrix, b_ub=-np.ones(matrix.shape[0]), method="highs"
        )
        if solution.status != 0 or solution.x is None:
            raise RuntimeError(f"the linear programme of the bound failed: {solution.message}")
        pulls = np.maximum(solution.x.reshape(table.shape), 0.0)
        spread = np.tile(variances / unit, (problem.n_arms, 1))
        likelihood = OwnBias(table, pulls, spread, bounds, prior=0.0)
        information, alternatives = likelihood.against(best, others)
        violated = information < 1.0 - _ACCURACY
        if not violated.any():
            break
        cuts.append(cuts_for(others[violated], alternatives[violated]))
    else:
        raise RuntimeError(
            f"the bound was not found in {_MOST_CUTS} rounds, the information is still only "
            f"{information.min():.6g} of what is needed; a smaller ratio of the largest to the "
            f"smallest gap is easier: leave out arms that are far from the best."
        )
    spent = pulls * costs
    coefficient = float(spent.sum()) * unit
    needed = math.log(1.0 / (2.4 * delta))
    return TightBound(max(needed, 0.0) * coefficient, coefficient, spent / spent.sum())


def _cuts(
    means: FloatArray,
    bounds: FloatArray,
    variances: FloatArray,
    best: int,
    others: IntArray,
    etas: FloatArray,
) -> Any:
    """What every pull tells against an alternative eta of each other arm, sparse (n, K M)."""
    n, n_fidelities = len(others), len(bounds)
    arms = np.stack((np.full(n, best), others), axis=1)
    distances = np.maximum(np.abs(means[arms] - etas[:, None, None]) - bounds, 0.0)
    values = distances**2 / (2.0 * variances)
    columns = arms[:, :, None] * n_fidelities + np.arange(n_fidelities)
    starts = 2 * n_fidelities * np.arange(n + 1)
    return csr_array((values.ravel(), columns.ravel(), starts), shape=(n, means.size))


def _problem_and_means(
    problem: Problem, means: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Means (K, M), costs, bias bounds and variances (M,) of a problem that declares them."""
    costs, bias, sigmas = declared(problem)
    if bias.kind != "max":
        raise ValueError(
            f"bias={bias!r}: the bound is for bounds on every arm's own bias; declare "
            f"Bias.max(...), or use cost_lower_bound."
        )
    if sigmas.min() == 0.0:
        raise ValueError(
            f"noise={problem.noise!r}: the bound needs a positive sigma at every fidelity; without "
            f"noise a few pulls are enough."
        )
    table = np.ascontiguousarray(checked_means(problem, means).T)
    return table, costs, np.array(bias.bounds), np.square(sigmas)


def _within_bounds(table: FloatArray, bounds: FloatArray, best: int) -> FloatArray:
    """Means (K, M) moved within the bias bounds, or raise where that could change the answer."""
    target = table[:, -1:]
    excess = np.abs(table - target) - bounds
    gaps = target[best] - target
    breaking = excess > _ROUNDING * (bounds + np.abs(table) + np.abs(target))
    refused = np.argwhere(breaking & (excess >= gaps))
    if refused.size:
        arm, m = refused[0]
        raise ValueError(
            f"means breaks the bias bound of arm {arm} at fidelity {m}: {table[arm, m]:.6g} there "
            f"and {table[arm, -1]:.6g} at the target differ by more than {bounds[m]:.6g}; declare "
            f"a bound of at least {bounds[m] + excess[arm, m]:.6g}, or correct the means."
        )
    return np.clip(table, target - bounds, target + bounds)
