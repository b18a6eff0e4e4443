"""The comparison of rules that stop studies."""

import json

import numpy as np
import pytest

from benchmarks import settled


def test_patience_by_hand():
    values = np.array([0.0, 1.0, *[0.5] * 40])
    assert (
        settled.patience(values, 1.0, 1.0).n == 31
    )  # nothing exceeds the first one by more than 1
    assert settled.patience(values, 0.1, 1.0).n == 32


def test_the_rule_is_that_of_the_callback():
    values = np.random.default_rng(1).normal(size=400)
    stop = settled.settled(values, sigma=0.5, epsilons=2.0)
    rule = settled.Settling(epsilon=1.0)
    assert rule.is_settled(values[: stop.n])
    assert not rule.is_settled(values[: stop.n - 1])
    assert stop.chance == rule.outlook(values[: stop.n]).chance


def test_what_is_lost_and_what_came_true():
    values, truths = np.array([1.0, 3.0, 2.0, 5.0]), np.array([1.0, 2.0, 2.5, 4.0])
    judged = settled._judged(settled.Stop(2, 1.5, 0.1), values, truths)
    assert (judged["lost"], judged["better"]) == (True, True)
    judged = settled._judged(settled.Stop(2, 2.0, 0.1), values, truths)
    assert (judged["lost"], judged["better"]) == (False, False)


@pytest.mark.slow
def test_a_small_comparison(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(settled, "DEVELOPMENT_TASKS", ("hartmann6",))
    monkeypatch.setattr(settled, "N_TRIALS", 90)
    output = tmp_path / "settled.json"
    given = ["--samplers", "random", "TPE", "--seeds", "2", "--workers", "1", "--output"]
    assert settled.main([*given, str(output)]) == 0
    rows = json.loads(output.read_text())["rows"]
    assert {row["sampler"] for row in rows} == {None, "random", "TPE"}
    assert all(0.0 <= row["saved"] < 1.0 for row in rows)
    assert "| settled, defaults | all | 4 |" in capsys.readouterr().out
