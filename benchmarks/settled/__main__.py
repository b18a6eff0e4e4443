"""When studies are stopped, what that saves and what it loses.

    python -m benchmarks.settled --tasks judged --data DATA/yahpo --output results.json

Studies of 250 trials at the target level on surrogates with normal noise, by samplers of Optuna, by
others, and by our search. Each is cut by several rules, for an epsilon of one and of two standard
deviations of the noise:

- `StopWhenSettled`, its defaults, and with larger deltas;
- patience: no value in 30 trials that is better than the best before them by epsilon;
- a fixed number of trials;
- Optuna's terminators, which Optuna 5 has deprecated: no better value in 30 trials, a bound on the
  regret below epsilon, the expected minimum model regret below epsilon;
- Ax's `ImprovementGlobalStoppingStrategy`, with its defaults.

Each rule has a free parameter. On development tasks a number of settings is looked at; the one that
saves most, of those that lose something in at most one study of ten, is held against others on the
tasks that judge.

A study has lost something if the best of all its 250 trials is truly better than the one that was
handed over, by more than epsilon. What `StopWhenSettled` promises is held against the 50 trials
that came after the stop. Values are percents of accuracy.

Samplers and rules whose packages are not installed are left out: `pip install -e ".[stopping]"`.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna

from benchmarks.certify import Objective
from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.known import NoisyProblem
from benchmarks.hpo.tasks import judged_tasks
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write
from benchmarks.settled.rules import (
    AHEAD,
    DEFAULTS,
    EPSILONS,
    FAMILIES,
    Played,
    Stop,
    settled,
)
from benchmarks.settled.samplers import SAMPLERS
from mfhpo.knowledge.arrays import FloatArray
from mfhpo_optuna.study.trials.attributes import CERTIFICATE_KEY

N_TRIALS = 250
SLOW_TASKS = 3  # of each kind, for a sampler that takes minutes for a study
MOST_LOST = 0.1  # of the studies, by a setting that may be chosen
PACKAGES = ("torch", "cmaes", "nevergrad")  # of samplers and rules; they may be absent


class Run(NamedTuple):
    """Which study is played."""

    sampler: str
    task: str
    seed: int


def runs(samplers: Sequence[str], tasks: Sequence[str], seeds: int) -> list[Run]:
    """Return the studies to play: of a slow sampler one for each of a few tasks."""
    kinds = [task.partition(" ")[0] for task in tasks]
    few = [task for i, task in enumerate(tasks) if kinds[:i].count(kinds[i]) < SLOW_TASKS]
    return [
        Run(sampler, task, seed)
        for sampler in samplers
        for task in (few if SAMPLERS[sampler].slow else tasks)
        for seed in range(1 if SAMPLERS[sampler].slow else seeds)
    ]


def one_study(run: Run, data: Path | None, judged: bool) -> list[dict[str, Any]]:
    """Play a study, and return what each rule makes of it."""
    study, truths = played(run, data)
    return [
        {**run._asdict(), "rule": name, **_judged(stop, study.values, truths)}
        for name, stop in _stops(study, run.seed, judged)
    ]


def played(run: Run, data: Path | None) -> tuple[Played, FloatArray]:
    """Play a study; return it with its true values."""
    problem = problem_named(run.task, data)
    assert isinstance(problem, NoisyProblem)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        study_name=f"{run.task} {run.seed}",
        direction="maximize",
        sampler=SAMPLERS[run.sampler].make(problem, N_TRIALS, run.seed),
    )
    study.optimize(Objective(problem, run.seed), n_trials=N_TRIALS)
    # Our search adds trials that say what the answer is so far.
    trials = [trial for trial in study.trials if CERTIFICATE_KEY not in trial.user_attrs]
    trials = trials[:N_TRIALS]
    values = np.array([trial.value for trial in trials])
    truths = problem.true_values([problem.space.active(trial.params) for trial in trials])
    return Played(values, problem.sigma, trials), truths


def _stops(study: Played, seed: int, judged: bool) -> Iterator[tuple[str, Stop]]:
    yield DEFAULTS, settled(study, None)
    for epsilons in EPSILONS:
        for family in FAMILIES.values():
            if family.is_there and (seed == 0 or not family.slow):
                for setting in family.settings(epsilons, judged):
                    yield family.full_name(setting, epsilons), family.rule(study, epsilons, setting)


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
    for rule in dict.fromkeys(record["rule"] for record in records):
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
                        "saved": round(1.0 - _mean(mine, "trials") / N_TRIALS, 4),
                        "lost": _mean(mine, "lost"),
                        "promised": _mean(told, "chance") if told else None,
                        "came_true": _mean(told, "better") if told else None,
                    }
                )
    return rows


def _mean(records: Sequence[dict[str, Any]], name: str) -> float:
    return round(float(np.mean([record[name] for record in records])), 4)


def chosen(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the setting of each rule that saves most, of those that lose little, by epsilon."""
    by_name = {row["rule"]: row for row in rows if row["sampler"] is None}
    found: dict[str, dict[str, float]] = {}
    for kind, family in FAMILIES.items():
        for epsilons in EPSILONS:
            fit = [
                (by_name[name]["saved"], setting)
                for setting in family.grid
                if (name := family.full_name(setting, epsilons)) in by_name
                and by_name[name]["lost"] <= MOST_LOST
            ]
            if fit:
                found.setdefault(kind, {})[f"{epsilons:g}"] = max(fit)[1]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the studies and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.settled", description=__doc__)
    parser.add_argument("--tasks", choices=("development", "judged"), default="development")
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    judged = options.tasks == "judged"
    left_out = [name for name, sampler in SAMPLERS.items() if not sampler.is_there]
    left_out += [f"the rule {name}" for name, rule in FAMILIES.items() if not rule.is_there]
    if left_out:
        progress(f"Left out for lack of a package (extra: stopping): {'; '.join(left_out)}")
    tasks = judged_tasks(options.data) if judged else DEVELOPMENT_TASKS
    usual = [name for name, one in SAMPLERS.items() if one.is_there and (judged or not one.slow)]
    to_play = runs(options.samplers or usual, tasks, options.seeds)
    began, records = time.monotonic(), []
    play = partial(one_study, data=options.data, judged=judged)
    for number, found in enumerate(mapped(play, to_play, options.workers), 1):
        records += found
        if number % 50 == 0:
            progress(f"{number} of {len(to_play)} studies")
    rows = summary(records)
    print("| rule | sampler | studies | stopped | saved | lost | promised | came true |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        told = ("-" if row[n] is None else f"{row[n]:.3f}" for n in ("promised", "came_true"))
        print(
            f"| {row['rule']} | {row['sampler'] or 'all'} | {row['studies']} | {row['stopped']} | "
            f"{row['saved']:.2f} | {row['lost']:.3f} | {' | '.join(told)} |"
        )
    settings = {kind: family.chosen for kind, family in FAMILIES.items() if family.chosen}
    if not judged:
        settings = chosen(rows)
        print(f"chosen by number of standard deviations: {settings}")
    if options.output is not None:
        asked = [f"--tasks={options.tasks}", f"--seeds={options.seeds}", "--data=$MFHPO_DATA/yahpo"]
        packages = [name for name in PACKAGES if find_spec(name)]
        report = {
            **provenance("benchmarks.settled", asked, "optuna", *packages),
            "trials": N_TRIALS,
            "tasks": list(tasks),
            "seconds": round(time.monotonic() - began, 1),
            "chosen": settings,
            "rows": rows,
        }
        write(options.output, as_json(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
