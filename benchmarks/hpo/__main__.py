"""Hyperparameter optimisers side by side, at equal cost, on the same runs.

    python -m benchmarks.hpo run --quick      # ten minutes on two cores, also without any data
    python -m benchmarks.hpo run              # on surrogates, in hours; goes on where it stopped
    python -m benchmarks.hpo report
    python -m benchmarks.hpo run --judged     # once per release, on tasks kept to judge methods
    python -m benchmarks.hpo report --judged
    python -m benchmarks.hpo run --nas        # small architectures, a comparison of its own
    python -m benchmarks.hpo report --nas
    python -m benchmarks.hpo run --recorded   # scikit-learn's models, without any data
    python -m benchmarks.hpo report --recorded
    python -m benchmarks.hpo clock            # play and report on a virtual clock; resumable
    python -m benchmarks.hpo keep             # the records, compressed, with the project
    python -m benchmarks.hpo restore          # and back, to report on them or to add to them

Every optimiser gets the same budget, counted in evaluations at the target level, on surrogates of
YAHPO Gym, on synthetic functions and on recorded trainings, all with noise, with the same seeds.
Its own recommendation is held against the true value that it has at the target level, and its own
claim. Our methods and Optuna's are played by the Python that runs this; each other peer by its own
environment (`make peer-NAME`), and those without one are listed.
"""

import argparse
import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from benchmarks.data.folder import HOW
from benchmarks.hpo import judged
from benchmarks.hpo.archive import keep, restore
from benchmarks.hpo.clock.in_seconds import InSeconds
from benchmarks.hpo.clock.report import ClockReport
from benchmarks.hpo.identity import identity_of
from benchmarks.hpo.methods import OURS
from benchmarks.hpo.problem import Problem
from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.known import NoisyProblem
from benchmarks.hpo.record import drop, file_of, read
from benchmarks.hpo.reference import reference
from benchmarks.hpo.report import Report, pinned
from benchmarks.hpo.runs import Environment, Plan, environments, jobs, play_all
from benchmarks.hpo.scores import BUDGETS
from benchmarks.hpo.tasks import (
    CLOCK_TASKS,
    NAS_TASKS,
    RECORDED_TASKS,
    grouped,
    judged_tasks,
    judges_releases,
    label_of,
    quick_tasks,
)
from benchmarks.provenance import provenance
from benchmarks.report import as_json, html_page, progress, write

_RESULTS = Path(__file__).parents[1] / "results"
_SEEDS, _FEW_SEEDS, _QUICK_MINUTES = 30, 5, 8.0
_QUICK_PEERS = ("random_search", "optuna")
_NAS_PEER = "regularised_evolution"
_PARTS = {"judged": judged.NAME, "nas": "hpo_nas", "recorded": "hpo_recorded"}
"""Comparisons of their own, and how their files in benchmarks/results are called."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    commands = {
        "run": _run,
        "report": _report,
        "clock": _clock,
        "keep": _keep,
        "restore": _restore,
    }
    try:
        options = _options(arguments)
        return commands[options.command](options)
    except (FileNotFoundError, ValueError) as error:
        progress(f"python -m benchmarks.hpo: {error}")
        return 2


def _run(options: argparse.Namespace) -> int:
    tasks = tuple(_problems(options))  # what is missing is said before anything is played
    if options.quick:
        progress(
            f"Quick: {len(tasks)} tasks, {len(options.seeds)} seeds, "
            f"{' and '.join(options.peers)}, stopped after {options.minutes:g} minutes; too few "
            "runs for a verdict."
        )
    found = _found(options)
    names = [name for environment in found for name in environment.methods]
    _check("--methods", options.methods or (), names)
    _check("--again", options.again, options.methods or names)
    _begin_judging(found, options)
    plan = Plan(
        tasks=tasks,
        seeds=options.seeds,
        budget=BUDGETS[-1],
        records=options.records.resolve(),
        block=1 if options.quick else 5,
        sigma=options.sigma,
        data=None if options.data is None else options.data.resolve(),
    )
    for name in options.again:
        for task in plan.tasks:
            drop(file_of(name, label_of(task, plan.sigma), plan.records), plan.budget, plan.seeds)
    wanted = list(jobs(plan, found, options.methods))
    progress(f"{len(wanted)} jobs on {options.workers} processes; records in {plan.records}")
    failed = play_all(wanted, options.workers, progress, options.minutes)
    for line in failed:
        progress(line)
    return 1 if failed else 0


def _check(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    if unknown := set(names) - set(known):
        raise ValueError(f"{option}: {sorted(unknown)} not among {list(known)}.")


def _problems(options: argparse.Namespace) -> dict[str, Problem]:
    """Problems by task, without those whose noise is asked to be another, but cannot be set."""
    problems = {task: problem_named(task, options.data) for task in options.tasks}
    if options.sigma is None:
        return problems
    fixed = [task for task, one in problems.items() if not isinstance(one, NoisyProblem)]
    if fixed:
        progress(f"--sigma: left out, for their noise is their own: {', '.join(fixed)}")
    if len(fixed) == len(problems):
        raise ValueError(f"--sigma={options.sigma:g} suits none of the tasks; leave it out.")
    return {task: problem for task, problem in problems.items() if task not in fixed}


def _found(options: argparse.Namespace, clocked: bool = False) -> list[Environment]:
    found, missing = environments(options.peers, clocked=clocked)
    for environment in found:
        progress(f"{environment.peer}: {', '.join(environment.methods)}")
    for peer, reason in missing.items():
        progress(f"{peer} is missing: {reason}")
    return found


def _begin_judging(found: Sequence[Environment], options: argparse.Namespace) -> None:
    """If tasks that judge releases are to be played by our methods, and not by peers alone."""
    ours = {name for each in found if each.peer == OURS for name in each.methods}
    plays = options.minutes != 0.0 and ours.intersection(options.methods or ours)
    if plays and any(map(judges_releases, options.tasks)):
        judged.begin(_RESULTS, identity_of(OURS))


def _report(options: argparse.Namespace) -> int:
    problems = {
        label_of(task, options.sigma): problem for task, problem in _problems(options).items()
    }
    records = [
        record
        for record in read(sorted(options.records.glob("*.jsonl")))
        if (not options.methods or record.method in options.methods)
        and record.budget == BUDGETS[-1]
        and record.seed in options.seeds
    ]
    if not records:
        raise ValueError(f"{options.records} holds no records of this; play them by run.")
    ours, _ = environments([OURS])
    report = Report.of(
        records,
        references={label: reference(problem) for label, problem in problems.items()},
        seconds={
            label: problem.seconds
            for label, problem in problems.items()
            if problem.seconds is not None
        },
        ours=[name for environment in ours for name in environment.methods],
        seeds=() if options.quick else options.seeds,
    )
    tables = [report.markdown(), *(report.markdown_of_duels(name) for name in report.ours)]
    print("\n\n".join([*tables, report.notes()]))
    flags = [f"--{name}" for name in ("quick", *_PARTS) if getattr(options, name)]
    command = ["report", *flags, *options.part, f"--seeds {len(options.seeds)}"]
    figures = provenance("benchmarks.hpo", command, "optuna", "onnxruntime")
    found = report.figures()
    figures |= {"peers": pinned()} | found
    name = next((_PARTS[part] for part in _PARTS if getattr(options, part)), "hpo")
    if options.judged:
        of_ours = {one for method in found["ours"] for one in found["identities"][method]}
        judged.check_first_time(_RESULTS, of_ours)
        release = judged.release_of(_RESULTS, of_ours, identity_of(OURS))
        versions = cast(dict[str, str], figures["versions"])
        figures["versions"] = {**versions, "mfhpo": release}
    write(options.output / f"{name}.json", as_json(figures))
    write(options.output / f"{name}.svg", report.picture())
    pictures = report.pictures()
    write(options.output / f"{name}.html", html_page("Hyperparameter optimisers", pictures))
    progress(f"{name}.json, {name}.svg and {name}.html are in {options.output}")
    return 0


def _clock(options: argparse.Namespace) -> int:
    problems = {task: InSeconds(problem) for task, problem in _problems(options).items()}
    found = _found(options, clocked=True)
    names = [name for environment in found for name in environment.methods]
    _check("--methods", options.methods or (), names)
    _begin_judging(found, options)
    plan = Plan(
        tasks=tuple(problems),
        seeds=options.seeds,
        budget=BUDGETS[-1],
        records=options.records.resolve(),
        block=1 if options.quick else 5,
        sigma=options.sigma,
        data=None if options.data is None else options.data.resolve(),
    )
    wanted = [
        job
        # All numbers of workers have the same seeds on the way.
        for start in range(0, options.seeds.stop, plan.block)
        for workers in options.workers
        for job in jobs(
            replace(plan, seeds=options.seeds[start : start + plan.block], workers=workers),
            found,
            options.methods,
        )
    ]
    progress(f"{len(wanted)} jobs on {options.processes} processes; records in {plan.records}")
    failed = play_all(wanted, options.processes, progress, options.minutes)
    for line in failed:
        progress(line)
    records = [
        record
        for record in read(sorted(plan.records.glob("*workers-*.jsonl")))
        if record.method in (options.methods or [record.method]) and record.seed in options.seeds
    ]
    report = ClockReport.of(
        records,
        references={task: reference(problem.problem) for task, problem in problems.items()},
        workers=options.workers,
        ours=[name for one in found if one.peer == OURS for name in one.methods],
        sigma=options.sigma,
        seeds=options.seeds,
    )
    print(report.text())
    workers = shlex.join(map(str, options.workers))
    command = ["clock", *options.part, f"--seeds {len(options.seeds)}", f"--workers {workers}"]
    figures = provenance("benchmarks.hpo", command, "optuna", "onnxruntime")
    figures |= {"peers": pinned()} | report.figures()
    write(options.output / "hpo_clock.json", as_json(figures))
    write(options.output / "hpo_clock.svg", report.picture())
    heading = "Hyperparameter optimisers on the clock"
    write(options.output / "hpo_clock.html", html_page(heading, report.pictures()))
    progress(f"hpo_clock.json, hpo_clock.svg and hpo_clock.html are in {options.output}")
    return 1 if failed else 0


def _keep(options: argparse.Namespace) -> int:
    changed = keep(options.records, options.archive)
    progress(f"{options.archive}: {', '.join(file.name for file in changed) or 'nothing new'}")
    return 0


def _restore(options: argparse.Namespace) -> int:
    added = restore(options.archive, options.records)
    progress(f"{options.records}: {added} records added")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hpo", description=(__doc__ or "").splitlines()[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    parts = common.add_mutually_exclusive_group()
    parts.add_argument("--quick", action="store_true", help="fewer tasks, seeds and peers")
    parts.add_argument(
        "--judged", action="store_true", help="tasks that methods were not developed on"
    )
    parts.add_argument("--nas", action="store_true", help="architectures of small networks")
    parts.add_argument(
        "--recorded", action="store_true", help="scikit-learn's models, whose trainings are kept"
    )
    common.add_argument("--tasks", nargs="+", metavar="TASK", help="names of problems")
    common.add_argument("--methods", nargs="+", metavar="NAME", help="default: all there are")
    common.add_argument("--seeds", type=int, help="number (default: 30; 5 if quick or recorded)")
    common.add_argument("--sigma", type=float, help="noise, if not the tasks' usual one")
    common.add_argument("--data", type=Path, help="YAHPO's folder (default: in the data folder)")
    folders = argparse.ArgumentParser(add_help=False)
    folders.add_argument(
        "--records", type=Path, default=_RESULTS / ".hpo-records", help="folder of the raw records"
    )
    run = commands.add_parser(
        "run", parents=[common, folders], help="play what has not been played"
    )
    run.add_argument("--peers", nargs="+", metavar="MODULE", help="default: all, and ours")
    run.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    run.add_argument("--minutes", type=float, help="stop after this time")
    run.add_argument(
        "--again", nargs="+", default=[], metavar="NAME", help="methods whose seeds are played anew"
    )
    clock = commands.add_parser(
        "clock", parents=[common, folders], help="play and report on a virtual clock"
    )
    clock.add_argument("--peers", nargs="+", metavar="MODULE", help="default: all, and ours")
    clock.add_argument(
        "--workers", type=int, nargs="+", default=[1, 4, 16, 64], help="default: 1 4 16 64"
    )
    clock.add_argument("--processes", type=int, default=2, help="that play (default: 2)")
    clock.add_argument(
        "--minutes", type=float, help="stop playing after this time; 0 reports on what there is"
    )
    clock.add_argument("--output", type=Path, help="folder (default: benchmarks/results)")
    report = commands.add_parser(
        "report", parents=[common, folders], help="say what the records show"
    )
    report.add_argument("--output", type=Path, help="folder (default: benchmarks/results)")
    for name, said in (("keep", "archive the records"), ("restore", "copy records back")):
        command = commands.add_parser(name, parents=[folders], help=said)
        command.add_argument(
            "--archive", type=Path, default=_RESULTS / "hpo-records", help="folder of the archive"
        )
    options = parser.parse_args(arguments)
    if options.command in ("keep", "restore"):
        return options
    if options.seeds is not None and options.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {options.seeds}.")
    if options.sigma is not None and not (math.isfinite(options.sigma) and options.sigma >= 0.0):
        parser.error(f"--sigma must be finite and at least 0, got {options.sigma:g}.")
    usual_seeds = _FEW_SEEDS if options.quick or options.recorded else _SEEDS
    options.seeds = range(options.seeds or usual_seeds)
    if options.command == "clock" and any(getattr(options, part) for part in _PARTS):
        parser.error("--judged, --nas and --recorded are not played on the clock.")
    asked = {"tasks": options.tasks, "methods": options.methods}
    options.part = [f"--{name} {shlex.join(names)}" for name, names in asked.items() if names]
    if options.sigma is not None:
        options.part.append(f"--sigma {options.sigma:g}")
    is_part = options.part or len(options.seeds) < usual_seeds
    if options.command == "report" and is_part and not options.quick and options.output is None:
        parser.error("pages quote the whole of it; give a part's report --output.")
    options.tasks = options.tasks or _tasks(options)
    if options.command == "clock" and min(*options.workers, options.processes) < 1:
        parser.error(f"--workers and --processes must be at least 1, got {options.workers}.")
    if options.command == "run":
        if options.workers < 1:
            parser.error(f"--workers must be at least 1, got {options.workers}.")
        if options.quick:
            options.minutes = options.minutes or _QUICK_MINUTES
            peers = [OURS, *_QUICK_PEERS, *([_NAS_PEER] if "NAS" in grouped(options.tasks) else [])]
            options.peers = options.peers or peers
    elif options.output is None:
        options.output = _RESULTS / ".hpo-quick" if options.quick else _RESULTS
    return options


def _tasks(options: argparse.Namespace) -> tuple[str, ...]:
    if options.judged:
        if found := judged_tasks(options.data):
            return found
        raise FileNotFoundError(f"no surrogate is there, whose tasks judge the methods: {HOW}.")
    if options.nas:
        return NAS_TASKS
    if options.recorded:
        return RECORDED_TASKS
    if options.command == "clock":
        wanted = quick_tasks(options.data) if options.quick else CLOCK_TASKS
        return tuple(task for task in wanted if task in CLOCK_TASKS)
    return quick_tasks(options.data) if options.quick else DEVELOPMENT_TASKS


if __name__ == "__main__":
    sys.exit(main())
