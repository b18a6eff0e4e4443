"""The tenants' example: real processes, which are gone afterwards, however it ended."""

from __future__ import annotations

import contextlib
import importlib
import math
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "two_tenants.py"
SHORT = ["--longest", "0.2", "--budget", "2"]


@pytest.fixture
def example() -> ModuleType:
    pytest.importorskip("lightgbm")
    pytest.importorskip("plotly")
    return importlib.import_module("examples.two_tenants")


def test_it_finds_and_prints(
    example: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Both plots compute as many answers anew; what they show is tested elsewhere.
    monkeypatch.setattr("mfhpo_optuna.visualization.games.story._STAGES", 3)
    db, html = tmp_path / "tenants.db", tmp_path / "tenants.html"
    arguments = [*SHORT, "--rounds", "1", "--storage", str(db), "--output", str(html)]
    assert example.main(arguments) == 0
    assert multiprocessing.active_children() == []

    measured = measured_in(db)
    assert len(measured) >= 10
    seconds = sum(trial.params["seconds"] for trial in measured)
    assert 2.0 - 0.2 < seconds <= 2.0 + 1e-9
    for trial in measured:
        for name, value in zip(("models", "threads"), trial.values, strict=True):
            assert 0.0 < value + example.PRICE * trial.params[name] < math.log(1e9)

    printed = capsys.readouterr().out
    assert "\nEQUILIBRIUM: models=" in printed
    assert f"Pareto front has {len(study_in(db).best_trials)} trials" in printed
    assert printed.count(" gains ") >= 2, "no deviation was measured"
    page = html.read_text(encoding="utf-8")
    assert page.count("Plotly.newPlot") == 2
    assert len(page) < 8e6, "plotly.js is there twice"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_it_is_ended_goes_on_and_leaves_nothing_behind(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    db = tmp_path / "tenants.db"
    killed = run_and_end(db, signal.SIGKILL, 1)
    assert killed.returncode == -signal.SIGKILL
    before = measured_in(db)

    stopped = run_and_end(db, signal.SIGINT, len(before) + 1)
    assert stopped.returncode == 0, stopped.stderr
    assert "EQUILIBRIUM SO FAR: models=" in stopped.stdout
    assert "Measured again" not in stopped.stdout
    assert stopped.stderr == ""
    after = measured_in(db)
    assert len(after) > len(before)
    assert [trial.params for trial in after[: len(before)]] == [trial.params for trial in before]
    states = [trial.state for trial in study_in(db).trials]
    assert states.count(TrialState.RUNNING) <= 1, "that of the process that was killed"
    assert TrialState.FAIL not in states


def run_and_end(
    db: Path, number: signal.Signals, n_trials: int
) -> subprocess.CompletedProcess[str]:
    """Run the example, and end it when it has measured; all its processes must end."""
    paths = [str(ROOT), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLE), "--longest", "0.2", "--budget", "1000", "--storage", db],
        cwd=db.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(lambda: process.poll() is not None or n_measured(db) >= n_trials, 120.0)
        if number == signal.SIGINT:  # as a terminal has it: to all
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, errors = process.communicate(timeout=60)
        wait_until(lambda: not is_group(process.pid), 30.0)
    finally:
        if is_group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def study_in(db: Path) -> optuna.Study:
    return optuna.load_study(study_name="two tenants", storage=f"sqlite:///{db}")


def measured_in(db: Path) -> list[FrozenTrial]:
    return [trial for trial in study_in(db).trials if trial.values]


def n_measured(db: Path) -> int:
    """Number of trials with values; asked without Optuna, which would make missing tables."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
            found = connection.execute("select count(distinct trial_id) from trial_values")
            return int(found.fetchone()[0])
    except sqlite3.OperationalError:  # it is not there yet
        return 0


def is_group(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(holds: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)
