"""Record trainings on data that ships with scikit-learn, to be replayed by the comparison.

    python -m benchmarks.hpo.tables --problems "svm digits" --seeds 10 --workers 2

Every configuration of a grid is trained at every level with every seed; seconds are CPU time of the
process. What one seed gave is kept in the folder until all seeds are there, so a command that was
interrupted goes on where it ended. Without --problems, all tables that are not there are built:
the networks take hours.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.hpo.problems import LIVE
from benchmarks.hpo.problems.scikit_learn import MODELS, trained
from benchmarks.hpo.problems.table import FOLDER, Table, configurations_of, table_file
from benchmarks.parallel import mapped
from benchmarks.report import progress


def _powers(base: float, low: float, high: float, count: int) -> tuple[float, ...]:
    return tuple(float(base**exponent) for exponent in np.linspace(low, high, count))


GRIDS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "logistic_regression": {"alpha": _powers(10, -5, 0, 11), "eta0": _powers(10, -5, 0, 11)},
    "svm": {"C": _powers(2, -10, 10, 11), "gamma": _powers(2, -10, 10, 11)},
    "random_forest": {
        "max_depth": (1, 3, 7, 18, 50),
        "min_samples_split": (2, 16, 128),
        "max_features": (0.0, 0.33, 0.67, 1.0),
        "min_samples_leaf": (1, 7, 20),
    },
    "gradient_boosting": {
        "learning_rate": _powers(2, -10, 0, 6),
        "max_depth": (1, 3, 7, 18),
        "colsample_bytree": (0.1, 0.4, 1.0),
        "reg_lambda": _powers(2, -10, 10, 5),
    },
    "mlp": {
        "depth": (1, 2, 3),
        "width": (16, 64, 256),
        "batch_size": (16, 64, 256),
        "alpha": _powers(10, -8, 0, 3),
        "learning_rate_init": _powers(10, -5, 0, 6),
    },
}
"""By model and parameter, the values that are tried; all of them are in its space."""


def build(
    name: str,
    folder: Path,
    seeds: int,
    workers: int = 1,
    grid: Mapping[str, tuple[float, ...]] | None = None,
) -> Path:
    """Build one table; what is there already is kept.

    Parameters
    ----------
    name
        One of `LIVE`.
    folder
        Where the table is written, and meanwhile what each seed gave.
    seeds
        Number of splits, each with a seed of the model.
    workers
        Number of processes; a seed is one's task.
    grid
        Instead of the model's in `GRIDS`.

    Returns
    -------
    Path
        The table's file.
    """
    file = table_file(name, folder)
    if file.is_file():
        return file
    model, _, data_set = name.partition(" ")
    grid = GRIDS[model] if grid is None else grid
    parts = [file.with_suffix(f".seed-{seed}.npy") for seed in range(seeds)]
    missing = [seed for seed, part in enumerate(parts) if not part.is_file()]
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [(model, data_set, grid, seed, parts[seed]) for seed in missing]
    for done, seed in enumerate(mapped(_record, tasks, workers), seeds - len(missing) + 1):
        progress(f"{name}: seed {seed}, {done} of {seeds}")
    recorded = np.stack([np.load(part) for part in parts], axis=-1)
    fidelity = MODELS[model].fidelity
    Table(name, grid, fidelity, recorded[0], recorded[1].mean(axis=-1)).save(file)
    for part in parts:
        part.unlink()
    return file


def _record(task: tuple[str, str, Mapping[str, tuple[float, ...]], int, Path]) -> int:
    """Train all configurations at all levels with one seed; write values and seconds."""
    model, data_set, grid, seed, file = task
    levels = MODELS[model].fidelity.levels
    configurations = configurations_of(grid)
    trained(model, data_set, configurations[0], levels[0], seed)  # takes the time of imports
    found = np.array(
        [
            [
                (result.value, result.cost)
                for result in (
                    trained(model, data_set, configuration, level, seed) for level in levels
                )
            ]
            for configuration in configurations
        ]
    )
    unfinished = file.with_suffix(".unfinished")
    with unfinished.open("wb") as stream:
        np.save(stream, np.moveaxis(found, -1, 0))
    unfinished.replace(file)
    return seed


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
    parser.add_argument("--problems", nargs="+", choices=LIVE, default=LIVE, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=10, help="trainings of each configuration")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    if options.seeds < 1 or options.workers < 1:
        parser.error("--seeds and --workers must be at least 1.")
    for name in options.problems:
        print(build(name, options.output, options.seeds, options.workers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
