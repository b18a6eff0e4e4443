"""The tenants' example: real processes, which are gone afterwards, however it ended."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "two_tenants.py"
SHORT = ["--longest", "0.2", "--budget", "2"]


@pytest.fixture
def example() -> ModuleType:
    pytest.importorskip("lightgbm")
    pytest.importorskip("plotly")
    return importlib.import_module("examples.two_tenants")


def study_in(db: Path) -> optuna.Study:
    return optuna.load_study(study_name="two tenants", storage=f"sqlite:///{db}")


def test_it_finds_prints_and_goes_on(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db, html = tmp_path / "tenants.db", tmp_path / "tenants.html"
    arguments = [*SHORT, "--rounds", "1", "--storage", str(db), "--output", str(html)]
    assert example.main(arguments) == 0
    assert multiprocessing.active_children() == []

    study = study_in(db)
    measured = [trial for trial in study.trials if trial.values]
    assert len(measured) >= 10
    seconds = sum(trial.params["seconds"] for trial in measured)
    assert 2.0 - 0.2 < seconds <= 2.0 + 1e-9
    for trial in measured:
        for name, value in zip(("models", "threads"), trial.values, strict=True):
            assert 0.0 < value + example.PRICE * trial.params[name] < math.log(1e9)

    printed = capsys.readouterr().out
    assert "\nEQUILIBRIUM: models=" in printed
    assert f"Pareto front has {len(study.best_trials)} trials" in printed
    assert printed.count(" gains ") >= 2, "no deviation was measured"
    page = html.read_text(encoding="utf-8")
    assert page.count("Plotly.newPlot") == 2

    assert example.main([*arguments, "--budget", "2.2", "--rounds", "0"]) == 0
    went_on = [trial for trial in study_in(db).trials if trial.values]
    assert [trial.params for trial in went_on[: len(measured)]] == [t.params for t in measured]
    assert 2.0 < sum(trial.params["seconds"] for trial in went_on) <= 2.2 + 1e-9
    assert "Measured again" not in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind(number: signal.Signals, tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    db = tmp_path / "tenants.db"
    paths = [str(ROOT), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLE), "--longest", "0.2", "--budget", "1000", "--storage", db],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        wait_until(lambda: is_measuring(db), 120.0)
        if number == signal.SIGINT:  # as a terminal has it: to all
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
        wait_until(lambda: not is_group(process.pid), 30.0)
    finally:
        if is_group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    if number == signal.SIGINT:
        assert process.returncode == 0, err
        assert "EQUILIBRIUM SO FAR: models=" in out
        assert "Measured again" not in out
        assert err == ""
        trials = study_in(db).trials
        assert all(trial.state == TrialState.COMPLETE for trial in trials)


def is_measuring(db: Path) -> bool:
    if not db.exists():
        return False
    try:
        return any(trial.values for trial in study_in(db).trials)
    except Exception:  # it is being made
        return False


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
