"""When studies are stopped, what that saves and what it loses.

    python -m benchmarks.settled --tasks judged --data DATA/yahpo --output results.json

Studies of 250 trials at the target level on surrogates with normal noise, by samplers of Optuna and
by our search. Each is cut by several rules, of which the first few are `StopWhenSettled`'s:

- its defaults; an epsilon of one and of two standard deviations of the noise, also with larger
  deltas;
- patience: no value in 30 trials that is better than the best before them by that epsilon;
- a fixed number of trials.

A study has lost something if the best of all its 250 trials is truly better than the one that was
handed over, by more than epsilon. What `StopWhenSettled` promises is held against the 50 trials
that came after the stop. Values are percents of accuracy.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import (
    BaseSampler,
    CmaEsSampler,
    NSGAIISampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)

from benchmarks.certify import Objective
from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.known import NoisyProblem
from benchmarks.hpo.tasks import judged_tasks
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write
from mfhpo.certification.settling import N_FIRST, N_IN_A_ROW, Settling
from mfhpo.knowledge.arrays import FloatArray
from mfhpo_optuna import SearchSampler
from mfhpo_optuna.study.trials.attributes import CERTIFICATE_KEY

N_TRIALS, AHEAD, PATIENCE = 250, 50, 30
FIXED = (100, 150, 200)
DELTAS = (0.2, 0.3)  # besides that of the defaults

SAMPLERS: dict[str, Callable[[int], BaseSampler]] = {
    "random": lambda seed: RandomSampler(seed=seed),
    "quasi-random": lambda seed: QMCSampler(scramble=True, seed=seed),
    "TPE": lambda seed: TPESampler(seed=seed),
    "TPE, univariate": lambda seed: TPESampler(multivariate=False, seed=seed),
    "NSGA-II": lambda seed: NSGAIISampler(seed=seed),
    "CMA-ES": lambda seed: CmaEsSampler(seed=seed),
    "mfhpo search": lambda seed: SearchSampler(budget=4 * N_TRIALS, seed=seed, progress=False),
}


@dataclass(frozen=True)
class Stop:
    """Where a rule has cut a study: after so many trials, with what it promised, and epsilon."""

    n: int
    epsilon: float
    chance: float | None = None


Rule = Callable[[FloatArray, float], Stop]
"""Given all values and the noise's standard deviation; a study that was not cut has all trials."""


def settled(values: FloatArray, sigma: float, epsilons: float | None, delta: float = 0.1) -> Stop:
    """Cut a study as `StopWhenSettled` does, if 50 trials are left to look at."""
    rule = Settling(None if epsilons is None else epsilons * sigma, AHEAD, delta)
    row = 0
    for n in range(N_FIRST, len(values) - AHEAD + 1):
        found = rule.outlook(values[:n])
        row = row + 1 if found.chance <= rule.delta else 0
        if row == N_IN_A_ROW:
            return Stop(n, found.epsilon, found.chance)
    return Stop(len(values), rule.outlook(values).epsilon)


def patience(values: FloatArray, sigma: float, epsilons: float) -> Stop:
    """Cut a study when nothing was better by epsilon for a number of trials."""
    best, since, epsilon = -np.inf, 0, epsilons * sigma
    for n, value in enumerate(values, 1):
        best, since = (value, 0) if value > best + epsilon else (best, since + 1)
        if since == PATIENCE:
            return Stop(n, epsilon)
    return Stop(len(values), epsilon)


def fixed(values: FloatArray, sigma: float, epsilons: float, n: int) -> Stop:
    """Cut every study after as many trials."""
    return Stop(min(n, len(values)), epsilons * sigma)


_BY_EPSILON: dict[str, Callable[..., Stop]] = {
    "settled": settled,
    **{f"settled, delta {delta:g}": partial(settled, delta=delta) for delta in DELTAS},
    f"patience of {PATIENCE}": patience,
    **{f"{n} trials": partial(fixed, n=n) for n in FIXED},
}

RULES: dict[str, Rule] = {
    "settled, defaults": partial(settled, epsilons=None),
    **{
        f"{name}, epsilon {epsilons:g} sigma": partial(rule, epsilons=epsilons)
        for epsilons in (1.0, 2.0)
        for name, rule in _BY_EPSILON.items()
    },
}


def one_study(run: tuple[str, str, int], data: Path | None) -> list[dict[str, Any]]:
    """Play a study, and return what each rule makes of it."""
    sampler, task, seed = run
    problem = problem_named(task, data)
    assert isinstance(problem, NoisyProblem)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        study_name=f"{task} {seed}", direction="maximize", sampler=SAMPLERS[sampler](seed)
    )
    study.optimize(Objective(problem, seed), n_trials=N_TRIALS)
    # Our search adds trials that say what the answer is so far.
    trials = [trial for trial in study.trials if CERTIFICATE_KEY not in trial.user_attrs]
    trials = trials[:N_TRIALS]
    values = np.array([trial.value for trial in trials])
    truths = problem.true_values([problem.space.active(trial.params) for trial in trials])
    return [
        {"sampler": sampler, "task": task, "seed": seed, "rule": name}
        | _judged(rule(values, problem.sigma), values, truths)
        for name, rule in RULES.items()
    ]


def _judged(stop: Stop, values: FloatArray, truths: FloatArray) -> dict[str, Any]:
    n, handed_over, best = stop.n, int(np.argmax(values[: stop.n])), int(np.argmax(values))
    after = values[n : n + AHEAD]
    return {
        "trials": n,
        "epsilon": stop.epsilon,
        "lost": bool(truths[best] > truths[handed_over] + stop.epsilon),
        "chance": stop.chance,
        "better": bool(len(after) and after.max() > values[handed_over] + stop.epsilon),
    }


def summary(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows for each rule, of all samplers and of each."""
    rows = []
    for rule in RULES:
        for sampler in (None, *SAMPLERS):
            mine = [
                record
                for record in records
                if record["rule"] == rule and sampler in (None, record["sampler"])
            ]
            told = [record for record in mine if record["chance"] is not None]
            if mine:
                rows.append(
                    {
                        "rule": rule,
                        "sampler": sampler,
                        "studies": len(mine),
                        "stopped": sum(record["trials"] < N_TRIALS for record in mine),
                        "saved": 1.0 - _mean(mine, "trials") / N_TRIALS,
                        "lost": _mean(mine, "lost"),
                        "promised": _mean(told, "chance") if told else None,
                        "came_true": _mean(told, "better") if told else None,
                    }
                )
    return rows


def _mean(records: Sequence[dict[str, Any]], name: str) -> float:
    return round(float(np.mean([record[name] for record in records])), 4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the studies and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.settled", description=__doc__)
    parser.add_argument("--tasks", choices=("development", "judged"), default="development")
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    judged = options.tasks == "judged"
    tasks = judged_tasks(options.data) if judged else DEVELOPMENT_TASKS
    runs = [
        (sampler, task, seed)
        for sampler in options.samplers
        for task in tasks
        for seed in range(options.seeds)
    ]
    began, records = time.monotonic(), []
    play = partial(one_study, data=options.data)
    for number, found in enumerate(mapped(play, runs, options.workers), 1):
        records += found
        if number % 50 == 0:
            progress(f"{number} of {len(runs)} studies")
    rows = summary(records)
    print("| rule | sampler | studies | stopped | saved | lost | promised | came true |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        told = ("-" if row[n] is None else f"{row[n]:.3f}" for n in ("promised", "came_true"))
        print(
            f"| {row['rule']} | {row['sampler'] or 'all'} | {row['studies']} | {row['stopped']} | "
            f"{row['saved']:.2f} | {row['lost']:.3f} | {' | '.join(told)} |"
        )
    if options.output is not None:
        asked = [f"--tasks={options.tasks}", f"--seeds={options.seeds}", "--data=$MFHPO_DATA/yahpo"]
        report = {
            **provenance("benchmarks.settled", asked, "optuna"),
            "trials": N_TRIALS,
            "tasks": list(tasks),
            "seconds": round(time.monotonic() - began, 1),
            "rows": rows,
        }
        write(options.output, as_json(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
