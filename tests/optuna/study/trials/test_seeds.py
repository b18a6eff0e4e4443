import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from mfhpo_optuna import MFSampler, SearchSampler, certify, seed_of, time_limited

N = 200


def seeds(name, n=N):
    study = optuna.create_study(study_name=name)
    return [seed_of(study.ask()) for _ in range(n)]


def test_seeds_are_a_function_of_the_name_and_the_number():
    first = seeds("one")
    assert first == seeds("one")
    assert not set(first) & set(seeds("two"))
    assert len(set(first)) == N
    assert all(type(seed) is int and 0 <= seed < 2**31 for seed in first)


@pytest.mark.parametrize("n_configurations", [5, 7])
def test_configurations_in_turn_meet_all_folds(n_configurations):
    n_folds = 5
    folds = np.array(seeds("folds", 100 * n_configurations)) % n_folds
    starts = range(n_configurations)
    counts = np.array([np.bincount(folds[k::n_configurations], minlength=n_folds) for k in starts])
    # Each of the cells has 20 on average, with a standard deviation of 4.
    assert counts.min() >= 4
    assert counts.max() <= 36


def test_workers_agree_and_nothing_is_written(tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(study_name="shared", storage=storage)
    asked = study.ask()
    other = optuna.load_study(study_name="shared", storage=storage)
    again = optuna.trial.Trial(other, asked._trial_id)
    assert seed_of(asked) == seed_of(again) == seeds("shared", 1)[0]
    assert other.trials[0].user_attrs == {}
    assert other.user_attrs == {}


def test_a_trial_in_another_process_has_the_same_seed():
    study = optuna.create_study(study_name="limited")
    study.optimize(time_limited(seed_of, limit=60.0), n_trials=2)
    assert [trial.value for trial in study.trials] == seeds("limited", 2)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_retried_trial_has_a_seed_of_its_own():
    study = optuna.create_study(study_name="retried")
    lost = study.ask()
    callback = optuna.storages.RetryHeartbeatStaleTrialCallback(max_retry=1)
    study.tell(lost, state=TrialState.FAIL)
    callback(study, study.trials[0])
    retried = study.ask()
    assert retried.number == 1
    assert [seed_of(lost), seed_of(retried)] == seeds("retried", 2)


def noisy(trial):
    trial.set_user_attr("seed", seed_of(trial))
    x = trial.suggest_float("x", -1, 1)
    trial.suggest_int("epochs", 1, 9)
    return x**2 + 0.05 * np.random.default_rng(seed_of(trial)).normal()


def on_split(trial):
    split = trial.suggest_int("split", 0, 2**31 - 1)
    return noisy(trial) + 0.5 * np.random.default_rng(split).normal()


def evaluated(study):
    return [trial for trial in study.trials if "seed" in trial.user_attrs]


@pytest.mark.parametrize(
    "sampler",
    [
        MFSampler("epochs", arms=4, replicate="split", epsilon=0.1, seed=0),
        SearchSampler("epochs", replicate="split", budget=150, certify_share=0.4, seed=0),
    ],
)
def test_configurations_of_a_replicate_share_its_seed(sampler):
    study = optuna.create_study(study_name="replicates", sampler=sampler)
    study.optimize(on_split)
    of_split = {}
    for trial in evaluated(study):
        of_split.setdefault(trial.params["split"], set()).add(trial.user_attrs["seed"])
    assert len(of_split) >= 3
    assert all(len(found) == 1 for found in of_split.values())
    assert len(set.union(*of_split.values())) == len(of_split)


@pytest.mark.parametrize("replicate", [None, "split"])
def test_a_certificate_has_other_seeds_than_its_search(replicate):
    objective = noisy if replicate is None else on_split
    study = optuna.create_study(study_name="search", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=20)
    answer = certify(study, objective, top=3, epsilon=0.2, replicate=replicate)
    record = optuna.load_study(study_name=answer.study_name, storage=study._storage)
    searched = {trial.user_attrs["seed"] for trial in study.trials}
    fresh = [trial.user_attrs["seed"] for trial in evaluated(record)]
    assert answer.certified
    assert not searched & set(fresh)
    by_what = {trial.params.get("split", trial.number) for trial in evaluated(record)}
    assert len(set(fresh)) == len(by_what)
