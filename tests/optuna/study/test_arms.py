from dataclasses import replace

import optuna
import pytest

from mfhpo_optuna import IISESampler
from tests.optuna.samplers.races import (
    ARMS,
    CERTIFICATE,
    PULL,
    arms_of,
    bowl,
    noise,
    pulls,
    run,
)


def test_equal_draws_from_a_small_space_become_one_arm():
    def objective(trial):
        value = {"a": 0.0, "b": 0.5, "c": 1.0}[trial.suggest_categorical("kind", "abc")]
        return value + 0.1 / trial.suggest_int("epochs", 1, 9) + noise(trial)

    sampler = IISESampler("epochs", arms=12, epsilon=0.0, seed=0)
    with pytest.warns(UserWarning, match=r"were drawn equal.*they are merged"):
        study = run(sampler, objective)
    answer = sampler.recommendation(study)
    assert answer.certified
    assert answer.params == {"kind": "a"}
    assert len(answer.survivors) == 1
    at_target = {}
    for trial in pulls(study):
        if trial.params["epochs"] == 9:
            arm = trial.user_attrs[PULL]["arm"]
            at_target[arm] = at_target.get(arm, 0) + 1
    kinds = arms_of(study)
    for kind in "abc":  # equal arms are found out by their first pull at the target
        assert sum(n > 1 for arm, n in at_target.items() if kinds[arm]["kind"] == kind) <= 1


@pytest.mark.filterwarnings("ignore")
def test_arms_that_look_the_same_at_a_cheap_level_stay_apart():
    """A parameter that only the target asks for: declared or drawn, no arm is merged for that."""

    def objective(trial):
        depth = trial.suggest_int("depth", 1, 5)
        epochs = trial.suggest_int("epochs", 1, 9)
        value = -float(depth)
        if epochs == 9:
            value = 1.0 - trial.suggest_float("drop", 0.0, 1.0) if depth == 3 else 0.5
        return value + noise(trial)

    arms = [{"depth": 3, "drop": 0.9}, {"depth": 3, "drop": 0.0}, {"depth": 5, "drop": 0.0}]
    sampler = IISESampler(
        "epochs", arms, bias=[9.0, 9.0, 0.0], sigma=0.05, seed=0, epsilon=0.1, measure=0
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=3000)
    assert sampler.recommendation(study).certified
    assert sampler.recommendation(study).arm == 1


def test_an_enqueued_arm_counts_for_that_arm():
    sampler = IISESampler("epochs", ARMS, epsilon=0.1, estimated_bias="eliminate", seed=0)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"x": 0.6})
    study.optimize(bowl, n_trials=1)
    study.enqueue_trial({"x": 0.0, "epochs": 9})
    study.optimize(bowl)
    assert study.trials[0].params == {"x": 0.6, "epochs": 1}
    assert study.trials[0].user_attrs[PULL]["arm"] == 3
    assert study.trials[1].params == {"x": 0.0, "epochs": 9}
    assert study.trials[1].user_attrs[PULL].items() >= {"arm": 2, "fidelity": 2}.items()
    assert study.best_params == {"x": 0.0, "epochs": 9}


def test_a_new_configuration_once_all_arms_are_known_is_refused():
    sampler = IISESampler("epochs", arms=3, epsilon=0.2, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=20)
    study.enqueue_trial({"x": 0.001})
    enqueued = study.trials[-1].number
    before = sampler.recommendation(study)
    words = rf"trial {enqueued} was enqueued, and .*'x': 0\.001.* is none of the 3 configurations"
    with pytest.warns(UserWarning, match=words):
        study.optimize(bowl, n_trials=1)
    assert study.trials[enqueued].params["x"] == 0.001
    assert PULL not in study.trials[enqueued].user_attrs
    answer = sampler.recommendation(study)
    assert "1 trial does not count" in answer.notices[0]
    assert replace(answer, notices=()) == before
    study.optimize(bowl)
    assert CERTIFICATE in study.best_trial.user_attrs
    assert len(arms_of(study)) == 3
