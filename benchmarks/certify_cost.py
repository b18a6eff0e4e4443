"""Cost of `certify` beside that of earlier versions, and how good its plan is.

    python -m benchmarks.certify_cost --tasks judged --data DATA/yahpo --output results.json

The studies are those of `benchmarks.certify`. Of each, the finalists are raced on the same noise:
the n-th value of a configuration is the same for all ways. Tolerance: one standard deviation of the
noise.

    before        the 8 best, by MFTopTwo
    8 finalists   the 8 best, by what `certify` takes now
    now           as many as `certify` takes by default

A plan guesses the evaluations of "now" from the study's values alone, without and with the noise
declared, at this tolerance, twice and half of it; for races whose finalists' values are given
(`SHORTLISTS`), too. Guesses are divided by what the race then takes.
"""

import argparse
import sys
import warnings
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from benchmarks.certify import SIGMAS, TRIALS, Objective
from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.known import NoisyProblem
from benchmarks.hpo.tasks import judged_tasks
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write
from mfhpo import MFTopTwo
from mfhpo.certification.candidates import Candidate, Shortlist
from mfhpo.certification.certification import Certification
from mfhpo.certification.plan import plan_of
from mfhpo_optuna.study.shortlist import shortlist_of

SHORTLISTS = {
    "6 alike": [0.0] * 6,
    "6 over one sd": np.linspace(0.0, -1.0, 6).tolist(),
    "6 over three sd": np.linspace(0.0, -3.0, 6).tolist(),
    "6 over ten sd": np.linspace(0.0, -10.0, 6).tolist(),
    "3 over one sd": np.linspace(0.0, -1.0, 3).tolist(),
}
_DELTA = 0.05
_MEASURE = 10
_MOST = 5_000


def race(
    shortlist: Shortlist, truths: Sequence[float], spread: float, seed: int, **options: Any
) -> dict[str, Any]:
    """Race the finalists; the n-th value of each is the same in all races of a seed."""
    noise = [np.random.default_rng([seed, arm]) for arm in range(len(truths))]
    contest = Certification(
        shortlist.candidates, luckiest=0, maximise=True, seed=seed, delta=_DELTA, **options
    )
    while not contest.finished and contest.evaluations < _MOST:
        pull = contest.ask()
        assert pull is not None
        contest.tell(pull, truths[pull.arm] + spread * noise[pull.arm].standard_normal())
    answer = contest.certificate("", "")
    assert answer.winner is not None
    truth = truths[answer.winner]
    return {
        "evaluations": answer.evaluations,
        "certified": answer.certified,
        "true": truth,
        "wrong": answer.certified and max(truths) - truth > answer.epsilon,
        "epsilon": answer.epsilon,
    }


def guesses(
    shortlist: Shortlist, truths: Sequence[float], sigma: float, seed: int
) -> list[dict[str, Any]]:
    """Divide what plans guess by what races take."""
    found = []
    for times in (0.5, 1.0, 2.0):
        for declared in (None, sigma):
            epsilon = None if declared is None and times == 1.0 else times * sigma
            options = {"epsilon": epsilon, "sigma": declared}
            fixed = {**options, "delta": _DELTA, "budget": None, "measure": _MEASURE}
            planned = plan_of(shortlist, fixed, 1.0)
            took = race(shortlist, truths, sigma, seed, measure=_MEASURE, **options)["evaluations"]
            known = "nothing" if declared is None else "sigma"
            row = {"epsilon, sd": times, "declared": known, "ratio": planned.evaluations / took}
            found.append(row)
    return found


def of_study(task: str, sigma: float, seed: int, data: Path | None) -> dict[str, Any]:
    """Run a study, and race its finalists in all ways."""
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    problem = problem_named(task, data, sigma=sigma)
    assert isinstance(problem, NoisyProblem)
    objective = Objective(problem, seed)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(
        study_name=f"{task} {sigma:g} {seed}", direction="maximize", sampler=sampler
    )
    study.optimize(objective, n_trials=TRIALS[seed % len(TRIALS)])
    own = zlib.crc32(f"{task} {sigma:g} {seed}".encode())  # noise of its own for each study
    lists = {"before": shortlist_of(study, 8, None), "now": shortlist_of(study, None, None)}
    lists["8 finalists"] = lists["before"]
    found: dict[str, Any] = {"task": task, "sigma": sigma, "seed": seed}
    for way, shortlist in lists.items():
        truths = [objective.true_value(one.params) for one in shortlist.candidates]
        certifier = {"certifier": MFTopTwo} if way == "before" else {}
        found[way] = race(shortlist, truths, sigma, own, measure=_MEASURE, **certifier)
        if way == "now":
            found["guesses"] = guesses(shortlist, truths, sigma, own)
    found["best_trial"] = objective.true_value(study.best_trial.params)
    return found


def of_list(name: str, seed: int) -> list[dict[str, Any]]:
    """Guess, and race, where true values are given; each finalist has one value of its own."""
    truths = SHORTLISTS[name]
    values = np.array(truths) + np.random.default_rng(seed).standard_normal(len(truths))
    places = np.argsort(-values)
    candidates = tuple(Candidate(str(place), {}, float(values[place])) for place in places)
    shortlist = Shortlist(candidates, 0, "", "")
    return guesses(shortlist, [truths[place] for place in places], 1.0, seed)


def ratios(rows: Sequence[Mapping[str, Any]], of: str) -> list[dict[str, Any]]:
    """Return quantiles of guess / true, and how many guesses are within a factor of two."""
    found = []
    keys = dict.fromkeys((row["epsilon, sd"], row["declared"]) for row in rows)
    for times, declared in keys:
        known = np.array(
            [r["ratio"] for r in rows if (r["epsilon, sd"], r["declared"]) == (times, declared)]
        )
        low, middle, high = np.quantile(known, [0.05, 0.5, 0.95]).round(2).tolist()
        line = {"of": of, "epsilon, sd": times, "declared": declared, "races": len(known)}
        within = round(float(np.mean((known > 0.5) & (known < 2.0))), 2)
        found.append({**line, "5%": low, "50%": middle, "95%": high, "within a factor 2": within})
    return found


def costs(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Compare the ways study by study."""
    found = []
    for sigma in SIGMAS:
        same = [record for record in records if record["sigma"] == sigma]
        before = np.array([record["before"]["evaluations"] for record in same])
        for way in ("before", "8 finalists", "now"):
            of_way = [record[way] for record in same]
            evaluations = np.array([one["evaluations"] for one in of_way])
            gains = [record[way]["true"] - record["best_trial"] for record in same]
            lost = [record["before"]["true"] - record[way]["true"] for record in same]
            found.append(
                {
                    "noise": sigma,
                    "way": way,
                    "studies": len(same),
                    "evaluations, mean": round(float(evaluations.mean()), 1),
                    "median": float(np.median(evaluations)),
                    "ratio of means": round(float(evaluations.mean() / before.mean()), 3),
                    "median of ratios": round(float(np.median(evaluations / before)), 3),
                    "certified": int(sum(one["certified"] for one in of_way)),
                    "wrong": int(sum(one["wrong"] for one in of_way)),
                    "epsilon": round(float(np.mean([one["epsilon"] for one in of_way])), 3),
                    "pick better than best_trial by": round(float(np.mean(gains)), 3),
                    "pick worse than before by": round(float(np.mean(lost)), 3),
                }
            )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", choices=("development", "judged"), default="development")
    parser.add_argument("--data", type=Path, help="YAHPO's folder (default: in the data folder)")
    parser.add_argument("--seeds", type=int, default=3, help="of each task and noise (default: 3)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON")
    options = parser.parse_args(arguments)
    tasks = judged_tasks(options.data) if options.tasks == "judged" else DEVELOPMENT_TASKS
    jobs = [
        (task, sigma, seed) for seed in range(options.seeds) for task in tasks for sigma in SIGMAS
    ]
    records: list[dict[str, Any]] = []
    for found in mapped(partial(_of_job, data=options.data), jobs, options.workers):
        records.append(found)
        progress(f"[{len(records)}/{len(jobs)}] {found['task']} {found['sigma']:g}")
    rows = [row for record in records for row in record["guesses"]]
    guessed = ratios(rows, "studies")
    for name in SHORTLISTS:
        guessed += ratios([row for seed in range(5) for row in of_list(name, seed)], name)
    command = [f"--tasks={options.tasks}", f"--seeds={options.seeds}", "--data=$MFHPO_DATA/yahpo"]
    report = provenance("benchmarks.certify_cost", command, "optuna", "onnxruntime")
    figures = {"costs": costs(records), "guess / true": guessed}
    print(as_json(figures))
    if options.output:
        write(options.output, as_json({**report, "tasks": list(tasks), **figures}))
    return 0


def _of_job(job: tuple[str, float, int], data: Path | None) -> dict[str, Any]:
    return of_study(*job, data)


if __name__ == "__main__":
    sys.exit(main())
