"""ASHA, HyperBand and our schedulers on lists of random configurations, one trial each.

    python -m benchmarks.ray_tune.replacement --data FOLDER --output ray_replacement.json

FOLDER holds lcbench/ and rbv2_xgboost/ of YAHPO Gym's surrogates (github.com/slds-lmu/yahpo_data).
Lists of 64 configurations of 12 tasks, on 8 slots of a simulated cluster; normal noise of standard
deviation .5 on the accuracy in percent, tolerance .5. An answer is off if the best of the list is
better by more than the tolerance; a claim about finalists is false if the best of these is.
LCBench's trials report 52 epochs and go on from checkpoints. Those of rbv2_xgboost report 27 shares
of the data; what pauses begins anew, and that is paid. All schedulers get ``max_t``. The budget and
the number of finalists of ours were chosen on lists 0 to 29 of six of the tasks, with another
simulation of several workers; these are later lists of all 12.
"""

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ray.tune.schedulers import AsyncHyperBandScheduler, FIFOScheduler, HyperBandScheduler
from ray.tune.schedulers import TrialScheduler as Scheduler

from benchmarks.hpo.certainty_answers import Answer, Outcome, Race, judged
from benchmarks.hpo.certainty_budgets import EPSILON, FIRST_LIST, SIGMA, rows_of
from benchmarks.hpo.certainty_pools import Bounds, kept_pool
from benchmarks.hpo.problems import DEVELOPMENT_TASKS
from benchmarks.hpo.problems.surrogate import check_surrogates
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, verdict, write
from benchmarks.tune_clock import ReplayedCurves, SimulatedRun, simulate
from mfhpo_ray import IISEScheduler

Row = dict[str, Any]
Play: TypeAlias = Callable[[Race], Answer]

CONFIGURATIONS = 64
_SLOTS = 8


def _iterations(task: str) -> tuple[float, ...]:
    """Return the level of each iteration: epochs, or shares of the data."""
    if task.startswith("lcbench "):
        return tuple(float(epoch) for epoch in range(1, 53))
    return tuple(part / 27.0 for part in range(1, 28))


def _run(race: Race, scheduler: Scheduler, *, has_seeds: bool = True) -> SimulatedRun:
    pool = race.pool
    seconds = 1.0 / len(pool.costs)
    curves = ReplayedCurves(pool.means.T, seconds, sigma=race.sigma, seed=race.seed)
    seed = {"seed": 0} if has_seeds else {}
    trials = [{**each, **seed, "arm": arm} for arm, each in enumerate(pool.configurations)]
    return simulate(
        scheduler,
        trials,
        curves,
        slots=_SLOTS,
        max_t=len(pool.costs),
        checkpoints=pool.continues,
    )


def _of_tune(make: Callable[[int], Scheduler], race: Race) -> Answer:
    run = _run(race, make(len(race.pool.costs)))
    return Answer(run.best()[0].config["arm"], run.slot_seconds)


def _asha(max_t: int) -> Scheduler:
    return AsyncHyperBandScheduler(max_t=max_t)


def _of_ours(race: Race, *, has_seeds: bool = True, **options: Any) -> Answer:
    """Run `IISEScheduler`; `MFEliminationScheduler` without bounds does the same."""
    scheduler = IISEScheduler(max_t=len(race.pool.costs), **options)
    run = _run(race, scheduler, has_seeds=has_seeds)
    found: Any = scheduler.recommendation()
    compared = None
    if found.certificate is not None:
        compared = tuple(each.params["arm"] for each in found.certificate.candidates)
    return Answer(found.params["arm"], run.slot_seconds, found.certified, compared)


def _at_cost_of_asha(race: Race) -> Answer:
    cost = _of_tune(_asha, race).cost
    return _of_ours(race, has_seeds=False, budget=cost * len(race.pool.costs))


METHODS: dict[str, Play] = {
    "all trained": partial(_of_tune, lambda max_t: FIFOScheduler()),
    "ASHA": partial(_of_tune, _asha),
    "ASHA, reduction_factor=3": partial(
        _of_tune, lambda max_t: AsyncHyperBandScheduler(max_t=max_t, reduction_factor=3)
    ),
    "HyperBand": partial(_of_tune, lambda max_t: HyperBandScheduler(max_t=max_t)),
    "IISEScheduler": partial(_of_ours, epsilon=EPSILON),
    "IISEScheduler, no seed to set": partial(_of_ours, has_seeds=False),
    "IISEScheduler, no seed to set, at ASHA's cost": _at_cost_of_asha,
}


def _outcomes(methods: Sequence[str], data: Path, job: tuple[str, int]) -> list[Outcome]:
    task, seed = job
    pool = kept_pool(task, _iterations(task), CONFIGURATIONS, seed, data)
    race = Race(pool, SIGMA, EPSILON, Bounds(pool.costs, pool.costs), seed)
    return [judged(name, race, METHODS[name](race)) for name in methods]


def compare(lists: int, data: Path, workers: int) -> Iterator[list[Outcome]]:
    """Run all methods on so many lists of each task; the outcomes of one list at a time."""
    seeds = range(FIRST_LIST, FIRST_LIST + lists)
    jobs = [(task, seed) for seed in seeds for task in DEVELOPMENT_TASKS]
    return mapped(partial(_outcomes, list(METHODS), data), jobs, workers)


def summary(outcomes: Sequence[Outcome]) -> list[Row]:
    """Return cost, share that is off and claims, by kind of tasks and method."""
    return rows_of(CONFIGURATIONS, outcomes)


def table_of(rows: Sequence[Row]) -> str:
    """Return the rows as text."""
    lines = [f"{'method':46}{'tasks':>14}{'cost':>7}{'off':>12}{'claims':>8}{'false':>7}"]
    lines += [
        f"{row['contender']:46}{row['tasks']:>14}{row['cost']:>7.1f}"
        f"{row['off']:>5} of {row['lists']:>3}{row['certified']:>8}{row['wrong']:>7}"
        for row in rows
    ]
    return "\n".join(lines)


def holds(rows: Sequence[Row]) -> dict[str, bool]:
    """Return what must hold, whichever way the comparison goes."""
    claims, wrong = (sum(row[key] for row in rows) for key in ("certified", "wrong"))
    return {f"claims about finalists: {wrong} of {claims} false": wrong <= 0.05 * claims}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether all holds that must hold."""
    began = time.process_time()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ray_tune.replacement",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("--data", type=Path, required=True, help="YAHPO's folder")
    parser.add_argument("--lists", type=int, default=10, help="of each task (default: 10)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    options = parser.parse_args(arguments)
    if min(options.lists, options.workers) < 1:
        parser.error("--lists and --workers must be at least 1.")
    check_surrogates(parser, options.data, ("lcbench", "rbv2_xgboost"))
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    outcomes: list[Outcome] = []
    for number, found in enumerate(compare(options.lists, options.data, options.workers), 1):
        outcomes += found
        if number % len(DEVELOPMENT_TASKS) == 0:
            progress(f"{number} lists")
    rows = summary(outcomes)
    checked = holds(rows)
    print(f"{table_of(rows)}\n{verdict(checked)}", flush=True)
    if options.output is not None:
        command = ["--data=FOLDER", f"--lists={options.lists}"]
        report = provenance("benchmarks.ray_tune.replacement", command, "ray", "onnxruntime") | {
            "unit": "costs in trainings to the end, regret in percent of accuracy",
            "lists": [FIRST_LIST, FIRST_LIST + options.lists - 1],
            "cpu_seconds": round(time.process_time() - began),
            "holds": checked,
            "rows": rows,
        }
        write(options.output, as_json(report))
    return 0 if all(checked.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
