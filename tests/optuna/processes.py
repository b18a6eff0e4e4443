"""What the tests of limits see of processes, and objectives that a new interpreter can import."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import optuna

from mfhpo_optuna._processes import descendants

__all__ = ["alive", "below", "fails", "hangs_if_odd", "open_files", "until"]


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
