import json

import numpy as np

from benchmarks import questions


def test_figures_of_one_table_by_hand(monkeypatch):
    values = np.repeat([[1.0], [0.0], [0.0]], 30, axis=1)
    values[1, :29] = 1.0
    monkeypatch.setattr(questions, "right", lambda test: values)
    rows = {row["rule"]: row for row in questions.figures((0, 0, (0.0,)))}
    assert rows["all questions"] == {
        "rule": "all questions",
        "epsilon": 0.0,
        "cost": 90,
        "wrong": False,
    }
    assert rows["certificate"]["sure"]
    assert not rows["certificate"]["wrong"]
    assert rows["certificate"]["cost"] < 90
    half = rows["a random half, by the mean"]
    assert half["cost"] == 45
    [row] = [row for row in questions.summary([half, rows["all questions"]]) if row["saved"]]
    assert (row["saved"], row["races"], row["certified"]) == (0.5, 1, 0.0)


def test_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(questions, "provenance", lambda module, arguments, *packages: {})
    monkeypatch.setattr(questions, "N_QUESTIONS", 60)
    questions.right.cache_clear()
    output = tmp_path / "questions.json"
    given = ["--tests", "1", "--orders", "1", "--epsilons", "0.3", "--workers", "1"]
    assert questions.main([*given, "--output", str(output)]) == 0
    questions.right.cache_clear()
    assert "| 0.3 | certificate |" in capsys.readouterr().out
    rows = json.loads(output.read_text())["rows"]
    assert rows[0]["rule"] == "certificate"
    assert rows[0]["evaluations"] < 720 == rows[-1]["evaluations"]
    assert rows[0]["certified"] == 1.0
