"""The attacker's and the defender's example: what it measures is right, and it finds an answer."""

import importlib
import re

import numpy as np
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def example():
    pytest.importorskip("sklearn")
    pytest.importorskip("plotly")
    return importlib.import_module("examples.attacker_defender")


def log_loss(network, x, y):
    scores = network._layers(x)[1]
    return float(np.sum(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(y)), y]))


def test_slopes_are_those_of_the_log_loss(example):
    rng = np.random.default_rng(0)
    network = example.Network(rng)
    x, y = rng.random((5, 64)), rng.integers(10, size=5)
    slopes = network.slopes(x, y)
    for weights, slope in [
        *zip(network.weights, slopes.of_weights, strict=True),
        (x, slopes.of_pixels),
    ]:
        place = np.unravel_index(np.argmax(np.abs(slope)), slope.shape)
        sides = []
        for step in (1e-6, -1e-6):
            weights[place] += step
            sides.append(log_loss(network, x, y))
            weights[place] -= step
        assert (sides[0] - sides[1]) / 2e-6 == pytest.approx(slope[place], rel=1e-5)


def test_it_finds_and_prints(example, tmp_path, capsys, monkeypatch):
    # Both plots compute as many answers anew; what they show is tested elsewhere.
    monkeypatch.setattr("mfhpo_optuna.visualization.games.story._STAGES", 3)
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
