import math

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from mfhpo import ArmWithdrawnWarning
from mfhpo_optuna import Fidelity, IISESampler
from tests.optuna.samplers.races import (
    ARMS,
    CERTIFICATE,
    PULL,
    arms_of,
    bowl,
    configurations,
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


def test_a_parameter_asked_for_at_the_target_only():
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 9)
        shrink = trial.suggest_float("shrink", 0.0, 0.1) if epochs == 9 else 0.0
        return x**2 + shrink + noise(trial)

    sampler = IISESampler("epochs", arms=6, epsilon=0.2, seed=0)
    study = run(sampler, objective)
    configurations(study)
    assert set(study.best_params) == {"x", "shrink", "epochs"}


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


def test_recommendation_before_during_and_after():
    sampler = IISESampler("epochs", ARMS, epsilon=0.1, seed=0)
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match=r"no finished trial.*'epochs'.*nothing to recommend yet"):
        sampler.recommendation(study)
    study.optimize(bowl, n_trials=5)
    during = sampler.recommendation(study)
    assert not during.certified
    assert during.trials == 5
    assert during.params in ARMS
    assert "NOT CERTIFIED" in str(during)
    assert during == sampler.recommendation(study)
    study.optimize(bowl)
    after = sampler.recommendation(study)
    assert after.certified
    assert after.trials == len(pulls(study))
    assert str(after).startswith("CERTIFIED: x=0")
    assert IISESampler("epochs", ARMS, epsilon=0.1, seed=0).recommendation(study) == after


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


def test_the_answer_s_trial_says_the_level_at_which_its_value_was_seen():
    sampler = IISESampler("epochs", ARMS, budget=6, estimated_bias="eliminate", seed=0)
    study = run(sampler, flattering)
    answer = sampler.recommendation(study)
    assert answer.level == 1
    assert study.best_params["epochs"] == answer.level
    assert study.best_value >= answer.mean  # no promise that a certified answer cannot beat


def test_another_optimize_after_the_end_changes_nothing():
    study = run(IISESampler("epochs", ARMS, epsilon=0.1, seed=0))
    best = study.best_trial
    study.optimize(bowl, n_trials=10)
    assert len(study.trials) <= best.number + 2
    assert study.best_trial == best
    study = run(IISESampler("epochs", ARMS, epsilon=0.01, budget=100, seed=0), flattering)
    study.optimize(flattering)
    assert study.sampler.recommendation(study).cost <= 100


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


def test_the_seed_or_else_the_study_s_name_decides():
    def raced(**options):
        name = options.pop("name", None)
        sampler = IISESampler("epochs", 8, epsilon=0.1, **options)
        return sequence(run(sampler, study_name=name))

    assert raced(seed=0) == raced(seed=0) != raced(seed=1)
    assert raced(name="a") == raced(name="a") != raced(name="b")


def test_two_studies_with_one_sampler():
    sampler = IISESampler("epochs", ARMS, epsilon=0.1, seed=0)
    up = optuna.create_study(sampler=sampler, direction="maximize")
    down = optuna.create_study(sampler=sampler)
    for _ in range(8):
        up.optimize(bowl, n_trials=3)
        down.optimize(bowl, n_trials=3)
    up.optimize(bowl)
    down.optimize(bowl)
    assert up.best_params == {"x": -0.9, "epochs": 9}
    assert down.best_params == {"x": 0.0, "epochs": 9}
    assert sequence(down) == sequence(run(IISESampler("epochs", ARMS, epsilon=0.1, seed=0)))


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
        failed = trials[number].user_attrs[PULL]
        again = next(trials[n] for n in range(number + 1, len(trials)) if n not in failing)
        assert again.user_attrs[PULL] == failed
        assert trials[number].state != TrialState.COMPLETE or math.isinf(trials[number].value)


@pytest.mark.parametrize("way", ["raise", "NaN", "prune"])
def test_three_failures_in_a_row_drop_the_arm(way):
    def objective(trial):
        value = bowl(trial)
        return fail(way) if trial.params["x"] == 0.0 else value  # the best one

    sampler = IISESampler("epochs", ARMS, epsilon=0.1, seed=0)
    with pytest.warns(ArmWithdrawnWarning, match=r"arm 2 .*leaves.*3 of 3 pulls.*max_failures=3"):
        study = run(sampler, objective, catch=(ZeroDivisionError,))
    answer = sampler.recommendation(study)
    assert answer.certified
    assert answer.params == {"x": -0.5}
    assert answer.not_compared == ("arm 2 {'x': 0.0}: failed 3 of 3",)
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


def test_failures_before_the_fidelity_is_asked_for_count():
    def objective(trial):
        if trial.suggest_float("x", -1, 1) == 0.0:
            raise optuna.TrialPruned
        return trial.params["x"] ** 2 + 0.1 / trial.suggest_int("epochs", 1, 9) + noise(trial)

    sampler = IISESampler("epochs", [{"x": 0.0}, {"x": 0.5}, {"x": 0.9}], epsilon=0.1, seed=0)
    with pytest.warns(ArmWithdrawnWarning, match="arm 0 .*leaves"):
        study = run(sampler, objective)
    assert study.best_params == {"x": 0.5, "epochs": 9}


@pytest.mark.filterwarnings(
    "ignore:trial .* evaluated", "ignore::mfhpo.ArmWithdrawnWarning", "ignore:the race ended"
)
@pytest.mark.parametrize("delegate", [None, optuna.samplers.RandomSampler(seed=0)])
def test_an_objective_whose_ranges_change_does_not_go_on_for_ever(delegate):
    arms = 4
    sampler = IISESampler("epochs", arms, epsilon=0.1, seed=0, arm_sampler=delegate)
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=4)

    def elsewhere(trial):
        x = trial.suggest_float("x", 2, 3)
        return x**2 + 0.1 / trial.suggest_int("epochs", 1, 9) + noise(trial)

    words = rf"trial {len(study.trials)} evaluated .*instead of arm.*same range.*do not fix"
    with pytest.warns(UserWarning, match=words):
        study.optimize(elsewhere, n_trials=500)
    assert len(pulls(study)) < 504


def test_ranges_that_grow_keep_the_arms():
    def objective(trial):
        width = 1.0 if trial.number < 10 else 2.0
        x = trial.suggest_float("x", -width, width)
        return x**2 + 0.1 / trial.suggest_int("epochs", 1, 9) + noise(trial)

    study = run(IISESampler("epochs", arms=4, epsilon=0.1, seed=0), objective)
    assert len({trial.params["x"] for trial in pulls(study)}) == 4


def test_a_budget_below_one_evaluation_says_so():
    fidelity = Fidelity("epochs", levels=[2, 9])
    with pytest.warns(UserWarning, match="budget=1 is less than the 2 .* epochs=2: nothing") as w:
        study = optuna.create_study(sampler=IISESampler(fidelity, ARMS, budget=1, seed=0))
    assert w[0].filename == __file__
    with pytest.warns(UserWarning, match="ended without an answer: the budget of 1 is spent"):
        study.optimize(bowl, n_trials=5)
    assert all(trial.state == TrialState.PRUNED for trial in study.trials)


@pytest.mark.filterwarnings("ignore")
def test_choices_that_cannot_be_hashed():
    def objective(trial):
        layers = trial.suggest_categorical("layers", [[64], [64, 64]])
        return 0.5 * len(layers) + 0.1 / trial.suggest_int("epochs", 1, 9) + noise(trial)

    study = run(IISESampler("epochs", arms=4, epsilon=0.1, seed=1), objective)
    assert study.best_params["layers"] == [64]
