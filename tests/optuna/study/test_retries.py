"""Trials that Optuna makes anew when a worker's heartbeat stops, with the lost one's parameters."""

import warnings

import optuna
import pytest
from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.trial import TrialState

from mfhpo_optuna import IISESampler, MFSampler, RCUCBSampler, SearchSampler
from tests.optuna.games.nash_games import QUERY, on_a_grid, play
from tests.optuna.samplers.races import PULL, chosen, noise, pulls

pytestmark = pytest.mark.filterwarnings("ignore:RetryHeartbeatStaleTrialCallback is experimental")


def iise(seed):
    return IISESampler("epochs", 6, epsilon=0.3, seed=seed)


def blocks(seed):
    return MFSampler("epochs", 6, replicate="split", epsilon=0.3, seed=seed)


def search(seed):
    return SearchSampler("epochs", budget=150, seed=seed)


def search_in_blocks(seed):
    return SearchSampler("epochs", budget=150, certify_share=0.5, replicate="split", seed=seed)


def limits(seed):
    return RCUCBSampler(6, [1.0, 4.0], reward_range=(0.0, 3.0), horizon=30, seed=seed)


def objective(trial, until="epochs"):
    names = ["x", "y", "epochs", "split"]
    wanted = names[: names.index(until) + 1]
    params = {name: trial.suggest_float(name, -1, 1) for name in ("x", "y") if name in wanted}
    if "epochs" in wanted:
        params["epochs"] = trial.suggest_int("epochs", 1, 9)
    if "split" in wanted:
        params["split"] = trial.suggest_int("split", 0, 2**31 - 1)
    if until != names[-1] and until != "epochs":
        return None
    return params["x"] ** 2 + params["y"] ** 2 + 0.2 / params["epochs"] + noise(trial)


def make_anew(study, lost):
    """Have Optuna note that a trial's worker is dead, and queue another trial for it."""
    study._storage.set_trial_state_values(lost._trial_id, TrialState.FAIL)
    RetryHeartbeatStaleTrialCallback()(study, study.trials[lost.number])


def lose(study, until):
    """Begin a trial whose worker dies, and make it anew."""
    lost = study.ask()
    objective(lost, until)
    make_anew(study, lost)
    return study.trials[lost.number]


@pytest.mark.parametrize("begun", [0, 14])
@pytest.mark.parametrize("until", ["x", "last"])
@pytest.mark.parametrize("make", [iise, blocks, search, search_in_blocks, limits])
def test_a_trial_made_anew_counts_for_the_configuration_that_was_lost(make, until, begun):
    last = "split" if make in (blocks, search_in_blocks) else "epochs"
    study = optuna.create_study(study_name="lost", sampler=make(0))
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        study.optimize(lambda trial: objective(trial, last), n_trials=begun)
        lost = lose(study, last if until == "last" else until)
        meanwhile = study.ask()  # this one is made of the lost trial
        other = study.ask()  # another worker's
        study.tell(other, objective(other, last))
        study.tell(meanwhile, objective(meanwhile, last))
    again = study.trials[meanwhile.number]
    assert again.system_attrs["failed_trial"] == lost.number
    assert again.params.items() >= lost.params.items()
    assert again.user_attrs[PULL]["arm"] == lost.user_attrs[PULL]["arm"]
    assert [str(w.message) for w in given if "does not count" in str(w.message)] == []
    known = [sampler.known(study).experiment for sampler in (study.sampler, make(0))]
    assert known[0].history() == known[1].history()  # and who reads it later knows the same
    assert str(meanwhile.number) in [result.id for result in known[0].history()]


def waiting(study):
    (trial,) = (trial for trial in study.trials if trial.state == TrialState.WAITING)
    return trial


def test_a_trial_made_anew_has_the_pull_of_the_lost_one():
    study = optuna.create_study(sampler=blocks(0))
    study.optimize(lambda trial: objective(trial, "split"), n_trials=8)
    noted = lose(study, "split")
    number = study.ask().number
    again = study.trials[number]
    assert chosen(again) == chosen(noted)
    assert again.user_attrs[PULL]["retry_of"] == noted.number


def test_its_level_is_that_of_its_parameters():
    """No level was known when the lost trial began, so that none was chosen for it."""
    study = optuna.create_study(sampler=iise(0))
    study.enqueue_trial({"epochs": 9})
    lost = lose(study, "epochs")
    again = study.ask()
    study.tell(again, objective(again))
    result = study.sampler.known(study).experiment.history()[-1]
    assert result.pull.fidelity == 2  # of the levels 1, 3 and 9
    assert study.trials[again.number].user_attrs[PULL]["arm"] == lost.user_attrs[PULL]["arm"]


@pytest.mark.filterwarnings("ignore:trial .* was enqueued")
def test_nothing_is_inherited_from_a_trial_outside_the_race():
    study = optuna.create_study(sampler=iise(0))
    study.optimize(objective, n_trials=12)
    study.enqueue_trial({"x": 0.123, "y": 0.456})
    lose(study, "epochs")
    assert waiting(study).params["x"] == 0.123
    study.optimize(objective, n_trials=1)
    assert PULL not in study.trials[-1].user_attrs


def test_a_race_whose_trials_are_all_lost_once_keeps_all_its_arms():
    study = optuna.create_study(sampler=iise(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for _ in range(6):
            lose(study, "epochs")
            study.optimize(objective, n_trials=1)
    whole = [trial for trial in pulls(study) if trial.state == TrialState.COMPLETE]
    assert sorted(trial.user_attrs[PULL]["arm"] for trial in whole) == list(range(6))
    assert len({trial.params["x"] for trial in whole}) == 6


def test_a_game_counts_what_was_really_evaluated():
    study = play(on_a_grid, n_trials=4)
    lost = study.ask()
    on_a_grid(lost)
    make_anew(study, lost)
    again = study.ask()
    planned = study.trials[again.number].user_attrs[QUERY]["point"]
    units = {name: (value + 1 / 32) / (1 + 1 / 16) for name, value in lost.params.items()}
    assert planned == pytest.approx(units)
    study.tell(again, on_a_grid(again))
    answer = study.sampler.equilibrium(study)
    assert (answer.trials, answer.cost) == (5, 6), "a retry takes the place of what was lost"


@pytest.mark.filterwarnings("ignore:.*but nobody enforces it")
@pytest.mark.parametrize("make", [search, search_in_blocks, limits])
def test_a_trial_made_anew_after_the_end_counts_and_changes_no_answer(make):
    last = "split" if make is search_in_blocks else "epochs"
    study = optuna.create_study(study_name="lost", sampler=make(0))
    study.optimize(lambda trial: objective(trial, last), n_trials=12)
    lost = study.ask()
    objective(lost, last)
    study.optimize(lambda trial: objective(trial, last))
    before = study.sampler.recommendation(study)
    study.tell(lost, state=TrialState.FAIL)
    RetryHeartbeatStaleTrialCallback()(study, study.trials[lost.number])
    made_anew = len(study.trials) - 1
    study.optimize(lambda trial: objective(trial, last))
    after = study.sampler.recommendation(study)
    assert study.trials[made_anew].state == TrialState.COMPLETE
    assert study.trials[made_anew].params == lost.params
    assert (after.arm, after.trials) == (before.arm, before.trials + 1)
