"""Limits of memory, and how the system is asked for it."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import optuna
import pytest

from mfhpo_optuna.study.attributes import (
    CENSORED_KEY,
    MEMORY_KEY,
    SECONDS_KEY,
)
from mfhpo_optuna.time_limits import processes
from tests.optuna.time_limits.processes import MEGABYTE, only, run, until

optuna.logging.set_verbosity(optuna.logging.WARNING)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
    pytest.mark.usefixtures("nothing_is_left"),
]


def test_memory_is_limited():
    mine = np.ones(25 * MEGABYTE)  # 200 MB that the worker shares with this process

    def objective(trial):
        total = float(mine[0])
        if trial.number == 1:
            if os.fork():  # the child takes it
                time.sleep(3600.0)
            held = np.ones(40 * MEGABYTE)
            total += held[0]
            time.sleep(3600.0)
        return total

    study = run(objective, n_trials=3, limit=60.0, memory_limit=150 * MEGABYTE)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED", "COMPLETE"]
    attributes = study.trials[1].user_attrs
    assert attributes[MEMORY_KEY] == 150 * MEGABYTE
    assert attributes[CENSORED_KEY] == 60.0
    assert attributes[SECONDS_KEY] < 30.0


@pytest.mark.parametrize(
    ("megabytes", "seconds", "state"), [(220, 1.0, "COMPLETE"), (75, 60.0, "PRUNED")]
)
def test_memory_that_is_shared_counts_once(megabytes, seconds, state):
    mine = np.ones(25 * MEGABYTE)  # 200 MB

    def objective(trial):
        held = np.ones(15 * MEGABYTE)  # 120 MB
        children = []
        for _ in range(3):
            children.append(os.fork())
            if not children[-1]:
                time.sleep(seconds if float(mine.sum() + held.sum()) else 0.0)
                os._exit(0)
        for child in children:
            os.waitpid(child, 0)
        return float(held[0])

    trial = only(run(objective, limit=60.0, memory_limit=megabytes * MEGABYTE))
    assert trial.state.name == state
    assert (MEMORY_KEY in trial.user_attrs) is (state == "PRUNED")


def test_the_memory_of_other_programs_counts():
    program = "import time; held = bytearray(b'x') * 100_000_000; time.sleep(3600)"

    def objective(trial):
        return float(subprocess.run([sys.executable, "-c", program]).returncode)

    trial = only(run(objective, limit=60.0, memory_limit=80 * MEGABYTE))
    assert trial.user_attrs[MEMORY_KEY] == 80 * MEGABYTE


def test_a_worker_that_keeps_memory_is_replaced():
    kept = []

    def objective(trial):
        kept.append(np.ones(MEGABYTE * 4 * (trial.number % 2)))  # 32 MB in every second trial
        return float(len(kept))

    study = run(objective, n_trials=5, limit=60.0, memory_limit=100 * MEGABYTE)
    assert [trial.value for trial in study.trials] == [1.0, 2.0, 1.0, 2.0, 1.0]


def test_without_proc_the_system_is_asked(monkeypatch):
    child = subprocess.Popen(["sh", "-c", "sleep 3600 & wait"])
    try:
        assert until(lambda: len(processes.descendants(child.pid)) == 1)
        known = processes.descendants(child.pid)
        monkeypatch.setattr(processes, "_HAS_PROC", False)
        assert processes.descendants(child.pid) == known
        assert set(known) < set(processes.descendants(os.getpid()))
        table = {os.getpid(): (1, 10), 2: (os.getpid(), 30), 3: (2, 5), 4: (1, 1000)}
        monkeypatch.setattr(processes, "_process_table", lambda: table)
        assert processes.memory_below() == 30 + 5 - 10
    finally:
        for pid in known:
            os.kill(pid, signal.SIGKILL)
        child.kill()
        child.wait()
