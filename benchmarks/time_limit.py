"""What enforcing limits costs: milliseconds per trial, and until a hang's slot is free again.

    python -m benchmarks.time_limit --json

In memory, with random search and an objective that suggests one parameter. "overhead" is the
wall-clock time of a trial below `time_limited` less that of the plain objective: with a process
that is reused, with memory watched, and for the first trial, which starts the processes, under
each start method. "late" is how long after its limit a trial
that hangs is over, the next one about to begin: asleep, in a C loop that never gives up the
interpreter's lock, and with a child process that ignores signals. Medians, with the 90th
percentile and the largest beside them.
"""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from benchmarks.provenance import provenance
from mfhpo_optuna import time_limited

_LIMIT = 0.1
_WARM_UP = 5

WAYS: dict[str, dict[str, Any]] = {
    "process reused": {},
    "process reused, memory watched": {"memory_limit": 1e12},
}


@dataclass(frozen=True)
class Figure:
    """Milliseconds over some trials."""

    median: float
    percentile_90: float
    largest: float
    trials: int


def objective(trial: optuna.Trial) -> float:
    """One parameter, and nothing else to do."""
    return trial.suggest_float("x", 0.0, 1.0)


def _sleeps(trial: optuna.Trial) -> float:
    objective(trial)
    time.sleep(3600.0)
    return 0.0


def _loops_in_c(trial: optuna.Trial) -> float:
    objective(trial)
    return float(sum(range(10**13)))


def _has_a_child(trial: optuna.Trial) -> float:
    objective(trial)
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.run([sys.executable, "-c", code], start_new_session=True)
    return 0.0


HANGS: dict[str, Callable[[optuna.Trial], float]] = {
    "asleep": _sleeps,
    "C loop": _loops_in_c,
    "child": _has_a_child,
}


def _figure(seconds: Sequence[float], less: float) -> Figure:
    milliseconds = [1e3 * (value - less) for value in seconds]
    return Figure(
        statistics.median(milliseconds),
        float(np.quantile(milliseconds, 0.9)),
        max(milliseconds),
        len(milliseconds),
    )


def _times(function: Callable[[optuna.Trial], Any], trials: int) -> list[float]:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    times = []
    for _ in range(trials):
        began = time.perf_counter()
        study.optimize(function, n_trials=1)
        times.append(time.perf_counter() - began)
    return times


def measure_overhead(way: str, trials: int) -> Figure:
    """Measure trials below `time_limited` beside plain ones."""
    plain = statistics.median(_times(objective, trials))
    with time_limited(objective, limit=60.0, **WAYS[way]) as limited:
        return _figure(_times(limited, _WARM_UP + trials)[_WARM_UP:], plain)


def measure_start(start_method: str, trials: int) -> Figure:
    """Measure first trials."""
    times = []
    for _ in range(trials):
        with time_limited(objective, limit=60.0, start_method=start_method) as limited:
            times += _times(limited, 1)
    return _figure(times, 0.0)


def measure_hang(name: str, trials: int) -> Figure:
    """Measure how long after its limit a hang is over, new processes for the next included."""
    plain = statistics.median(_times(objective, trials))
    with time_limited(HANGS[name], limit=_LIMIT) as limited:
        return _figure(_times(limited, 1 + trials)[1:], plain + _LIMIT)


def _table(report: dict[str, Any]) -> str:
    lines = [f"{'milliseconds':42}{'median':>9}{'90 %':>9}{'largest':>9}{'trials':>8}"]
    for part in ("overhead", "first_trial", "late"):
        for name, figure in report[part].items():
            label = f"{part.replace('_', ' ')}: {name}"
            lines.append(
                f"{label:42}{figure['median']:>9.2f}{figure['percentile_90']:>9.2f}"
                f"{figure['largest']:>9.2f}{figure['trials']:>8}"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.time_limit",
        description="What enforcing limits of time costs, and how late they take effect.",
    )
    parser.add_argument("--trials", type=int, default=300, help="trials per figure (default 300)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON there as well")
    options = parser.parse_args(arguments)
    if options.trials < 1:
        parser.error(f"--trials must be at least 1, got {options.trials}.")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    few = max(1, options.trials // 10)
    report = provenance("benchmarks.time_limit", [f"--trials={options.trials}"], "optuna") | {
        "unit": "milliseconds of wall-clock time",
        "limit_seconds": _LIMIT,
        "overhead": {way: asdict(measure_overhead(way, options.trials)) for way in WAYS},
        "first_trial": {
            method: asdict(measure_start(method, max(1, few // 3)))
            for method in ("fork", "forkserver", "spawn")
        },
        "late": {name: asdict(measure_hang(name, few)) for name in HANGS},
    }
    text = json.dumps(report, indent=2)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    print(text if options.json else _table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
