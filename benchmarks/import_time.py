"""What importing us adds to `import optuna`: seconds, in fresh processes that take turns.

    python -m benchmarks.import_time

Each round starts a process that imports Optuna alone and one for each statement below, which it
runs besides. The result is the median of the differences in wall-clock time over all rounds.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.provenance import provenance
from benchmarks.report import as_json, write

STATEMENTS = (
    "import mfhpo_optuna",
    "from mfhpo_optuna import time_limited",
    "from mfhpo_optuna import SearchSampler",
    "from mfhpo_optuna import *",
    "import scipy.special",
)


def seconds(statement: str) -> float:
    """Wall-clock time of a fresh process that imports Optuna and runs a statement."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import optuna; {statement}"], check=True)
    return time.perf_counter() - began


def measure(rounds: int) -> dict[str, float]:
    """Seconds of `import optuna`, and what each statement adds."""
    for statement in STATEMENTS:  # compiles what is not, and fills the disk's cache
        seconds(statement)
    optuna: list[float] = []
    added: dict[str, list[float]] = {statement: [] for statement in STATEMENTS}
    for _ in range(rounds):
        optuna.append(seconds(""))
        for statement, differences in added.items():
            differences.append(seconds(statement) - optuna[-1])
    return {
        "import optuna": statistics.median(optuna),
        **{statement: statistics.median(values) for statement, values in added.items()},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.import_time", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="processes of each (default 20)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON there as well")
    options = parser.parse_args(arguments)
    report = provenance("benchmarks.import_time", [f"--rounds={options.rounds}"], "optuna") | {
        "seconds": measure(options.rounds)
    }
    print(as_json(report))
    if options.output:
        write(options.output, as_json(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
