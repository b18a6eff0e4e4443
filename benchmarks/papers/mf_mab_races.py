"""Races of LUCB's variants on the published instances, what they cost, and at least must cost."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.parallel import mapped
from benchmarks.simulation.blocks import run_lucb
from benchmarks.simulation.instances import BernoulliInstance, Instance
from benchmarks.simulation.lucb import PublishedLUCB
from mfhpo.identification.lucb import MFLUCB

Row = dict[str, Any]

ALGORITHMS = ("A", "B", "C", "AB", "top")


@dataclass(frozen=True)
class Settings:
    """What the command was asked for.

    `runs` is the number of races behind a figure, where races are short; `quick` asks for fewer
    figures.
    """

    runs: int
    seed: int = 0
    workers: int = 1
    algorithms: Sequence[str] = ALGORITHMS
    quick: bool = False


def table_3(case: int) -> BernoulliInstance:
    """Appendix C: five arms, five fidelities; the target costs 5, 10, 15 or 20."""
    levels, arms = np.arange(1, 6)[:, None], np.arange(1, 6)
    means = 0.1 * (arms + 4) + 0.01 * (levels - 5)
    return BernoulliInstance(
        means, [1.0, 2.0, 3.0, 4.0, 5.0 * case], xi=[0.04, 0.03, 0.02, 0.01, 0]
    )


def figure_1(name: str) -> BernoulliInstance:
    """Tables 1 and 2: "a", of three fidelities, and "b", of five.

    In b, the means of arms 1 and 3 at the fourth fidelity are outside the bound that is printed.
    """
    if name == "a":
        return BernoulliInstance(
            [
                [0.70, 0.75, 0.50, 0.50, 0.30],
                [0.80, 0.775, 0.60, 0.55, 0.45],
                [0.90, 0.80, 0.70, 0.60, 0.50],
            ],
            [1.0, 1.1, 1.2],
            xi=[0.30, 0.15, 0.0],
        )
    return BernoulliInstance(
        [
            [0.83, 0.82, 0.76, 0.82, 0.70],
            [0.84, 0.83, 0.80, 0.80, 0.72],
            [0.85, 0.85, 0.80, 0.82, 0.74],
            [0.85, 0.86, 0.80, 0.80, 0.76],
            [0.90, 0.88, 0.86, 0.84, 0.80],
        ],
        [1.0, 1.1, 1.2, 1.3, 1.4],
        xi=[0.10, 0.08, 0.06, 0.04, 0.0],
    )


INSTANCES: dict[str, Callable[[], Instance]] = {
    **{f"table 3, case {case}": partial(table_3, case) for case in (1, 2, 3, 4)},
    "figure 1a": partial(figure_1, "a"),
    "figure 1b": partial(figure_1, "b"),
}


def lower_bound(instance: Instance, delta: float) -> float:
    """What no method can expect to pay less than, for Bernoulli values (Theorem 3.1).

        log(1 / (2.4 delta)) (min_m lambda_m / KL(mu_1m, mu_2M + xi_m)
                              + sum over k >= 2 of min_m lambda_m / KL(mu_km, mu_1M - xi_m))

    The minima are over the fidelities whose gap (Eq. 1) is positive.
    """
    order = np.argsort(-instance.means[-1])
    best, second = instance.means[-1, order[:2]]
    total = 0.0
    for rank, arm in enumerate(order):
        found = [math.inf]
        for mean, cost, xi in zip(instance.means[:, arm], instance.costs, instance.xi, strict=True):
            other = second + xi if rank == 0 else best - xi
            gap = mean - other if rank == 0 else other - mean
            if gap > 0.0:
                found.append(float(cost) / _divergence(float(mean), float(other)))
        total += min(found)
    return math.log(1.0 / (2.4 * delta)) * total


def _divergence(p: float, q: float) -> float:
    """Kullback-Leibler divergence of two Bernoulli distributions."""
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))


@dataclass(frozen=True)
class Races:
    """Races of one algorithm on one instance, all alike but for their draws."""

    instance: str
    algorithm: str
    reading: str
    delta: float
    runs: int
    options: dict[str, Any]
    published: float | None = None
    chunk: int = 5


def _run(task: tuple[Races, int, int, int]) -> list[tuple[float, bool, bool, int, float]]:
    """Cost, whether certified and wrong, pulls and CPU seconds of some of the races."""
    races, start, stop, seed = task
    instance = INSTANCES[races.instance]()
    number = [list(INSTANCES).index(races.instance), ALGORITHMS.index(races.algorithm)]
    # The compiler's time is not that of a race.
    run_lucb(_policy(races, instance), instance, np.random.default_rng(0), max_pulls=100)
    found = []
    for run in range(start, stop):
        rng = np.random.default_rng([seed, *number, run])
        started = time.process_time()
        result = run_lucb(_policy(races, instance), instance, rng)
        found.append(
            (
                result.cost,
                result.certified,
                result.arm != instance.best_arm,
                result.pulls,
                time.process_time() - started,
            )
        )
    return found


def _policy(races: Races, instance: Instance) -> MFLUCB | PublishedLUCB:
    explore: Any = races.algorithm
    policy = PublishedLUCB if "schedule" in races.options else MFLUCB
    return policy(instance.problem(), explore=explore, delta=races.delta, **races.options)


def rows_of(all_races: Sequence[Races], settings: Settings) -> Iterator[Row]:
    """Run the races; the row of each kind as it is complete."""
    tasks = [
        (races, start, min(start + races.chunk, races.runs), settings.seed)
        for races in all_races
        for start in range(0, races.runs, races.chunk)
    ]
    results = mapped(_run, tasks, settings.workers)
    for races in all_races:
        found = [next(results) for _ in range(0, races.runs, races.chunk)]
        figures = [figure for part in found for figure in part]
        costs = np.array([figure[0] for figure in figures])
        spread = float(costs.std(ddof=1)) if len(costs) > 1 else math.nan
        yield {
            "instance": races.instance,
            "algorithm": races.algorithm,
            "reading": races.reading,
            "delta": races.delta,
            "runs": races.runs,
            "cost": round(float(costs.mean()), 1),
            "ci95": round(1.96 * spread / math.sqrt(len(costs)), 1),
            "published": races.published,
            "errors": sum(figure[2] for figure in figures),
            "uncertified": sum(not figure[1] for figure in figures),
            "pulls": round(float(np.mean([figure[3] for figure in figures])), 1),
            "cpu_s": round(median(figure[4] for figure in figures), 4),
            "lower_bound": round(lower_bound(INSTANCES[races.instance](), races.delta), 1),
        }
