import importlib
import math
import multiprocessing
import re

import numpy as np
import optuna
import pytest

pytestmark = pytest.mark.slow


def imported(name, library):
    pytest.importorskip(library)
    pytest.importorskip("plotly")
    return importlib.import_module(f"examples.{name}")


@pytest.fixture(autouse=True)
def few_stages(monkeypatch):
    """Both plots compute as many answers anew; what they show is tested elsewhere."""
    monkeypatch.setattr("mfhpo_optuna.visualization.games._STAGES", 3)


def log_loss(network, x, y):
    scores = network._layers(x)[1]
    return float(np.sum(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(y)), y]))


def test_slopes_are_those_of_the_log_loss():
    example = imported("attacker_defender", "sklearn")
    rng = np.random.default_rng(0)
    network = example.Network(rng)
    x, y = rng.random((5, 64)), rng.integers(10, size=5)
    slopes = network.slopes(x, y)
    pairs = [*zip(network.weights, slopes.of_weights, strict=True), (x, slopes.of_pixels)]
    for weights, slope in pairs:
        place = np.unravel_index(np.argmax(np.abs(slope)), slope.shape)
        sides = []
        for step in (1e-6, -1e-6):
            weights[place] += step
            sides.append(log_loss(network, x, y))
            weights[place] -= step
        assert (sides[0] - sides[1]) / 2e-6 == pytest.approx(slope[place], rel=1e-5)


def test_attacker_and_defender(tmp_path, capsys):
    example = imported("attacker_defender", "sklearn")
    html = tmp_path / "game.html"
    assert example.main(["--trainings", "25", "--fresh", "2", "--output", str(html)]) == 0
    printed = capsys.readouterr().out
    found = re.search(r"EQUILIBRIUM: radius=([\d.]+), steps=(\d+), strength=([\d.]+)", printed)
    assert found is not None, printed
    radius, _, strength = map(float, found.groups())
    assert 0.02 < radius < example.LARGEST
    assert 0.02 < strength <= example.LARGEST
    gets = re.findall(
        r"the found attack.*the defender gets ([\d.]+)|the defender ([\d.]+)", printed
    )
    assert len(gets) == 6
    values = [float(one or other) for one, other in gets]
    assert values[0] > max(values[2], values[4]), "another defence is better against the attack"
    assert html.read_text(encoding="utf-8").count("Plotly.newPlot") == 2


def test_two_tenants(tmp_path, capsys):
    example = imported("two_tenants", "lightgbm")
    db, html = tmp_path / "tenants.db", tmp_path / "tenants.html"
    short = ["--longest", "0.2", "--budget", "2", "--rounds", "1"]
    before = multiprocessing.active_children()  # of other tests
    assert example.main([*short, "--storage", str(db), "--output", str(html)]) == 0
    assert set(multiprocessing.active_children()) <= set(before)
    study = optuna.load_study(study_name="two tenants", storage=f"sqlite:///{db}")
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
    assert len(page) < 8e6, "plotly.js is there twice"
