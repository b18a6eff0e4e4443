"""Play optimisers on problems, and keep how good their recommendations were.

    python -m benchmarks.hpo.play --peer MODULE --problem NAME --budget 100 --seeds 0:30 \
        --output FOLDER

One JSON line for every run is added to a file in the folder; runs that are there are not played
again, so a command that was killed goes on where it was; but ours are if the code has changed.
Needs no more than NumPy, the peer, and what the problem needs.
"""

import argparse
import math
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.hpo.clock.in_seconds import InSeconds
from benchmarks.hpo.identity import identity_of, valid_runs
from benchmarks.hpo.meter import BudgetSpent, Meter, Step
from benchmarks.hpo.methods import OURS, Method, methods_of
from benchmarks.hpo.problem import Problem
from benchmarks.hpo.problems import problem_named
from benchmarks.hpo.record import Record, append, file_of, read
from benchmarks.hpo.space import Configuration, same_configuration
from benchmarks.hpo.tasks import label_of


def play(
    name: str, method: Method, problem: Problem, budget: float, seed: int, identity: str = ""
) -> Record:
    """Run an optimiser until its budget is spent, and hold what it recommended against the truth.

    Parameters
    ----------
    name
        Of the method.
    method
        The optimiser; what it raises is recorded, not raised, but for what is named below.
    problem
        What it optimises.
    budget
        In evaluations at the target level.
    seed
        Of the optimiser and of the noise, which is the same for all optimisers.
    identity
        Of the optimiser's code.

    Raises
    ------
    ImportError
        If the method needs a package that is not installed here.
    OSError, MemoryError
        If the machine fails; the run can be played again.
    """
    meter = Meter(problem, budget, seed)
    crash = None
    try:
        method(meter, seed)
    except BudgetSpent:
        pass
    except (ImportError, OSError, MemoryError):  # this says nothing about the optimiser
        raise
    except Exception:
        crash = traceback.format_exc(limit=-5)
    total_seconds = meter.optimiser_seconds
    truth = _remembered(problem.true_value)
    tried = [truth(configuration) for configuration in meter.tried]
    known = [value for value in tried if value is not None]
    steps = _changes(meter.steps)
    return Record(
        method=name,
        problem=problem.name,
        budget=budget,
        seed=seed,
        cost=tuple(step.cost for step in steps),
        seconds=tuple(round(step.seconds, 6) for step in steps),
        value=tuple(truth(step.configuration) for step in steps),
        claim=tuple(_finite(step.claim) for step in steps),
        evaluations=tuple(meter.evaluations),
        failures=int(meter.failures),
        total_cost=meter.cost,
        total_seconds=round(total_seconds, 6),
        tried=len(tried),
        best_tried=max(known, default=None),
        crash=crash,
        identity=identity,
    )


def _changes(steps: Sequence[Step]) -> list[Step]:
    """Leave out recommendations that only repeat the one before."""
    kept: list[Step] = []
    for step in steps:
        said = step.configuration, step.claim
        if not kept or said != (kept[-1].configuration, kept[-1].claim):
            kept.append(step)
    return kept


def _remembered(
    true_value: Callable[[Configuration], float | None],
) -> Callable[[Configuration], float | None]:
    known: dict[object, float | None] = {}

    def value(configuration: Configuration) -> float | None:
        key = same_configuration(configuration)
        if key not in known:
            found = true_value(configuration)
            known[key] = None if found is None else float(found)
        return known[key]

    return value


def _finite(claim: float | None) -> float | None:
    return None if claim is None or not math.isfinite(claim) else float(claim)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    options = _options(arguments)
    try:
        methods = methods_of(options.peer, options.workers)
    except ModuleNotFoundError as error:
        print(f"{options.peer}: {error}", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(methods))
        return 0
    if not options.problem or options.output is None:
        print("--problem and --output are needed.", file=sys.stderr)
        return 2
    unknown = set(options.method or ()) - set(methods)
    if unknown:
        print(f"--method: {sorted(unknown)} not among {list(methods)}.", file=sys.stderr)
        return 2
    identity = identity_of(options.peer)
    for wanted in options.problem:
        problem = problem_named(wanted, data=options.data, sigma=options.sigma)
        if options.workers is not None:
            problem = InSeconds(problem)
        problem.name = label_of(wanted, options.sigma, options.workers)
        for name in options.method or methods:
            file = file_of(name, problem.name, options.output)
            records = read([file] if file.exists() else [])
            there = valid_runs(records, identity if options.peer == OURS else None)
            if others := {record.identity for record in records} - {identity}:
                print(
                    f"{name} on {problem.name}: there are records of versions {sorted(others)}, "
                    f"this is {identity!r}.",
                    file=sys.stderr,
                )
            for seed in options.seeds:
                if (name, problem.name, options.budget, seed) not in there:
                    played = play(name, methods[name], problem, options.budget, seed, identity)
                    append(played, file)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hpo.play", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--peer", required=True, help="module in benchmarks/peers/, or ours")
    parser.add_argument("--list", action="store_true", help="list its methods, and no more")
    parser.add_argument("--method", action="append", help="name of one (default: all of them)")
    parser.add_argument("--problem", action="append", help="name; repeatable")
    parser.add_argument("--budget", type=float, default=100.0, help="full evaluations (100)")
    parser.add_argument("--seeds", type=_seeds, default=range(30), help="first:end (0:30)")
    parser.add_argument("--sigma", type=float, help="noise, if not the problem's usual one")
    parser.add_argument("--workers", type=int, help="play on a virtual clock with so many")
    parser.add_argument("--data", type=Path, help="YAHPO's folder (default: in the data folder)")
    parser.add_argument("--output", type=Path, help="folder of the records")
    options = parser.parse_args(arguments)
    if not options.budget > 0:
        parser.error(f"--budget must be positive, got {options.budget:g}.")
    if options.workers is not None and options.workers < 1:
        parser.error(f"--workers must be at least 1, got {options.workers}.")
    return options


def _seeds(text: str) -> Iterable[int]:
    first, _, end = text.partition(":")
    try:
        seeds = range(int(first), int(end) if end else int(first) + 1)
    except ValueError:
        seeds = range(0)
    if not seeds or seeds[0] < 0:
        raise argparse.ArgumentTypeError(f"must be like 0:30 or 7, got {text!r}.")
    return seeds


if __name__ == "__main__":
    sys.exit(main())
