import numpy as np
import optuna
import pytest

from mfhpo_optuna import SearchSampler
from mfhpo_optuna.study.attributes import ARM_KEY


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
