"""What a certificate costs, with the levels below the target and without them.

    python -m benchmarks.certificate_cost --data FOLDER --output certificate_cost.json

Each race is for one of a pool of configurations within epsilon of the best, with delta = .05 and
normal noise, by the policy that `recommend_policy` chooses. Costs are in full evaluations. FOLDER
has YAHPO Gym's surrogates in yahpo, and the papers' instances in iise.

    synthetic      24 arms, target means uniform on [.6, .9], sigma .02, epsilon .01; three levels
                   at 1/16, 1/4 and 1 of the cost, biased by -.10 +- .02 and -.04 +- .01
    lcbench, rbv2  24 or 64 random configurations of each development task of YAHPO Gym's
                   surrogates, the accuracy in percent, sigma and epsilon .5
    bai_5x2, bai_4x5
                   the MF-GRAD paper's instances (NeurIPS 2024), epsilon 0

    nothing        nothing is declared
    sigma          the noise's scale is declared
    bias           and bounds on the levels' bias: the published ones, or the smallest order bounds
                   that hold for the pool

each with all levels, and with the target level alone. Both see the same noise: the n-th value of an
arm at a level is the same. Of the ratio of their medians, 95 % of the bootstrap's lie in the
interval.
"""

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.certainty_pools import draw_pool
from benchmarks.hpo.problems import DEVELOPMENT_TASKS
from benchmarks.hpo.problems.surrogate import check_surrogates
from benchmarks.hpo.tasks import families_of
from benchmarks.papers.iise import load_instance
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, numba_if_installed, progress, write
from mfhpo import Bias, Observation, Problem, SubGaussian, recommend_policy
from mfhpo.knowledge.arrays import FloatArray

DECLARED = ("nothing", "sigma", "bias")
_PAPERS = ("bai_5x2", "bai_4x5")
_MOST = 20_000
_RESAMPLES = 2_000


@dataclass(frozen=True)
class Instance:
    """Means of shape (M, K), costs in full evaluations of shape (M,), noise and tolerance."""

    means: FloatArray
    costs: FloatArray
    sigma: float
    epsilon: float
    bias: Bias | None = None  # None: the smallest order bounds


class SameNoise:
    """Noise that is the same for the n-th value of an arm at a level, whoever asks for it."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._of: dict[tuple[int, int], np.random.Generator] = {}

    def draw(self, arm: int, level: int) -> float:
        """The next value, with standard deviation 1."""
        if (arm, level) not in self._of:
            self._of[arm, level] = np.random.default_rng([self._seed, arm, level])
        return float(self._of[arm, level].standard_normal())


def synthetic(seed: int) -> Instance:
    """The instance of 24 arms."""
    rng = np.random.default_rng(seed)
    target = rng.uniform(0.6, 0.9, 24)
    bias = np.stack([rng.normal(-0.10, 0.02, 24), rng.normal(-0.04, 0.01, 24), np.zeros(24)])
    return Instance(target + bias, np.array([1.0, 4.0, 16.0]) / 16.0, 0.02, 0.01)


def race(instance: Instance, declared: str, seed: int, at_target: bool) -> tuple[float, bool]:
    """The cost of one race, and whether its certificate is wrong."""
    noise = SameNoise(seed)
    lowest = len(instance.costs) - 1 if at_target else 0
    means, costs = instance.means[lowest:], instance.costs[lowest:]
    known: dict[str, Any] = {} if declared == "nothing" else {"noise": SubGaussian(instance.sigma)}
    if at_target:
        known["bias"] = Bias.order(0.0)
    elif declared == "bias":
        smallest = np.ptp(means - means[-1], axis=1)
        known["bias"] = instance.bias or Bias.order(*smallest.tolist())
    problem = Problem(means.shape[1], costs=tuple(costs.tolist()), **known)
    policy = recommend_policy(problem).make(
        problem, delta=0.05, epsilon=instance.epsilon, seed=seed
    )
    while not policy.finished and policy.recommend().pulls < _MOST:
        for pull in policy.ask(1):
            deviation = instance.sigma * noise.draw(pull.arm, lowest + pull.fidelity)
            value = float(means[pull.fidelity, pull.arm]) + deviation
            policy.tell(pull, Observation(value))
    answer = policy.recommend()
    lost = instance.means[-1].max() - instance.means[-1, answer.arm or 0]
    return answer.cost, bool(answer.certified and lost > instance.epsilon)


@dataclass(frozen=True)
class Job:
    """Races of one instance, with all that is declared."""

    family: str
    instance: str
    arms: int
    seed: int
    data: Path


def instance_of(job: Job) -> Instance:
    """What is raced for."""
    if job.family == "synthetic":
        return synthetic(job.seed)
    if job.family in _PAPERS:
        published = load_instance(job.data / "iise" / f"{job.family}.npz")
        costs, bias = published.costs / published.costs[-1], Bias.max(*published.xi.tolist())
        return Instance(published.means, costs, math.sqrt(published.variance), 0.0, bias)
    pool = draw_pool(job.instance, None, job.arms, job.seed, job.data / "yahpo")
    return Instance(pool.means, pool.costs, 0.5, 0.5)


def figures(job: Job) -> list[dict[str, Any]]:
    """Costs and wrong certificates of one instance."""
    instance = instance_of(job)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for declared in DECLARED:
            costs, wrong = zip(
                race(instance, declared, job.seed, at_target=False),
                race(instance, declared, job.seed, at_target=True),
                strict=True,
            )
            rows.append(
                {
                    "instance": f"{job.family}, {job.arms} arms",
                    "of": job.instance,
                    "declared": declared,
                    "costs": costs,
                    "wrong": wrong,
                }
            )
    return rows


def table(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians of each instance, and the share of certificates that are wrong."""
    found, rng = [], np.random.default_rng(0)
    keys = dict.fromkeys((row["instance"], row["declared"]) for row in rows)
    for instance, declared in keys:
        same = [r for r in rows if (r["instance"], r["declared"]) == (instance, declared)]
        costs = np.array([row["costs"] for row in same])
        medians = np.median(costs, axis=0)
        drawn = rng.integers(len(costs), size=(_RESAMPLES, len(costs)))
        resampled = np.median(costs[drawn], axis=1)
        interval = np.quantile(resampled[:, 0] / resampled[:, 1], [0.025, 0.975])
        found.append(
            {
                "instance": instance,
                "declared": declared,
                "races": len(same),
                "all levels": round(float(medians[0]), 1),
                "target alone": round(float(medians[1]), 1),
                "ratio": round(float(medians[0] / medians[1]), 3),
                "interval": [round(float(end), 3) for end in interval],
                "ratio of each race": round(float(np.median(costs[:, 0] / costs[:, 1])), 3),
                "wrong": [int(sum(row["wrong"][way] for row in same)) for way in (0, 1)],
            }
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="none: synthetic instances alone")
    parser.add_argument(
        "--seeds", type=int, default=400, help="races of the instances (default: 400)"
    )
    parser.add_argument("--pools", type=int, default=30, help="pools of each task (default: 30)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON")
    options = parser.parse_args(arguments)
    data = options.data or Path()
    if options.data is not None:
        check_surrogates(parser, data / "yahpo", families_of(DEVELOPMENT_TASKS))
    jobs = [Job("synthetic", "", 24, seed, data) for seed in range(options.seeds)]
    if options.data is not None:
        jobs += [
            Job(name, "", load_instance(data / "iise" / f"{name}.npz").means.shape[1], seed, data)
            for name in _PAPERS
            for seed in range(options.seeds)
        ]
        jobs += [
            Job(task.split()[0], task, arms, seed, data)
            for arms in (24, 64)
            for task in DEVELOPMENT_TASKS
            for seed in range(options.pools)
        ]
    rows: list[dict[str, Any]] = []
    for number, found in enumerate(mapped(figures, jobs, options.workers)):
        rows += found
        progress(f"[{number + 1}/{len(jobs)}] {jobs[number].family} {jobs[number].instance}")
    lines = table(rows)
    for line in lines:
        print(line)
    if options.output:
        command = [f"--seeds {options.seeds}", f"--pools {options.pools}"]
        report = provenance("benchmarks.certificate_cost", command, *numba_if_installed())
        write(options.output, as_json({**report, "unit": "full evaluations", "table": lines}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
