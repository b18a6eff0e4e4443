"""Figures of this version that the next ones are compared with.

    python -m benchmarks.baselines --data FOLDER --output benchmarks/results/baselines.json

What certificates cost (`benchmarks.certificate_cost`, 24 synthetic arms), what the quickstart's
race costs, CPU seconds of 300 trials with an objective that does next to nothing, what `certify`
takes on the evidence page's studies, and how many functions one finished trial passes. FOLDER holds
yahpo. It takes half an hour of CPU.
"""

import argparse
import json
import runpy
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna

from benchmarks import certificate_cost, certify, quickstart
from benchmarks.one_trial import SAMPLERS, functions_of_one_trial, objective
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write

_TRIALS = 300
_REPEATS = 3
_CERTIFY = ("evaluations", "evaluations / the study's trials", "half width of the interval")


def own_seconds(name: str, on_disk: bool) -> float:
    """Return the CPU seconds of a study of 300 free trials, the median of a few."""
    return statistics.median(_seconds(name, on_disk) for _ in range(_REPEATS))


def _seconds(name: str, on_disk: bool) -> float:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = f"sqlite:///{folder}/study.db" if on_disk else None
        study = optuna.create_study(storage=storage, sampler=SAMPLERS[name]())
        began = time.process_time()
        study.optimize(objective, n_trials=_TRIALS)
        return round(time.process_time() - began, 2)


def _costs_of_quickstart(seeds: int) -> list[float]:
    script = runpy.run_path(str(quickstart.SCRIPT), run_name="quickstart")
    costs = []
    for seed in range(seeds):
        sampler = quickstart.SAMPLERS[quickstart.SHARED](seed)
        costs.append(quickstart.race(script, quickstart.SHARED, sampler, splits=1)["cost"])
        progress(f"quickstart, seed {seed}: {costs[-1]:g}")
    return costs


def _written(main: Any, command: Sequence[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.json"
        main([*command, "--output", str(file)])
        report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=200, help="of certificates (default: 200)")
    parser.add_argument("--races", type=int, default=30, help="of the quickstart (default: 30)")
    parser.add_argument("--studies", type=int, default=9, help="seeds of certify (default: 9)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write JSON")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    data, seeds = str(options.data), str(options.seeds)
    costs = _written(certificate_cost.main, ["--seeds", seeds])
    studies = ["--data", f"{data}/yahpo", "--seeds", str(options.studies)]
    certified = _written(certify.main, studies)["summary"]
    races = _costs_of_quickstart(options.races)
    command = [f"--seeds {seeds}", f"--races {options.races}", f"--studies {options.studies}"]
    figures = {
        "certificate cost, full evaluations": costs["table"],
        "quickstart, full evaluations": {"median": statistics.median(races), "of each": races},
        f"CPU seconds of {_TRIALS} trials": [
            {"sampler": name, "memory": own_seconds(name, False), "sqlite": own_seconds(name, True)}
            for name in SAMPLERS
        ],
        "certify": {
            noise: {name: found["default"][name] for name in ("certified", *_CERTIFY)}
            for noise, found in certified.items()
        },
        "one trial": [
            {"sampler": name, "functions": functions, "files": files}
            for name in SAMPLERS
            for functions, files in [functions_of_one_trial(name)]
        ],
    }
    report = provenance("benchmarks.baselines", command, "optuna", "lightgbm", "onnxruntime")
    if options.output:
        write(options.output, as_json({**report, **figures}))
    print(as_json(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
