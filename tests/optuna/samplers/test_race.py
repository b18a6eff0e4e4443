import math

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from mfhpo import ArmWithdrawnWarning
from mfhpo_optuna import IISESampler
from tests.optuna.samplers.races import (
    ARMS,
    CERTIFICATE,
    PULL,
    arms_of,
    bowl,
    chosen,
    ended,
    noise,
    pulls,
    run,
    sequence,
)

pytestmark = pytest.mark.filterwarnings("ignore:trial .* was pruned")


def test_conditional_space():
    def objective(trial):
        epochs = trial.suggest_int("epochs", 1, 9)
        model = trial.suggest_categorical("model", ["linear", "tree"])
        if model == "linear":
            value = trial.suggest_float("ridge", 1e-3, 1e3, log=True) * 0 + 1.0
        else:
            value = 0.1 * trial.suggest_int("depth", 1, 9)
        return value + 0.1 / epochs + noise(trial)

    sampler = IISESampler("epochs", arms=8, epsilon=0.1, seed=1)
    study = run(sampler, objective)
    arms = arms_of(study)
    assert {tuple(sorted(arm)) for arm in arms.values()} == {("model", "ridge"), ("depth", "model")}
    lowest = min(arm["depth"] for arm in arms.values() if "depth" in arm)
    assert study.best_params == {"model": "tree", "depth": lowest, "epochs": 9}


def test_best_trial_is_neither_a_cheap_nor_a_lucky_pull():
    had_luck = []

    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 9)
        if ended(trial) >= 40 and x != 0.0 and not had_luck:
            had_luck.append(trial.number)
        luck = -3.0 if trial.number in had_luck else 0.0
        return x**2 - 0.3 / epochs + noise(trial, 0.4) + luck

    arms = [{"x": 0.6}, {"x": 0.0}, {"x": -0.7}]
    sampler = IISESampler("epochs", arms, epsilon=0.05, estimated_bias="eliminate", seed=3)
    study = run(sampler, objective, n_trials=20_000)
    plain = min(pulls(study), key=lambda trial: trial.value)
    assert plain.params != study.best_params  # what Optuna alone would have handed over
    assert plain.value < study.best_value - 0.5
    at_target = [t for t in pulls(study) if t.params["epochs"] == 9]
    lucky = [t for t in at_target if t.params["x"] != 0.0 and t.value < study.best_value]
    assert lucky, "no pull of a worse arm was lucky: the case shows nothing"
    assert study.best_params == {"x": 0.0, "epochs": 9}
    mean = np.mean([t.value for t in at_target if t.params["x"] == 0.0])
    assert study.best_value == pytest.approx(mean)


def test_trials_that_ran_before_the_fidelity_was_asked_for_are_warned_of():
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        if trial.number < 2:  # a branch without the fidelity, and a very lucky one
            return -100.0
        return x**2 + 0.1 / trial.suggest_int("epochs", 1, 9) + noise(trial)

    sampler = IISESampler("epochs", ARMS, epsilon=0.1, seed=0)
    with (
        pytest.warns(UserWarning, match="did not ask for it in trial 0"),
        pytest.warns(UserWarning, match=r"study\.best_trial still shows trial 0"),
    ):
        study = run(sampler, objective)
    assert sampler.recommendation(study).params == {"x": 0.0}


def flattering(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    return x**2 - 1.0 / epochs + noise(trial, 0.2)


def test_a_budget_that_runs_out_gives_an_answer_marked_as_not_certified():
    sampler = IISESampler("epochs", ARMS, epsilon=0.05, budget=200, seed=0)
    study = run(sampler, flattering)
    answer = sampler.recommendation(study)
    assert answer.cost <= 200
    assert answer.cost + 9 > 200 or answer.cost + 3 > 200
    assert not answer.certified
    assert "budget of 200 is spent" in answer.reason
    assert answer.remaining_cost > 0
    assert "about" in str(answer)
    assert study.best_trial.user_attrs[CERTIFICATE]["certified"] is False


@pytest.mark.parametrize("options", [{"epsilon": 0.01, "budget": 100}, {"epsilon": 0.1}])
def test_ask_and_tell_can_see_the_end(options):
    sampler = IISESampler("epochs", ARMS, **options, seed=0)
    study = optuna.create_study(sampler=sampler)
    for _ in range(3000):
        trial = study.ask()
        study.tell(trial, flattering(trial))
        if sampler.recommendation(study).finished:
            break
    assert sampler.recommendation(study).cost <= options.get("budget", math.inf)
    assert study.best_params == {"x": 0.0, "epochs": 9}


def test_a_study_that_was_deleted_and_made_again_is_a_new_race():
    sampler = IISESampler("epochs", ARMS, epsilon=0.1, seed=0)
    storage = optuna.storages.InMemoryStorage()
    first = run(sampler, study_name="again", storage=storage)
    races = [sequence(first)]
    optuna.delete_study(study_name="again", storage=storage)
    races.append(sequence(run(sampler, study_name="again", storage=storage)))
    assert races[0] == races[1]


def fail(way):
    if way == "raise":
        raise ZeroDivisionError
    if way == "prune":
        raise optuna.TrialPruned
    return math.nan


@pytest.mark.parametrize("way", ["raise", "NaN", "prune"])
def test_a_failed_pull_is_repeated(way):
    failing = {3, 4, 11, 20}

    def objective(trial):
        value = bowl(trial)
        return fail(way) if ended(trial) in failing else value

    sampler = IISESampler("epochs", ARMS, epsilon=0.1, seed=0)
    study = run(sampler, objective, catch=(ZeroDivisionError,))
    assert sampler.recommendation(study).certified
    assert study.best_params == {"x": 0.0, "epochs": 9}
    trials = pulls(study)
    for number in failing:
        again = next(trials[n] for n in range(number + 1, len(trials)) if n not in failing)
        assert chosen(again) == chosen(trials[number])
        assert trials[number].state != TrialState.COMPLETE or math.isinf(trials[number].value)


@pytest.mark.parametrize("way", ["raise", "NaN", "prune"])
def test_three_failures_in_a_row_drop_the_arm(way):
    def objective(trial):
        value = bowl(trial)
        return fail(way) if trial.params["x"] == 0.0 else value  # the best one

    sampler = IISESampler("epochs", ARMS, epsilon=0.1, seed=0)
    with pytest.warns(
        ArmWithdrawnWarning, match=r"candidate 2 .*leaves.*3 of 3 pulls.*max_failures=3"
    ):
        study = run(sampler, objective, catch=(ZeroDivisionError,))
    answer = sampler.recommendation(study)
    assert answer.certified
    assert answer.params == {"x": -0.5}
    assert answer.not_compared == ("candidate 2 {'x': 0.0}: failed 3 of 3",)
    assert sum(t.user_attrs[PULL]["arm"] == 2 for t in pulls(study)) == 3


def test_when_every_arm_fails_the_study_stops_and_says_so():
    def objective(trial):
        bowl(trial)
        raise optuna.TrialPruned

    sampler = IISESampler("epochs", ARMS, seed=0)
    with (
        pytest.warns(ArmWithdrawnWarning),
        pytest.warns(UserWarning, match="ended without an answer: every arm failed"),
    ):
        study = run(sampler, objective)
    assert len(study.trials) == 12
    answer = sampler.recommendation(study)
    assert answer.arm is None
    assert answer.params == {}
    assert not answer.certified
    assert "every arm failed" in answer.reason
    with pytest.raises(ValueError, match=r"[Ff]easible|No trials"):
        _ = study.best_trial


@pytest.mark.filterwarnings(
    "ignore:trial .* evaluated", "ignore::mfhpo.ArmWithdrawnWarning", "ignore:the race ended"
)
def test_an_objective_whose_ranges_change_does_not_go_on_for_ever():
    sampler = IISESampler("epochs", 4, epsilon=0.1, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=4)

    def elsewhere(trial):
        x = trial.suggest_float("x", 2, 3)
        return x**2 + 0.1 / trial.suggest_int("epochs", 1, 9) + noise(trial)

    words = rf"trial {len(study.trials)} evaluated .*instead of arm.*same range.*do not fix"
    with (
        pytest.warns(UserWarning, match=words),
        pytest.raises(ValueError, match="the last 10 evaluations were of something else"),
    ):
        study.optimize(elsewhere, n_trials=500)
    assert len(pulls(study)) == 14
