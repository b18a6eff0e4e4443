"""Regret of MF-UCB over that of UCB, and how elimination's regret grows with the budget."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.parallel import mapped
from benchmarks.simulation import mf_elimination, mf_ucb
from benchmarks.simulation.instances import BernoulliInstance, GaussianInstance, Instance
from mfhpo import Bounded
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.regret import MFUCB, MFElimination


@dataclass(frozen=True)
class Case:
    """One instance of Appendix C, and what an independent implementation found on it.

    `reference` is the mean of 3 to 5 runs of the regret of MF-UCB over that of UCB, by capital.
    """

    targets: Callable[[np.random.Generator], FloatArray]
    zeta: tuple[float, ...]
    costs: tuple[float, ...]
    sd: float | None
    capitals: tuple[float, float]
    reference: dict[float, float]


def _grid(low: float, high: float, count: int) -> Callable[[np.random.Generator], FloatArray]:
    return lambda _: np.linspace(low, high, count)


INSTANCES = {
    1: Case(
        _grid(1.0 / 501.0, 500.0 / 501.0, 500),
        (0.2, 0.1, 0.0),
        (1.0, 10.0, 1000.0),
        0.2,
        (1e5, 1e8),
        {5e5: 0.064, 1e6: 0.081, 1e7: 0.265, 1e8: 0.623},
    ),
    2: Case(
        lambda rng: rng.standard_normal(500),
        (1.0, 0.5, 0.2, 0.0),
        (1.0, 5.0, 20.0, 50.0),
        1.0,
        (1e4, 1e7),
        {1e5: 0.19, 1e6: 0.18, 1e7: 0.19},
    ),
    3: Case(
        _grid(0.1, 0.9, 200),
        (0.2, 0.0),
        (1.0, 10.0),
        None,
        (1e4, 5e6),
        {1e4: 0.56, 5e4: 0.45, 2e5: 0.73, 5e5: 0.99, 1e6: 1.08, 5e6: 1.07},
    ),
    4: Case(
        _grid(0.1, 0.9, 1000),
        (0.5, 0.2, 0.1, 0.05, 0.0),
        (1.0, 3.0, 10.0, 30.0, 100.0),
        None,
        (1e5, 1e7),
        {1e5: 0.62, 1e6: 0.44, 1e7: 0.39},
    ),
}
NUMBERS_OF_ARMS = (2, 10, 50)
_ELIMINATION_COSTS = (1.0, 4.0)
FIXED_GAP = 0.2
"""How much better the best arm is where the gap does not change with the budget."""


@dataclass(frozen=True)
class Ratio:
    """Regrets (Eq. 1) at one capital: means over the runs, and the mean and spread of the ratio."""

    instance: int
    capital: float
    runs: int
    mf_ucb: float
    ucb: float
    ratio: float
    sd: float
    reference: float | None


def draw_instance(number: int, rng: np.random.Generator) -> Instance:
    """Draw one of the instances of Appendix C; see `benchmarks.papers.mf_ucb`."""
    case = INSTANCES[number]
    targets = case.targets(rng)
    lower = [targets + zeta * rng.uniform(-1.0, 1.0, len(targets)) for zeta in case.zeta[:-1]]
    if case.sd is None:
        means = np.clip([*lower, targets], 0.0, 1.0)
        return BernoulliInstance(means, case.costs, xi=case.zeta)
    best = int(np.argmax(targets))
    for means, zeta in zip(lower, case.zeta, strict=False):
        means[best] = targets[best] - zeta
    return GaussianInstance([*lower, targets], case.costs, xi=case.zeta, variance=case.sd**2)


def target_alone(instance: Instance) -> Instance:
    """The instance without its cheap fidelities: MF-UCB is UCB there."""
    kind = BernoulliInstance if isinstance(instance, BernoulliInstance) else GaussianInstance
    return kind(instance.means[-1:], instance.costs[-1:], variance=instance.variance)


def regret_per_cost(policy: MFUCB | MFElimination, instance: Instance, capital: float) -> float:
    """Regret (Kandasamy et al. 2016, Eq. 1): a play earns its arm's target mean times its cost.

    Capital that is left over earns nothing. The oracle plays the best arm, at any fidelity.
    """
    targets = instance.means[-1]
    return float(capital * targets.max() - (policy.counts.astype(float) @ instance.costs) @ targets)


def regret_per_play(policy: MFUCB | MFElimination, instance: Instance, capital: float) -> float:
    """Regret (Wang et al. 2023, Eq. 9): a play earns its arm's target mean, whatever it cost.

    The oracle plays the best arm at the cheapest fidelity.
    """
    targets, plays = instance.means[-1], policy.counts.astype(float).sum(axis=1)
    return float(capital / instance.costs[0] * targets.max() - plays @ targets)


def _capitals(number: int, most: float) -> list[float]:
    """1, 2 and 5 times the powers of ten, in the range of the instance."""
    low, high = INSTANCES[number].capitals
    marks = [digit * 10.0**power for power in range(3, 10) for digit in (1, 2, 5)]
    return [mark for mark in marks if low <= mark <= min(high, most)]


def _regrets(task: tuple[int, int, int, tuple[float, ...]]) -> FloatArray:
    """Regrets of MF-UCB and of UCB in one run, shape (2, capitals)."""
    number, seed, run, capitals = task
    instance = draw_instance(number, np.random.default_rng([seed, number, run]))
    rows = []
    for place, each in enumerate((instance, target_alone(instance))):
        policy = MFUCB(each.problem())
        rng = np.random.default_rng([seed, number, run, place])
        row = []
        for capital in capitals:
            mf_ucb.play(policy, partial(each.running_sums, rng), capital)
            row.append(regret_per_cost(policy, each, capital))
        rows.append(row)
    return np.array(rows)


def ratios(
    numbers: Sequence[int], runs: int, most: float, *, seed: int = 0, workers: int = 1
) -> Iterator[Ratio]:
    """Regret of MF-UCB over that of UCB, by instance and capital."""
    for number in numbers:
        capitals = tuple(_capitals(number, most))
        tasks = [(number, seed, run, capitals) for run in range(runs)]
        regrets = np.stack(list(mapped(_regrets, tasks, workers, _chunk(tasks, workers))))
        for place, capital in enumerate(capitals):
            ours, theirs = regrets[:, 0, place], regrets[:, 1, place]
            yield Ratio(
                instance=number,
                capital=capital,
                runs=runs,
                mf_ucb=float(ours.mean()),
                ucb=float(theirs.mean()),
                ratio=float((ours / theirs).mean()),
                sd=float((ours / theirs).std(ddof=1)),
                reference=INSTANCES[number].reference.get(capital),
            )


@dataclass(frozen=True)
class Exponent:
    """Regrets (Eq. 9) of Algorithm 3 with K arms, by budget.

    `worst` is the largest mean regret over the gaps, `exponent` the slope of its logarithm over
    that of the budget, `scaled` is worst / (K^(1/3) budget^(2/3)). `fixed` is the mean regret where
    the gap is .2, and `per_decade` what ten times the budget adds to it.
    """

    n_arms: int
    seeds: int
    budgets: list[float]
    worst: list[float]
    exponent: float
    scaled: list[float]
    fixed: list[float]
    per_decade: float


def _elimination_regret(task: tuple[int, int, float, float, int]) -> float:
    """Mean regret with one arm at .5 + gap and the others at .5."""
    seed, n_arms, budget, gap, seeds = task
    means = np.full((len(_ELIMINATION_COSTS), n_arms), 0.5)
    means[:, 0] += gap
    instance = BernoulliInstance(means, _ELIMINATION_COSTS)
    problem = instance.problem(kind=None, noise=Bounded(0.0, 1.0))
    rng = np.random.default_rng([seed, n_arms, round(math.log10(budget)), round(1e6 * gap)])
    total = 0.0
    for _ in range(seeds):
        policy = MFElimination(problem, budget=budget)
        mf_elimination.play(policy, partial(instance.running_sums, rng), budget)
        total += regret_per_play(policy, instance, budget)
    return total / seeds


def exponents(
    numbers_of_arms: Sequence[int],
    budgets: Sequence[float],
    n_gaps: int,
    seeds: int,
    *,
    seed: int = 0,
    workers: int = 1,
) -> Iterator[Exponent]:
    """How Algorithm 3's regret grows with the budget, by number of arms."""
    gaps = [*np.geomspace(0.001, 0.5, n_gaps).tolist(), FIXED_GAP]
    for n_arms in numbers_of_arms:
        tasks = [(seed, n_arms, budget, gap, seeds) for budget, gap in product(budgets, gaps)]
        regrets = np.array(
            list(mapped(_elimination_regret, tasks, workers, _chunk(tasks, workers)))
        )
        regrets = regrets.reshape(len(budgets), len(gaps))
        worst, fixed = regrets[:, :-1].max(axis=1), regrets[:, -1]
        logs = np.log10(budgets)
        yield Exponent(
            n_arms=n_arms,
            seeds=seeds,
            budgets=list(budgets),
            worst=worst.tolist(),
            exponent=float(np.polyfit(logs, np.log10(worst), 1)[0]),
            scaled=(worst / (n_arms ** (1 / 3) * np.array(budgets) ** (2 / 3))).tolist(),
            fixed=fixed.tolist(),
            per_decade=float(np.polyfit(logs, fixed, 1)[0]),
        )


def _chunk(tasks: Sequence[Any], workers: int) -> int:
    """Tasks to hand over at once: most are too short to be handed over alone."""
    return max(1, len(tasks) // (8 * workers))
