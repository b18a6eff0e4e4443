"""Best-arm identification across fidelities: the table and the figure of Multi-Fidelity
Multi-Armed Bandits Revisited (NeurIPS 2023), with the published radius and with ours.

    python -m benchmarks.papers.mf_mab --output mf_mab.json --figure mf_mab.html

Published: the radius sqrt(log(L t^4 / delta) / n) with L = 4 K M, every arm pulled once at every
fidelity first, no safeguard, no audit of the bias bounds. What t counts, and which bounds on the
two best means were assumed, the paper does not say; the readings in
`benchmarks.papers.mf_mab_parts` come closest to its table. EXPLORE-A is reproduced by none that we
know: only its place among the others is.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.papers.mf_mab_parts import PARTS, Outcome
from benchmarks.papers.mf_mab_races import ALGORITHMS, Settings
from benchmarks.provenance import provenance
from benchmarks.report import as_json, html_page, numba_if_installed, progress, verdict, write

_TITLES = {
    "table3": "Table 3: what LUCB costs when the target gets dearer",
    "figure1": "Figure 1: EXPLORE-A against EXPLORE-B",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether all holds that must hold."""
    started = time.perf_counter()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.mf_mab",
        description="Multi-fidelity best-arm identification: published tables and figures.",
    )
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument(
        "--algorithms", nargs="+", choices=ALGORITHMS, default=list(ALGORITHMS), metavar="NAME"
    )
    parser.add_argument("--runs", type=int, default=100, help="per figure (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--quick", action="store_true", help="a look at it, in a minute or two")
    parser.add_argument("--output", type=Path, help="write the figures to this file, as JSON")
    parser.add_argument("--figure", type=Path, help="draw them in this file, as HTML")
    options = parser.parse_args(arguments)
    if options.quick:
        options.runs = 10
    for name, least in (("runs", 2), ("workers", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} must be at least {least}, got {getattr(options, name)}.")
    packages = numba_if_installed()
    if not packages:
        progress("numba is not installed: the races take about thirty times as long.")
    settings = Settings(
        options.runs,
        options.seed,
        options.workers,
        tuple(options.algorithms),
        options.quick,
    )
    outcomes: dict[str, Outcome] = {}
    for name in options.parts:
        outcomes[name] = PARTS[name](settings)
        print(f"{_TITLES[name]}\n{outcomes[name].table}")
        print(verdict(outcomes[name].holds), end="\n\n", flush=True)
        progress(f"{name}: {time.perf_counter() - started:.0f} s so far")
    if options.output:
        command = [f"--{name}={getattr(options, name)}" for name in ("runs", "seed")]
        command.append(f"--parts {' '.join(options.parts)}")
        report = provenance("benchmarks.papers.mf_mab", command, *packages) | {
            "seconds": round(time.perf_counter() - started, 1),
            "parts": {
                name: {"holds": outcome.holds, "rows": outcome.rows}
                for name, outcome in outcomes.items()
            },
        }
        write(options.output, as_json(report))
    if options.figure:
        pictures = {_TITLES[name]: found.picture() for name, found in outcomes.items()}
        write(options.figure, html_page("mf_mab", pictures))
    return 0 if all(all(outcome.holds.values()) for outcome in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
