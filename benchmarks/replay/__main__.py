"""Play runs with fixed seeds, and show that a refactoring has changed none of their choices.

    python -m benchmarks.replay --output before.json     # plays, and writes what was chosen
    python -m benchmarks.replay --against before.json    # plays again, and tells what differs

Played are our search on the development tasks, the papers' tables from few runs, and small races of
every sampler, pruner, searcher, scheduler, estimator and policy. Each choice, cost and answer must
be exactly the same, so both times the machine and the versions of packages must be the same. The
tables and the search need `make data`.
"""

import argparse
import json
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.data.folder import data_folder
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.replay.differences import first_difference
from benchmarks.replay.experiments import experiments
from benchmarks.replay.fits import fits
from benchmarks.replay.policies import POLICIES
from benchmarks.replay.searches import SEARCHES
from benchmarks.replay.studies import STUDIES
from benchmarks.replay.tables import TABLES
from benchmarks.report import numba_if_installed, progress, write

_RUNS = (
    TABLES | SEARCHES | experiments(slots=2) | STUDIES | fits(jobs=1) | POLICIES
)  # the longest first


def _played(task: tuple[str, Path]) -> tuple[Any, str]:
    """The record of a run as it is read from a file, or the error that it raised."""
    name, data = task
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        try:
            return json.loads(json.dumps(_RUNS[name](data))), ""
        except Exception:  # the other runs are worth knowing too
            return None, traceback.format_exc()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether a run differs or raised an error."""
    options = _options(arguments)
    names = [name for name in _RUNS if name.startswith(options.only)]
    tasks = [(name, options.data) for name in names]
    runs: dict[str, Any] = {}
    for number, (record, error) in enumerate(mapped(_played, tasks, options.workers)):
        progress(f"[{number + 1}/{len(names)}] {names[number]}{error and f': {error}'}")
        if not error:
            runs[names[number]] = record
    if options.output:
        report = provenance("benchmarks.replay", [], "optuna", "ray", *numba_if_installed())
        write(options.output, json.dumps({**report, "runs": runs}) + "\n")
    differ = options.against is not None and _differ(runs, options)
    return int(differ or len(runs) < len(names))


def _differ(runs: dict[str, Any], options: argparse.Namespace) -> bool:
    """Whether runs differ from those of a file; print how."""
    before = json.loads(options.against.read_text(encoding="utf-8"))["runs"]
    names = dict.fromkeys([*before, *runs])
    found = {
        name: first_difference(runs.get(name), before.get(name))
        for name in names
        if name.startswith(options.only)
    }
    differing = {name: difference for name, difference in found.items() if difference}
    for name, difference in differing.items():
        print(f"{name}: {difference}")
    print(f"{len(found) - len(differing)} of {len(found)} runs are the same")
    return bool(differing)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.replay", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write what was played to it")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with what is in it")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="runs whose names begin so")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument(
        "--data", type=Path, default=data_folder(), help="default: where make data puts it"
    )
    options = parser.parse_args(arguments)
    options.only = tuple(options.only or [""])
    for start in options.only:
        if not any(name.startswith(start) for name in _RUNS):
            parser.error(f"--only: no run's name begins with {start!r}: {'; '.join(_RUNS)}.")
    if not (options.output or options.against):
        parser.error("--output or --against is needed, or both.")
    if options.workers < 1:
        parser.error(f"--workers must be at least 1, got {options.workers}.")
    return options


if __name__ == "__main__":
    sys.exit(main())
