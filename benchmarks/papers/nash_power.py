"""How near power allocation comes to its equilibrium where enough is paid (paper 001, Section V-C).

    python -m benchmarks.papers.nash_power --output results.json

What a link gains by deviating from a power that is a tenth off is some .005 bits per second and
hertz, and one realisation of the channels has a noise of 1.4: with the paper's 36,000 realisations
for all links, each can know its best power to a tenth and no better. Here the levels average more
realisations, so that a budget for less than one part in twenty takes as many queries.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.papers.nash_applications import power
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, verdict, write

__all__ = ["main"]

_REALISATIONS = (1_000, 4_000)
_N_LINKS = 5
_BUDGET = 6e6
_CLOSE = 0.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether each power is close enough."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.nash_power",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("--seeds", type=int, default=3, help="number of runs (default: 3)")
    parser.add_argument(
        "--budget", type=float, default=_BUDGET, help=f"in realisations (default: {_BUDGET:g})"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    options = parser.parse_args(arguments)
    if options.seeds < 1 or options.workers < 1 or not options.budget > 0.0:
        parser.error("--seeds, --workers and --budget must be positive.")
    tasks = [(seed, _N_LINKS, options.budget, _REALISATIONS) for seed in range(options.seeds)]
    rows = []
    for row in mapped(power, tasks, options.workers):
        rows.append(row)
        powers = ", ".join(f"{value:.2f}" for value in row["powers"])
        progress(f"seed {row['seed']}: {powers}, equilibrium {row['expected']:.2f}")
    holds = {
        f"seed {row['seed']}: each power within {100 * _CLOSE:g} %, is "
        f"{100 * row['largest error']:.1f} %": row["largest error"] <= _CLOSE
        for row in rows
    }
    print(verdict(holds), flush=True)
    if options.output:
        command = [f"--seeds={options.seeds}", f"--budget={options.budget:g}"]
        head = provenance("benchmarks.papers.nash_power", command)
        content = {"realisations": _REALISATIONS, "holds": holds, "power allocation": rows}
        write(options.output, as_json(head | content))
    return 0 if all(holds.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
