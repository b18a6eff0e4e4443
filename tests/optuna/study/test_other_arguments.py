import numpy as np
import optuna
import pytest

from mfhpo_optuna import Fidelity, IISESampler, SearchSampler
from mfhpo_optuna.study.trials.attributes import ARM_KEY


def racing(levels, n_arms=6):
    fidelity = Fidelity("epochs", levels=levels)
    return IISESampler(fidelity, arms=n_arms, seed=0, progress=False)


def searching(levels):
    return SearchSampler(Fidelity("epochs", levels=levels), budget=2000, seed=0, progress=False)


def loss(trial):
    x, epochs = trial.suggest_float("x", 0, 1), trial.suggest_int("epochs", 1, 27)
    return (x - 0.3) ** 2 + 0.1 / epochs


def noisy_loss(trial):
    return loss(trial) + 0.01 * np.random.default_rng(trial.number).normal()


def asked_at_the_target(study):
    """The first trial at the highest of three levels, which is left under way."""
    trial = study.ask()
    while trial.user_attrs[ARM_KEY]["fidelity"] < 2:
        study.tell(trial, noisy_loss(trial))
        trial = study.ask()
    return trial


@pytest.mark.parametrize("make", [racing, searching])
@pytest.mark.parametrize("how", ["running", "asked", "failed"])
@pytest.mark.filterwarnings("ignore:trial .* was evaluated at epochs=1")
def test_a_study_goes_on_with_fewer_levels_beside_a_trial_at_the_highest_one(make, how):
    study = optuna.create_study(sampler=make([1, 9, 27]))
    trial = asked_at_the_target(study)
    if how == "asked":
        noisy_loss(trial)
    if how == "failed":
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    study.sampler = make([9, 27])
    study.optimize(noisy_loss, n_trials=2)
    complete = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
    assert complete[-1].number > trial.number


def test_a_trial_of_an_arm_that_is_no_longer_there_does_not_count():
    study = optuna.create_study(sampler=racing([1, 27]))
    asked = [study.ask() for _ in range(6)]
    assert max(trial.user_attrs[ARM_KEY]["arm"] for trial in asked) == 5
    study.sampler = racing([1, 27], n_arms=3)
    for trial in asked:
        study.tell(trial, noisy_loss(trial))
    answer = study.sampler.recommendation(study)
    assert answer.trials == 3
    assert any("3 trials do not count" in notice for notice in answer.notices)


def on_a_split(trial):
    rng = np.random.default_rng(trial.suggest_int("seed", 0, 1000))
    return loss(trial) + 0.01 * rng.normal()


def made(kind, **options):
    options |= {"budget": 2000} if kind is SearchSampler else {"arms": 6, "measure": 30}
    return kind(Fidelity("epochs", levels=[1, 9, 27]), seed=0, progress=False, **options)


@pytest.mark.parametrize("kind", [IISESampler, SearchSampler])
@pytest.mark.parametrize("before", [noisy_loss, on_a_split])
def test_trials_from_before_there_was_a_replicate_count_for_nothing(kind, before):
    study = optuna.create_study(sampler=made(kind))
    study.optimize(before, n_trials=60)
    study.sampler = made(kind, replicate="seed")
    with pytest.warns(UserWarning, match="was begun without replicate='seed': it does not count"):
        study.optimize(on_a_split, n_trials=3)
    answer = study.sampler.recommendation(study)
    assert answer.trials == 3
    if kind is SearchSampler:
        search = study.sampler.known(study).policy.search
        assert not search._out
        assert not search._failures


@pytest.mark.parametrize("kind", [IISESampler, SearchSampler])
@pytest.mark.filterwarnings("ignore:trial .* was begun without replicate='seed'")
def test_a_trial_that_was_asked_for_before_there_was_a_replicate_comes_to_its_end(kind):
    study = optuna.create_study(sampler=made(kind))
    trial = study.ask()
    study.sampler = made(kind, replicate="seed")
    study.optimize(on_a_split, n_trials=3)
    study.tell(trial, on_a_split(trial))
    assert 0 <= trial.params["seed"] <= 1000
    assert study.sampler.recommendation(study).trials == 3


@pytest.mark.filterwarnings("ignore:trial .* was evaluated at epochs=1")
def test_arms_do_not_fail_by_trials_at_a_level_that_was_given_up():
    def racing_with(levels, bias):
        fidelity = Fidelity("epochs", levels=levels, bias=bias)
        return IISESampler(fidelity, arms=6, epsilon=0.001, sigma=0.05, seed=0, progress=False)

    study = optuna.create_study(sampler=racing_with([1, 9, 27], [0.2, 0.02, 0]))
    study.optimize(noisy_loss, n_trials=60)
    study.sampler = racing_with([9, 27], [0.02, 0])
    study.optimize(noisy_loss, n_trials=2)
    answer = study.sampler.recommendation(study)
    assert answer.failures == 0
    assert answer.arm is not None
