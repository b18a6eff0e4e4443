"""The tenants' example finds an answer, and its processes are gone afterwards."""

import importlib
import math
import multiprocessing

import optuna
import pytest

pytestmark = pytest.mark.slow

SHORT = ["--longest", "0.2", "--budget", "2"]


@pytest.fixture
def example():
    pytest.importorskip("lightgbm")
    pytest.importorskip("plotly")
    return importlib.import_module("examples.two_tenants")


def test_it_finds_and_prints(example, tmp_path, capsys, monkeypatch):
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


def study_in(db):
    return optuna.load_study(study_name="two tenants", storage=f"sqlite:///{db}")


def measured_in(db):
    return [trial for trial in study_in(db).trials if trial.values]
