"""Ray Tune: what a certificate costs beside ASHA's answer, and what schedulers cost per result.

    python -m benchmarks.ray_tune --data FOLDER --output ray_tune.json --figure ray_tune.html

FOLDER holds lcbench/model.onnx and lcbench/encoding.json of YAHPO Gym's surrogates
(github.com/slds-lmu/yahpo_data); without it, the tasks are synthetic. In every race 32 random
configurations are trained for up to 52 epochs on 8 slots in simulated time, an epoch as long as any
other; the seed of a training adds normal noise to every accuracy it reports. The best arm is the
one whose accuracy after the last epoch is highest without the noise.

Tune's schedulers train every configuration once, and their answer is what `get_best_result` hands
over, with the value that it reports. Ours repeat trainings until the answer is certified to be
within epsilon, one standard deviation of the noise, of the best arm, wrong with probability at
most .05. "Declared" are bounds on the bias of accuracies after 2, 6 and 17 epochs, the smallest
that hold for the table, and the noise; what is not declared is estimated. Policies pay every
training from its first epoch; IISEScheduler and Tune's schedulers go on from checkpoints.
IISEScheduler has 60 seeds of each configuration, and ends uncertified when they are used up.
"""

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.data.folder import data_folder
from benchmarks.hpo.problems.surrogate import check_surrogates
from benchmarks.provenance import provenance
from benchmarks.ray_tune import comparison, overhead
from benchmarks.ray_tune.methods import DELTA, LEVELS, METHODS, SLOTS
from benchmarks.ray_tune.tables import LCBENCH_TASKS, SYNTHETIC_TASKS
from benchmarks.report import as_json, html_page, numba_if_installed, progress, verdict, write

_PARTS = ("comparison", "overhead")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether all holds that must hold."""
    started = time.perf_counter()
    options = _options(arguments)
    data = None if options.data is None else options.data / "lcbench"
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    command = [
        *([] if data is None else ["--data=FOLDER"]),
        *(f"--{name}={getattr(options, name)}" for name in ("runs", "arms", "repeats", "seed")),
    ]
    packages = ["ray", *numba_if_installed(), *([] if data is None else ["onnxruntime"])]
    report = provenance("benchmarks.ray_tune", command, *packages)
    report["seed"] = options.seed
    holds: dict[str, bool] = {}
    pictures = {}
    if "comparison" in options.parts:
        settings = [
            comparison.Setting(task, sigma, options.arms, options.seed + run)
            for sigma in options.sigma
            for task in options.tasks
            for run in range(options.runs)
        ]
        outcomes = []
        for number, found in enumerate(
            comparison.compare(options.methods, settings, data, options.workers), 1
        ):
            outcomes += found
            if number % options.runs == 0:
                progress(f"{settings[number - 1].task}, sigma {settings[number - 1].sigma:g}")
        rows = comparison.summary(outcomes)
        print(comparison.table_of(rows), flush=True)
        holds |= comparison.holds(rows)
        pictures["What an answer costs, and how far it may be from the best"] = comparison.picture(
            rows
        )
        report["comparison"] = {
            "unit": "cost and makespan: trainings of all epochs; the rest: accuracy in percent",
            "tasks": list(options.tasks),
            "races_per_task": options.runs,
            "arms": options.arms,
            "slots": SLOTS,
            "levels": LEVELS,
            "delta": DELTA,
            "epsilon": "sigma",
            "rows": rows,
        }
    if "overhead" in options.parts:
        measured = overhead.measure(
            list(overhead.SCHEDULERS), options.trials, options.repeats, options.seed
        )
        print(overhead.table_of(measured), flush=True)
        holds |= overhead.holds(measured)
        report["overhead"] = {
            "unit": "CPU milliseconds per result, inside the scheduler; ours write a journal",
            "repeats": options.repeats,
            "rows": measured,
        }
    print(verdict(holds), flush=True)
    report["seconds"] = round(time.perf_counter() - started, 1)
    report["holds"] = holds
    if options.output:
        write(options.output, as_json(report))
    if options.figure and pictures:
        write(options.figure, html_page("Certificates beside ASHA", pictures))
    return 0 if all(holds.values()) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    found = data_folder() / "yahpo"
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ray_tune", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=found if found.is_dir() else None,
        help="YAHPO's folder (default: in the data folder; without it, synthetic tasks)",
    )
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=list(_PARTS))
    parser.add_argument(
        "--tasks", nargs="+", choices=(*LCBENCH_TASKS, *SYNTHETIC_TASKS), metavar="TASK"
    )
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="NAME"
    )
    parser.add_argument("--runs", type=int, default=20, help="races per task (default: 20)")
    parser.add_argument("--arms", type=int, default=32, help="configurations (default: 32)")
    parser.add_argument(
        "--sigma", type=float, nargs="+", default=[0.5, 2.0], help="in percent (default: 0.5 2)"
    )
    parser.add_argument(
        "--trials", type=int, nargs="+", default=[100, 1_000, 3_000], help="of the overhead"
    )
    parser.add_argument("--repeats", type=int, default=3, help="of the overhead (default: 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--figure", type=Path, help="draw them in this file, as HTML")
    options = parser.parse_args(arguments)
    if min(options.runs, options.workers, options.repeats) < 1 or options.arms < 10:
        parser.error("--runs, --workers and --repeats must be at least 1, --arms at least 10.")
    if options.tasks is None:
        options.tasks = SYNTHETIC_TASKS if options.data is None else LCBENCH_TASKS
    needs_data = "comparison" in options.parts and set(options.tasks) & set(LCBENCH_TASKS)
    if needs_data:
        check_surrogates(parser, options.data, ["lcbench"])
    return options


if __name__ == "__main__":
    sys.exit(main())
