"""Portfolios: make those that are shipped, and check them on other data sets.

    python -m benchmarks.portfolios record
    python -m benchmarks.portfolios make
    python -m benchmarks.portfolios check --output portfolios.json

Recorded trainings that are there are kept, and so are those of LightGBM, which is trained as they
are asked for. `check` compares a portfolio in its order with random search and Optuna's TPE from
scratch, and with TPE after the portfolio. A portfolio made from surrogates is checked on the
development tasks, and the others are made again without each of their data sets in turn. Values
have no noise: those of surrogates, means over splits of the others.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import optuna

import mfhpo.portfolios
from benchmarks.hpo.problems.scikit_learn import DATA_SETS
from benchmarks.hpo.tables.__main__ import build
from benchmarks.portfolios import recordings
from benchmarks.portfolios.checking import AFTER, checked
from benchmarks.portfolios.families import FAMILIES_OF
from benchmarks.portfolios.making import Making, as_text
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write

SHIPPED = Path(mfhpo.portfolios.__file__).parent
_PACKAGES = ("lightgbm", "optuna", "scikit-learn")


def record() -> None:
    """Record the trainings that are not there yet."""
    for model in recordings.MODELS:
        for data_set in DATA_SETS:
            name = f"{model} {data_set}"
            build(name, recordings.FOLDER, recording=recordings.recording_of(name))


def make(names: Sequence[str]) -> None:
    """Write the files of some portfolios."""
    for name in names:
        family = FAMILIES_OF[name]()
        made = Making(family).portfolio()
        about = {
            "sources": family.sources,
            "data sets": len(family.made_from),
            "date": datetime.now(timezone.utc).date().isoformat(),
            "command": f"python -m benchmarks.portfolios make {name}",
        }
        write(SHIPPED / f"{name}.json", as_text(made, about))
        progress(f"{name}: made from {len(family.made_from)} data sets")


def check(names: Sequence[str], seeds: int, output: Path | None) -> None:
    """Compare some portfolios with searches; what a file says about others is kept."""
    for name in names:
        found = checked(name, FAMILIES_OF[name](), seeds)
        print(f"{name}: {json.dumps(found)}", flush=True)
        if output is None:
            continue
        others = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {}
        portfolios = {**others.get("portfolios", {}), name: found}
        about = provenance("benchmarks.portfolios", [f"check --seeds {seeds}"], *_PACKAGES)
        about |= {"unit": "points of accuracy", "evaluations": list(AFTER)}
        write(output, as_json({**about, "portfolios": dict(sorted(portfolios.items()))}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.portfolios",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["record", "make", "check"])
    parser.add_argument("names", nargs="*", help="portfolios (default: all)")
    parser.add_argument("--seeds", type=int, default=30, help="of searches (30; LightGBM fewer)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write what was checked")
    options = parser.parse_args(arguments)
    names = options.names or list(FAMILIES_OF)
    if unknown := sorted({*names} - FAMILIES_OF.keys()):
        parser.error(f"names must be among {list(FAMILIES_OF)}, got {unknown}.")
    if options.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {options.seeds}.")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if options.command == "record":
        record()
    elif options.command == "make":
        make(names)
    else:
        check(names, options.seeds, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
