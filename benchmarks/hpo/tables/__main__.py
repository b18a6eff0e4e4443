"""Record trainings on data that need not be fetched, to be replayed by the comparison.

    python -m benchmarks.hpo.tables --problems "nas digits" "svm digits" --workers 2

Every configuration of a grid is trained at every level with every seed; seconds are CPU time of the
process. What some configurations gave is kept in the folder until all are there, so a command that
was interrupted goes on where it ended. Without --problems, all tables that are not there are built:
the networks of scikit-learn take hours.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.hpo.problems import RECORDED
from benchmarks.hpo.problems.table import FOLDER, Table, configurations_of, table_file
from benchmarks.hpo.tables.grids import Recording, recording_of
from benchmarks.parallel import mapped
from benchmarks.report import progress

_ROWS = 9  # configurations of a part: what is lost at worst when the command is stopped


class _Part(NamedTuple):
    """Some configurations, with all seeds, and the file that keeps what they gave."""

    recording: Recording
    rows: range
    seeds: int
    file: Path


def build(
    name: str,
    folder: Path,
    seeds: int | None = None,
    workers: int = 1,
    recording: Recording | None = None,
) -> Path:
    """Build one table; what is there already is kept.

    Parameters
    ----------
    name
        One of `RECORDED`.
    folder
        Where the table is written, and meanwhile what its parts gave.
    seeds
        Number of splits, each with a seed of the model; by default the recording's.
    workers
        Number of processes.
    recording
        How; by default as the name says.

    Returns
    -------
    Path
        The table's file.
    """
    file = table_file(name, folder)
    if file.is_file():
        return file
    recording = recording_of(name) if recording is None else recording
    seeds = recording.seeds if seeds is None else seeds
    rows = len(configurations_of(recording.grid, recording.conditions))
    folder.mkdir(parents=True, exist_ok=True)
    parts = [
        _Part(
            recording,
            range(start, min(start + _ROWS, rows)),
            seeds,
            file.with_suffix(f".{seeds}-seeds-{start}.npy"),
        )
        for start in range(0, rows, _ROWS)
    ]
    missing = [part for part in parts if not part.file.is_file()]
    began = time.monotonic()
    for done, stop in enumerate(mapped(_record, missing, workers), 1):
        left = (time.monotonic() - began) / done * (len(missing) - done) / 60
        progress(f"{name}: {stop} of {rows} configurations, about {left:.0f} more minutes")
    recorded = np.concatenate([np.load(part.file) for part in parts], axis=1)
    accuracy, log_loss, seconds = recorded
    Table(
        name,
        recording.grid,
        recording.fidelity,
        accuracy,
        seconds.mean(axis=-1),
        log_loss,
        recording.conditions,
    ).save(file)
    for part in parts:
        part.file.unlink()
    return file


def _record(part: _Part) -> int:
    """Train configurations at all levels with all seeds, and keep what they gave."""
    recording = part.recording
    levels = recording.fidelity.levels
    configurations = configurations_of(recording.grid, recording.conditions)
    recording.train(configurations[0], levels[:1], [0])  # takes the time of imports
    seeds = range(part.seeds)
    with threadpool_limits(1):  # the time of several would be counted, and disturb what runs beside
        found = [recording.train(configurations[row], levels, seeds) for row in part.rows]
    unfinished = part.file.with_suffix(".unfinished")
    with unfinished.open("wb") as stream:
        np.save(stream, np.stack(found, axis=1))
    unfinished.replace(part.file)
    return part.rows.stop


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hpo.tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--output", type=Path, default=FOLDER, help="folder of the tables (default: the package's)"
    )
    parser.add_argument("--problems", nargs="+", choices=RECORDED, default=RECORDED, metavar="NAME")
    parser.add_argument(
        "--seeds", type=int, help="trainings of each configuration (default: 10; networks 5)"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    if (options.seeds is not None and options.seeds < 1) or options.workers < 1:
        parser.error("--seeds and --workers must be at least 1.")
    for name in options.problems:
        print(build(name, options.output, options.seeds, options.workers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
