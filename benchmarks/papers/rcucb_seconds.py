"""Time limits for trainings whose seconds have heavy tails: what is earned in the same seconds.

    python -m benchmarks.papers.rcucb_seconds --output results.json

An arm is pulled by one training, which earns its accuracy (0 to 1) unless it is stopped at a limit.
All methods have the same seconds, those of stopped trainings included. The gain is that of Bengs
and Hüllermeier (2023), accuracy - PRICE x seconds, and a stopped training pays for its seconds too.

"tables": an arm is a model on a data set, of three tables of `benchmarks.hpo`. A pull trains a
random configuration of its grid; seconds are recorded CPU time, the mean over seeds, without a
heavy tail.
"xgboost" and "lcbench": an arm is one of 32 random configurations, and a pull trains it on a random
OpenML data set. YAHPO's surrogates predict accuracy and seconds; `make data` fetches them. Time is
in units of the third quartile of all durations.

RCUCB has ten limits between the quartiles, z-RCUCB starts at the third one. RCUCB with a single
limit chooses arms only. UCB has no limit but the longest duration. Successive halving divides its
seconds equally among its rungs and the last arm, and those of a rung among the arms that are left;
it keeps the better half by gain.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.problems.families import FAMILIES, family_problem
from benchmarks.hpo.problems.surrogate import check_surrogates, scenario_folder, surrogate
from benchmarks.hpo.problems.table import Table, table_file
from benchmarks.papers.rcucb_baselines import LimitUCB
from benchmarks.papers.rcucb_cases import play as play_rounds
from benchmarks.papers.rcucb_instances import ArmStreams, ReplayedCensoredInstance
from benchmarks.papers.rcucb_runs import one_seed, standard_error
from benchmarks.provenance import provenance
from benchmarks.report import as_json, numba_if_installed, progress, write
from mfhpo.censored import RCUCB, Linear, ZoomingRCUCB
from mfhpo.knowledge.arrays import FloatArray

PRICE = 0.5
N_ARMS = 32
N_LIMITS = 10
_TABLES = ("gradient_boosting breast_cancer", "logistic_regression digits", "svm digits")
_FIRST_ROUNDS = 500  # after so many, and twice as many each time, the seconds are counted
_CHARGES: dict[str, Any] = {"cost": Linear(PRICE), "penalty": Linear(PRICE)}
Instance = ReplayedCensoredInstance


def tables() -> Instance:
    """The recorded trainings at the target level, an arm for each table."""
    found = [Table.load(table_file(name)) for name in _TABLES]
    rewards = [table.values[:, -1].ravel() / 100.0 for table in found]
    seconds = [np.repeat(table.seconds[:, -1], table.values.shape[2]) for table in found]
    size = max(map(len, rewards))
    of_one_size = [np.array([np.resize(row, size) for row in each]) for each in (rewards, seconds)]
    return _scaled(*of_one_size)


def surrogates(family: str) -> Instance:
    """Random configurations, each trained on all data sets of a family."""
    codes = surrogate(scenario_folder(family, None)).encoding[FAMILIES[family].task]
    problems = [family_problem(family, each) for each in sorted(codes) if each != "#na#"]
    rng = np.random.default_rng(0)
    drawn = [problems[0].space.draw(rng) for _ in range(N_ARMS)]
    values, seconds = np.array([one.trainings(drawn) for one in problems]).transpose(1, 2, 0)
    return _scaled(np.clip(values / 100.0, 0.0, 1.0), np.maximum(seconds, 1e-3))


def _scaled(rewards: FloatArray, seconds: FloatArray) -> Instance:
    return Instance(rewards, seconds / np.quantile(seconds, 0.75))


_FAMILIES = {"xgboost": "rbv2_xgboost", "lcbench": "lcbench"}
CASES: dict[str, Callable[[], Instance]] = {
    "tables": tables,
    **{case: partial(surrogates, family) for case, family in _FAMILIES.items()},
}
instance_of = cache(lambda name: CASES[name]())


def _at(one: Instance, *shares: float) -> FloatArray:
    return np.asarray(np.quantile(one.consumptions, shares))


def ten_limits(one: Instance) -> FloatArray:
    """Equidistant between the quartiles of the durations, as in the paper's Section 5.2."""
    first, third = _at(one, 0.25, 0.75)
    return np.linspace(first, third, N_LIMITS)


def _fixed(share: float) -> Callable[[Instance], Any]:
    return lambda one: RCUCB(one.n_arms, _at(one, share), **_CHARGES)


HALVING = "successive halving, no limit"
METHODS: dict[str, Callable[[Instance], Any]] = {
    "RCUCB": lambda one: RCUCB(one.n_arms, ten_limits(one), **_CHARGES),
    "z-RCUCB": lambda one: ZoomingRCUCB(one.n_arms, float(_at(one, 0.75)[0]), **_CHARGES),
    "fixed: median": _fixed(0.5),
    "fixed: third quartile": _fixed(0.75),
    "fixed: 95 %": _fixed(0.95),
    "UCB, no limit": lambda one: LimitUCB(one.n_arms, _at(one, 1.0), **_CHARGES),
}


def play(method: str, one: Instance, seed: int, budget: float) -> FloatArray:
    """Arm, reward, seconds paid and whether it was stopped of each round, shape (rounds, 4)."""
    streams = ArmStreams(one, seed)
    if method == HALVING:
        return _halving(one.n_arms, streams, budget)
    policy, spent = METHODS[method](one), np.zeros(0)
    while spent.sum() <= budget:
        play_rounds(policy, streams, max(_FIRST_ROUNDS, policy.pulls))
        arms, limits, rewards, seconds = policy.history.arrays()
        spent = np.minimum(seconds, limits)
    return np.stack([arms, np.nan_to_num(rewards), spent, np.isinf(seconds)], axis=1)


def _halving(n_arms: int, streams: ArmStreams, budget: float) -> FloatArray:
    left, rungs = np.arange(n_arms), math.ceil(math.log2(n_arms))
    rounds: list[tuple[float, float, float, float]] = []
    total = 0.0
    for rung in range(rungs + 1):
        gains, begun = [], total
        for place, arm in enumerate(left.tolist(), 1):
            # What a long training took too much is missing for those that come after it.
            share = begun + (budget * (rung + 1) / (rungs + 1) - begun) * place / len(left)
            own: list[float] = []
            while total < share or not own:
                [reward], [seconds] = streams(arm, 1)
                rounds.append((arm, reward, seconds, 0.0))
                own.append(reward - PRICE * seconds)
                total += seconds
            gains.append(float(np.mean(own)))
        left = left[np.argsort(gains)[::-1][: (len(left) + 1) // 2]]
    return np.array(rounds)


def best_rate(one: Instance) -> float:
    """The most accuracy per second that an arm earns with one of the ten limits, or without."""
    free, limits = Linear(0.0), np.append(ten_limits(one), one.consumptions.max())
    paid = [np.minimum(one.consumptions, limit).mean(axis=1) for limit in limits]
    return float((one.gains(limits, free, free) / np.stack(paid, axis=1)).max())


@dataclass(frozen=True)
class Row:
    """What one method did: means over the repetitions, and two standard errors.

    `earned` is all accuracy, as a share of what the best pair of arm and limit earns, `gain` that
    of a round, and `worse` how much less accurate the arm pulled most is than the best one.
    """

    case: str
    method: str
    repetitions: int
    earned: float
    gain: float
    rounds: float
    stopped: float
    worse: float
    earned_se: float
    gain_se: float


def rows(cases: Sequence[str], repetitions: int, units: float) -> Iterator[Row]:
    """Run everything; each row as it is complete. A budget is so many units of time per arm."""
    for case in cases:
        one = instance_of(case)
        budget, means = units * one.n_arms, one.rewards.mean(axis=1)
        most_earned = budget * best_rate(one)
        for method in (*METHODS, HALVING):
            runs = []
            for repetition in range(repetitions):
                played = play(method, one, one_seed([repetition]), budget)
                arms, rewards, seconds, stopped = played[np.cumsum(played[:, 2]) <= budget].T
                worse = means.max() - means[np.bincount(arms.astype(int)).argmax()]
                gain = (rewards - PRICE * seconds).mean()
                earned = rewards.sum() / most_earned
                runs.append((earned, gain, len(arms), stopped.mean(), worse))
            found = np.array(runs)
            errors = [standard_error(found[:, k]) for k in (0, 1)]
            figures = np.round([*found.mean(axis=0), *errors], 4)
            yield Row(case, method, repetitions, *figures.tolist())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.rcucb_seconds")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--repetitions", type=int, default=20, help="default: 20")
    parser.add_argument("--units", type=float, default=50.0, help="of time per arm (default: 50)")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    options = parser.parse_args(arguments)
    if options.repetitions < 2 or not options.units > 0.0:
        parser.error("--repetitions must be at least 2, and --units positive.")
    families = [_FAMILIES[case] for case in options.cases if case in _FAMILIES]
    check_surrogates(parser, None, families)
    began, found = time.perf_counter(), []
    for row in rows(options.cases, options.repetitions, options.units):
        found.append(asdict(row))
        print(", ".join(f"{name} {value}" for name, value in found[-1].items()), flush=True)
    seconds = round(time.perf_counter() - began, 1)
    progress(f"all: {seconds:.0f} s")
    if options.output:
        command = ["--cases", *options.cases, f"--repetitions={options.repetitions}"]
        command.append(f"--units={options.units:g}")
        tails = {case: _at(instance_of(case), 0.5, 0.95, 1.0).tolist() for case in options.cases}
        report = provenance("benchmarks.papers.rcucb_seconds", command, *numba_if_installed())
        report |= {"seconds": seconds, "median_95_longest": tails, "rows": found}
        write(options.output, as_json(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
