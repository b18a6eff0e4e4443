"""Measure what the pages show, and write what the commands print to one page.

    python -m benchmarks.evidence.run                  # small, into build/evidence
    python -m benchmarks.evidence.run --size full      # as on the pages, in days

At the full size the results go to benchmarks/results, and `make readme-figures ARGS=--write` makes
the tables of them. A result that the present code has already measured there is not measured again,
so that a command which was stopped goes on. At the small size there are too few runs for a verdict:
it shows that everything runs, and how long it takes. What lacks data is left out, and named. So is
what needs databases, is played once per release, or takes many hours.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.data.folder import HOW, data_folder
from benchmarks.evidence.freshness import is_of_present_code
from benchmarks.evidence.plan import BENCHMARKS, LEFT_OUT, Benchmark
from benchmarks.evidence.tables import RESULTS, table
from benchmarks.provenance import ROOT, provenance
from benchmarks.report import progress, write

BROKE = "broke"


@dataclass(frozen=True)
class Outcome:
    """What became of a benchmark: a word, seconds, and what it printed."""

    benchmark: Benchmark
    word: str
    seconds: float = 0.0
    printed: str = ""


def measure(
    benchmarks: Sequence[Benchmark], size: str, results: Path, printed: Path, data: Path
) -> Iterator[Outcome]:
    """Measure what the present code has not measured yet, one after the other.

    Parameters
    ----------
    benchmarks
        Which.
    size
        "small" or "full".
    results, printed
        Folders of the results, and of what the commands print.
    data
        The data folder.
    """
    results.mkdir(parents=True, exist_ok=True)
    for benchmark in benchmarks:
        kept = printed / f"{benchmark.name}.txt"
        if benchmark.data is not None and not (data / benchmark.data).is_dir():
            yield Outcome(benchmark, f"left out: {data / benchmark.data} is missing; {HOW}")
        elif _is_measured(results / f"{benchmark.name}.json"):
            there = kept.read_text(encoding="utf-8") if kept.exists() else ""
            yield Outcome(benchmark, "was measured before", printed=there)
        else:
            began = time.perf_counter()
            text, failed = _run(benchmark.commands(size, results, data))
            write(kept, text)
            word = "done"
            if failed:
                written = _is_measured(results / f"{benchmark.name}.json")
                word = "done; something does not hold at this size" if written else BROKE
            yield Outcome(benchmark, word, time.perf_counter() - began, text)


def _is_measured(file: Path) -> bool:
    return file.exists() and is_of_present_code(json.loads(file.read_text(encoding="utf-8")))


def _run(commands: Sequence[Sequence[str]]) -> tuple[str, bool]:
    """What commands print, with the errors of those that fail, and whether one did."""
    text, failed = "", False
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        text += done.stdout
        if done.returncode:
            text += f"\n{done.stderr}"
            failed = True
    return text, failed


def page(outcomes: Sequence[Outcome], size: str) -> str:
    """All that was printed, below a table of what was run."""
    about = provenance("benchmarks.evidence.run", [f"--size {size}"])
    rows = [
        [f"`{one.benchmark.name}`", f"`{one.benchmark.module}`", one.word, f"{one.seconds:.0f}"]
        for one in outcomes
    ]
    rows += [[f"`{name}`", f"`{how}`", "left out", ""] for name, how in LEFT_OUT.items()]
    parts = [
        f"# Evidence, {size} size",
        f"`{about['command']}` on {about['date']}, commit {about.get('commit', 'unknown')}, "
        f"mfhpo {version('mfhpo')}.",
        table(["result", "by", "outcome", "seconds"], rows, words=3),
        *(
            f"## {one.benchmark.name}\n\n```text\n{one.printed.strip()}\n```"
            for one in outcomes
            if one.printed.strip()
        ),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status says whether something broke."""
    names = [one.name for one in BENCHMARKS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.evidence.run", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--size", choices=("small", "full"), default="small")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--output", type=Path, help="folder (default: build/evidence)")
    options = parser.parse_args(arguments)
    output = (options.output or ROOT / "build" / "evidence").resolve()
    results = RESULTS if options.size == "full" and options.output is None else output
    chosen = [one for one in BENCHMARKS if one.name in options.only]
    outcomes = []
    for outcome in measure(chosen, options.size, results, output, data_folder().resolve()):
        outcomes.append(outcome)
        progress(f"{outcome.benchmark.name}: {outcome.word}, {outcome.seconds:.0f} s")
        write(output / "evidence.md", page(outcomes, options.size))
    progress(f"{output / 'evidence.md'} shows what they printed")
    return 1 if any(one.word == BROKE for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
