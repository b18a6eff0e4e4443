"""Long studies and many workers: time, memory, and trials per second.

    python -m benchmarks.scale --output results.json

`long`: a fresh process goes on with a study of 10,000 and of 100,000 finished trials, in memory, in
a journal file and on PostgreSQL. `processes`: worker processes share a study on PostgreSQL.
`clock`: one process serves many workers on a virtual clock. `engine`: an experiment without a host
replays so many events, with a policy's own time and without it. All of it takes half an hour on two
idle cores. A part of it can be measured anew: rows that were not measured stay in the file.
"""

import argparse
import itertools
import json
import pickle
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import optuna

from benchmarks.postgres import Postgres
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write
from benchmarks.scale.contestants import CLOCKED, LONG
from benchmarks.scale.engine import SILENT, WHOLE, replayed
from benchmarks.scale.history import played, repeated
from benchmarks.scale.long_studies import Case, resumed
from benchmarks.scale.processes import crew
from benchmarks.scale.storages import fill
from benchmarks.scale.virtual_workers import serve

MEMORY, JOURNAL, POSTGRES = "memory", "journal file", "PostgreSQL"
_PARTS = ("long", "processes", "clock", "engine")
# TPE reads and writes as RandomSampler does; its own time does not depend on the storage.
_IN_MEMORY_ALONE = ("TPESampler",)
# What makes a row of each part another one.
_KEYS = {
    "long": ("sampler", "storage", "trials"),
    "processes": ("sampler", "workers", "repeat"),
    "clock": ("sampler", "workers", "evaluation_seconds"),
    "engine": ("policy", "events"),
}
_CREWS = ("RandomSampler", "IISESampler", "SearchSampler")
_WORKERS, _SECONDS, _REPEATS = (8, 16, 32), 15.0, 3
_CLOCKED_WORKERS, _EVALUATION_SECONDS, _CLOCKED_TRIALS = (64, 256, 1024), 10.0, 200


def long_studies(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each sampler with each history in each storage."""
    chosen = [name for name in LONG if name in options.samplers]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        server = None
        if POSTGRES in options.storages:
            server = Postgres()
            stack.callback(server.close)
        for sampler in chosen:
            progress(f"{sampler}: playing ...")
            trials = played(sampler, max(options.sizes))
            block = folder / sampler
            block.write_bytes(pickle.dumps(trials))
            for size, storage in itertools.product(options.sizes, options.storages):
                if storage != MEMORY and sampler in _IN_MEMORY_ALONE:
                    continue
                progress(f"{sampler}, {size:,} trials, {storage} ...")
                place = ""
                if storage == JOURNAL:
                    place = str(folder / f"{sampler}-{size}.log")
                elif server is not None and storage == POSTGRES:
                    place = server.url()
                if place:
                    fill(place, repeated(trials, size, others=sampler == "SearchSampler"))
                yield asdict(resumed(Case(sampler, storage, place, size, block)))


def processes(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Crews on PostgreSQL, the samplers in turn, so that all see the same machine."""
    server = Postgres()
    try:
        for repeat, workers in itertools.product(range(options.repeats), options.workers):
            for sampler in _CREWS:
                if sampler in options.samplers:
                    progress(f"{sampler}, {workers} processes ...")
                    row = crew(server, sampler, workers, options.seconds, repeat)
                    yield asdict(row) | {"repeat": repeat}
    finally:
        server.close()


def clock(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One driver and its workers on the virtual clock."""
    for workers, sampler in itertools.product(options.clocked_workers, CLOCKED):
        if sampler in options.samplers:
            progress(f"{sampler}, {workers} workers on the clock ...")
            yield asdict(serve(sampler, workers, _EVALUATION_SECONDS, options.clocked_trials))


def engine(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Replays of so many events."""
    for size, policy in itertools.product(options.sizes, (SILENT, WHOLE)):
        progress(f"engine, {size:,} events, policy {policy} ...")
        yield asdict(replayed(policy, size // 2))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS, metavar="PART")
    parser.add_argument("--samplers", nargs="+", choices=list(LONG), default=list(LONG))
    parser.add_argument(
        "--storages",
        nargs="+",
        choices=(MEMORY, JOURNAL, POSTGRES),
        default=(MEMORY, JOURNAL, POSTGRES),
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=(10_000, 100_000))
    parser.add_argument("--workers", nargs="+", type=int, default=_WORKERS)
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of each crew's work")
    parser.add_argument("--repeats", type=int, default=_REPEATS, help="of each crew")
    parser.add_argument("--clocked-workers", nargs="+", type=int, default=_CLOCKED_WORKERS)
    parser.add_argument("--clocked-trials", type=int, default=_CLOCKED_TRIALS)
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    found = {"long": long_studies, "processes": processes, "clock": clock, "engine": engine}
    for part in options.parts:
        for row in found[part](options):
            _keep(options.output, part, row)
    return 0


def _keep(file: Path, part: str, row: dict[str, Any]) -> None:
    """Write a row to the file, in the place of an earlier one; others keep their commit."""
    report = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    rows = {name: report.get(name, []) for name in _PARTS}
    now = provenance("benchmarks.scale", [], "optuna", "sqlalchemy", "psycopg")
    if report and report.get("commit") != now.get("commit"):
        for old in itertools.chain.from_iterable(rows.values()):
            old.setdefault("commit", report.get("commit", ""))
    key = [row[name] for name in _KEYS[part]]
    rows[part] = [old for old in rows[part] if [old[name] for name in _KEYS[part]] != key] + [row]
    write(file, as_json({**now, **rows}))


if __name__ == "__main__":
    sys.exit(main())
