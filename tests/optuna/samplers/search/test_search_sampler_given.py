"""Searches among candidates that were given, and configurations that were enqueued."""

import numpy as np
import optuna
import pytest

from mfhpo_optuna import IISESampler, SearchSampler
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials.attributes import ARM_KEY
from tests.optuna.samplers.races import noise, pulls, worker

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


def search(fidelity=None, **options):
    sampler = SearchSampler(fidelity, seed=0, progress=False, **options)
    return optuna.create_study(sampler=sampler)


def loss(trial):
    x, epochs = trial.suggest_float("x", 0, 1), trial.suggest_int("epochs", 1, 27)
    return (x - 0.3) ** 2 + 0.1 / epochs


def test_an_enqueued_trial_beyond_the_budget_does_not_end_the_search():
    study = search("epochs", budget=60)
    for x in (0.1, 0.5, 0.9):
        study.enqueue_trial({"x": x, "epochs": 27})
    with pytest.warns(UserWarning, match="what is left of the budget does not pay for it"):
        study.optimize(loss, n_trials=50)
    answer = study.sampler.recommendation(study)
    assert answer.finished
    assert 54 < answer.cost <= 60


def noisy(trial):
    x, seed = trial.suggest_float("x", 0, 1), trial.suggest_int("seed", 0, 1000)
    rng = np.random.default_rng([seed, int(1e6 * x)])
    return (x - 0.3) ** 2 + 0.05 * rng.normal()


def test_what_is_enqueued_while_a_shortlist_is_certified_is_in_the_block_of_the_search():
    study = search(trials=60, certify_share=0.5, replicate="seed")
    shortlist = ()
    while not shortlist:
        study.optimize(noisy, n_trials=1)
        known = study.sampler.known(study)
        shortlist = known.policy.shortlist
    arm = known.policy.ask()[0].arm
    study.enqueue_trial({"x": known.values_of(arm).params["x"]})
    study.optimize(noisy, n_trials=1)
    [trial] = [trial for trial in study.trials if "fixed_params" in trial.system_attrs]
    assert trial.user_attrs[ARM_KEY]["arm"] == arm
    assert trial.user_attrs[ARM_KEY]["block"] == 0


@pytest.mark.parametrize(
    "make", [lambda: SearchSampler("epochs", seed=0), lambda: IISESampler("epochs", arms=1, seed=0)]
)
def test_two_that_evaluate_what_was_enqueued_evaluate_the_same(make):
    storage = optuna.storages.InMemoryStorage()
    one, other = worker(storage, make()), worker(storage, make())
    for _ in range(2):
        one.enqueue_trial({"x": 0.123})
    trials = [one.ask(), other.ask()]
    values = [loss(trial) for trial in reversed(trials)]  # the later one asks for x first
    if isinstance(one.sampler, IISESampler):
        one.tell(trials[0], values[1])
        trials.append(other.ask())
        loss(trials[-1])
    assert {trial.user_attrs[ARM_KEY]["arm"] for trial in trials} == {0}
    assert {trial.params["x"] for trial in trials} == {0.123}


@pytest.mark.parametrize("x", [0.1, 0.2])
def test_two_that_begin_something_enqueued_at_once_begin_two(x):
    storage = optuna.storages.InMemoryStorage()
    one, other = (worker(storage, SearchSampler("epochs", seed=0)) for _ in range(2))
    one.enqueue_trial({"x": 0.1})
    late, claim = [], StudyExperiment.claim

    def claim_late(self, *arguments):
        if not late:
            other.enqueue_trial({"x": x})
            late.append(None)
            late[0] = other.ask()
        claim(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StudyExperiment, "claim", claim_late)
        trials = [one.ask(), late[0]]
    for trial in trials:
        one.tell(trial, loss(trial))
    assert len({trial.user_attrs[ARM_KEY]["arm"] for trial in trials}) == len({0.1, x})
    assert one.sampler.recommendation(one).trials == 2


def test_a_misspelt_name_is_no_part_of_the_answer():
    study = search("epochs", budget=60)
    study.enqueue_trial({"x": 0.3, "y": 1.0})
    with pytest.warns(UserWarning, match="'y', which the objective did not ask for"):
        study.optimize(loss)
    assert study.sampler.recommendation(study).params.keys() == {"x"}
