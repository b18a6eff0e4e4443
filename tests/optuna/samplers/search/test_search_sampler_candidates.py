"""Searches among candidates that were given."""

import numpy as np
import optuna
import pytest

from mfhpo_optuna import SearchSampler
from tests.optuna.samplers.races import noise, pulls

LOW, HIGH = -1.0, 1.0
XS = np.random.default_rng(5).uniform(LOW, HIGH, 40).tolist()
CANDIDATES = [{"x": x, "kind": "ab"[i % 2]} for i, x in enumerate(XS)]


def true_loss(params):
    return (params["x"] - 0.3) ** 2 + 0.2 * (params["kind"] == "b")


def objective(trial):
    trial.suggest_float("x", LOW, HIGH)
    trial.suggest_categorical("kind", ["a", "b"])
    epochs = trial.suggest_int("epochs", 1, 27)
    return true_loss(trial.params) + 0.2 / epochs + 0.1 * noise(trial)


def run(candidates, n_jobs=1, **options):
    sampler = SearchSampler("epochs", budget=30 * 27, candidates=candidates, seed=0, **options)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=2000, n_jobs=n_jobs)
    assert len(study.trials) < 2000, "the search did not end by itself"
    return study


def configurations(study):
    return {(trial.params["x"], trial.params["kind"]) for trial in pulls(study)}


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_only_candidates_are_evaluated_and_a_good_one_is_found(n_jobs):
    study = run(CANDIDATES, n_jobs)
    allowed = {(each["x"], each["kind"]) for each in CANDIDATES}
    assert configurations(study) <= allowed
    assert true_loss(study.best_params) < min(map(true_loss, CANDIDATES)) + 0.05
    answer = study.sampler.recommendation(study)
    assert answer.finished
    assert answer.cost <= 30 * 27
    assert f"{answer.at_target} brought to the target" in str(answer)


def test_what_is_none_of_them_does_not_count():
    sampler = SearchSampler("epochs", budget=30 * 27, candidates=CANDIDATES, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=3)
    study.enqueue_trial({"x": 0.123, "kind": "a"})
    with pytest.warns(UserWarning, match="none of the 40"):
        study.optimize(objective, n_trials=1)
    study.enqueue_trial(CANDIDATES[7])
    study.optimize(objective, n_trials=2000)
    assert (XS[7], "b") in configurations(study)
    assert (0.123, "a") not in configurations(study)
