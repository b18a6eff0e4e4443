import numpy as np
import optuna
import pytest

from benchmarks.certify import WAYS, Objective, one_study, summary, what_holds
from benchmarks.hpo.problems import problem_named


@pytest.fixture(scope="module")
def records():
    return [one_study("branin", 5.0, seed, n_trials=20) for seed in (0, 1)]


def test_record_tells_claims_from_truth(records):
    first, second = records
    assert "search_on" in first
    assert "search_on" not in second
    for record in records:
        assert record["best_trial"]["gap"] > 0.0
        default, limited, small, shared = (record[name] for name in WAYS)
        assert default["certified"]
        assert default["within"] <= default["epsilon"]
        assert default["short_of_best"] >= 0.0
        assert limited["evaluations"] <= 20
        assert small["evaluations"] <= 10
        assert shared["certified"]
        assert abs(shared["gap"]) < shared["half_width"]
        assert abs(default["gap"]) < default["half_width"]


def test_summary_counts(records):
    found = summary(records)
    assert found["studies"] == 2
    for name in WAYS:
        shares = [found[name][key] for key in ("better", "equal", "worse")]
        assert sum(shares) == pytest.approx(1.0)
    assert found["default"]["certified"] == 1.0
    assert found["default"]["true value outside its interval"] == 0.0
    assert found["search goes on for as many trials as default"]["studies"] == 1
    gaps = [record["best_trial"]["gap"] for record in records]
    claim = found["best_trial's claim minus its true value"]
    assert claim["mean"] == pytest.approx(sum(gaps) / 2, abs=1e-3)


def test_half_of_the_noise_is_of_the_replicate():
    objective = Objective(problem_named("branin", sigma=5.0), seed=0)
    study = optuna.create_study()
    noises = np.empty((40, 30))
    for replicate in range(30):
        for number in range(40):
            study.enqueue_trial({"x1": 0.0, "x2": 0.0, "replicate": replicate})
            trial = study.ask()
            value = objective.with_replicate(trial)
            noises[number, replicate] = value - objective.true_value({"x1": 0.0, "x2": 0.0})
    assert noises.mean(axis=0).std() == pytest.approx(5.0 * np.sqrt(0.5), rel=0.35)
    assert noises.std(axis=0).mean() == pytest.approx(5.0 * np.sqrt(0.5), rel=0.1)


def test_more_evaluations_say_more():
    few, many = (what_holds(3, budget, 1.0, runs=2)["within"] for budget in (10, 60))
    assert 0.0 < many < few
