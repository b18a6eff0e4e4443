"""Whether what a race certifies at its end is true, and what that costs the search.

    python -m benchmarks.hpo.certificates --data FOLDER --workers 2

FOLDER holds lcbench/ and rbv2_xgboost/ of YAHPO Gym's surrogates (github.com/slds-lmu/yahpo_data).
In each run `mfhpo.search.BudgetedSearch` searches one of 12 tasks by its own model (`ModelSearch`),
all options as they are by default, and keeps a tenth of a budget of 100 full evaluations for its
certificate. Beside it, the same search with the same seed spends the whole budget and certifies
nothing. Both are the same until the shortlist is made, and from there on have noise of their own.
Certificates estimate the noise, or with --declared are told its true standard deviation.

True values are the surrogate's own, without noise, so that each statement of a certificate can be
held against the truth:

- no candidate of the shortlist is better than the winner by more than epsilon, where that is
  certified, and by more than the tolerance that holds ("within"), where it is not;
- the search promised too much for the luckiest candidate by an amount that is in an interval;
- the winner's true value is in its interval, and so is that of every other candidate.

Each may be wrong with probability at most delta = .05. Shares have exact 95 % intervals (Clopper
and Pearson 1934). Values and regrets are in percents of accuracy.

A command that was stopped goes on where it was. Stopped or finished, it can be given more --runs,
or further values of --sigma beside all that it had. Any other command begins anew, and writes over
what a finished one left.
"""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.hpo.certificate_outcomes import Outcome
from benchmarks.hpo.certificate_races import Job, play
from benchmarks.hpo.certificate_records import begun, save
from benchmarks.hpo.certificate_summary import Row, holds, markdown, summary
from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.surrogate import check_surrogates
from benchmarks.hpo.reference import reference
from benchmarks.hpo.tasks import development_task, families_of
from benchmarks.parallel import mapped
from benchmarks.report import progress, verdict

SIGMAS = (0.5, 2.0)
OUTPUT = Path(__file__).resolve().parents[1] / "results" / "certificates.json"

_SETTINGS = ("tasks", "sigma", "budget", "share", "declared", "runs")
_WRITTEN_EVERY = 10


def jobs(options: argparse.Namespace) -> list[Job]:
    """All runs: for each noise the same tasks and seeds, tasks in turn."""
    n = len(options.tasks)
    given = (options.budget, options.share, options.declared, options.data)
    return [
        Job(options.tasks[i % n], sigma, i // n, *given)
        for i in range(options.runs)
        for sigma in options.sigma
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    The exit status is 0 if all holds that must hold, 130 if stopped, 2 if it would overwrite runs.
    """
    options = _options(arguments)
    wanted = jobs(options)
    settings = {name: getattr(options, name) for name in _SETTINGS}
    try:
        outcomes = begun(options.output, settings, {job.key for job in wanted})
    except ValueError as error:
        progress(f"python -m benchmarks.hpo.certificates: {error}")
        return 2
    there = {(outcome.task, outcome.sigma, outcome.seed) for outcome in outcomes}
    left = [job for job in wanted if job.key not in there]
    if there:
        progress(f"goes on: {len(there)} runs are in {options.output}.")
    start = time.monotonic()
    try:
        for number, outcome in enumerate(mapped(play, left, options.workers), 1):
            outcomes.append(outcome)
            spent = (time.monotonic() - start) / 60.0
            progress(
                f"[{len(outcomes)}/{len(wanted)}] {spent:.1f} min, about "
                f"{spent / number * (len(left) - number):.0f} more: {outcome.task}, sigma "
                f"{outcome.sigma:g}, seed {outcome.seed}, {outcome.seconds:.1f} s"
            )
            if number % _WRITTEN_EVERY == 0 and number < len(left):
                save(options.output, settings, outcomes)
    except KeyboardInterrupt:
        save(options.output, settings, outcomes)
        progress(f"stopped after {len(outcomes)} runs; the same command goes on from here.")
        return 130
    rows = _rows(outcomes, options)
    save(options.output, settings, outcomes, rows)
    for sigma in sorted(set(options.sigma)):
        print(f"\n{markdown(rows, sigma)}")
    checked = holds(rows)
    print(f"\n{verdict(checked)}", flush=True)
    return 0 if all(checked.values()) else 1


def _rows(outcomes: Sequence[Outcome], options: argparse.Namespace) -> list[Row]:
    problems = {task: problem_named(task, options.data) for task in options.tasks}
    return summary(outcomes, {task: reference(one).best for task, one in problems.items()})


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hpo.certificates", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, help="YAHPO's folder (default: in the data folder)")
    parser.add_argument("--runs", type=int, default=500, help="for each noise (default: 500)")
    parser.add_argument(
        "--sigma",
        type=float,
        nargs="+",
        default=list(SIGMAS),
        help="standard deviations of the noise, all of them (default: .5 2)",
    )
    parser.add_argument("--budget", type=float, default=100.0, help="full evaluations (100)")
    parser.add_argument("--share", type=float, default=0.1, help="for the certificate (.1)")
    parser.add_argument(
        "--declared", action="store_true", help="tell the certificate the true sigma"
    )
    parser.add_argument(
        "--tasks",
        type=development_task,
        nargs="+",
        default=list(DEVELOPMENT_TASKS),
        metavar="TASK",
        help="problems",
    )
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help=f"JSON file ({OUTPUT.name})")
    options = parser.parse_args(arguments)
    for name in ("runs", "workers"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}.")
    if not all(math.isfinite(sigma) and sigma > 0.0 for sigma in options.sigma):
        parser.error(f"--sigma must be positive, got {options.sigma}.")
    if not options.budget >= 10.0:
        parser.error(f"--budget must be at least 10, got {options.budget:g}.")
    if not 0.0 < options.share < 1.0:
        parser.error(f"--share must be between 0 and 1, got {options.share:g}.")
    check_surrogates(parser, options.data, families_of(options.tasks))
    return options


if __name__ == "__main__":
    sys.exit(main())
