"""What the tests of limits share: studies, what is seen of processes, and objectives."""

from __future__ import annotations

import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna

from mfhpo_optuna import time_limited
from mfhpo_optuna.time_limits.processes import descendants

MEGABYTE = 1_000_000
LIMIT = 0.25
# Some hundredths of a second where nothing else runs; a loaded machine may need more.
SOON = 2.0


def run(objective: Any, n_trials: int = 1, limit: float | None = LIMIT, **options: Any) -> Any:
    """A study of an objective with a limit."""
    own = {"memory_limit", "start_method", "warm"}
    of_limits = {name: options.pop(name) for name in own & set(options)}
    how = {name: options.pop(name) for name in {"catch", "n_jobs"} & set(options)}
    study = options.pop("study", None) or optuna.create_study(**options)
    with time_limited(objective, limit, **of_limits) as limited:
        study.optimize(limited, n_trials=n_trials, **how)
    return study


class SlowSampler(optuna.samplers.RandomSampler):
    """Takes a while to draw a parameter alone, and longer for all of them together."""

    def sample_independent(self, *arguments: Any) -> Any:
        time.sleep(0.2)
        return super().sample_independent(*arguments)

    def sample_relative(self, *arguments: Any) -> Any:
        time.sleep(0.5)
        return {}


def only(study: optuna.Study) -> Any:
    (trial,) = study.trials
    return trial


def until(condition: Callable[[], bool], seconds: float = 10.0, pause: float = 0.005) -> bool:
    """Whether it becomes true in this time."""
    give_up_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(pause)
    return True


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be taken in by its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def below() -> set[int]:
    """All processes below this one, those that have ended included."""
    return set(descendants(os.getpid()))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def hangs_if_odd(trial: optuna.Trial) -> float:
    value = trial.suggest_float("x", 0.0, 1.0)
    if trial.number % 2:
        time.sleep(3600.0)
    return value


def fails(trial: optuna.Trial) -> float:
    raise LookupError(f"trial {trial.number}")


def sleeps(trial: Any) -> float:
    time.sleep(3600.0)
    return 0.0


class Notes:
    """Numbers that processes leave in a file, since a child cannot use the trial."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, number: int) -> None:
        with self.path.open("a") as file:
            file.write(f"{number}\n")

    def read(self) -> list[int]:
        return [int(line) for line in self.path.read_text().split()] if self.path.exists() else []


def process_number(trial: optuna.Trial) -> float:
    return float(os.getpid())


def end_helpers() -> None:
    """Python's own helpers stay until the interpreter exits."""
    multiprocessing.forkserver._forkserver._stop()
    multiprocessing.resource_tracker._resource_tracker._stop()
