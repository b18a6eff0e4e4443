import optuna

from mfhpo import Fidelity
from mfhpo_optuna import IISESampler, RaceSampler
from tests.optuna.report.conftest import noisy, summarised


def test_a_shortlist_before_its_first_look_has_no_interval():
    study = optuna.create_study(sampler=RaceSampler("epochs", trials=40, seed=0))
    study.optimize(noisy(0), n_trials=38)
    summary = summarised(study)
    assert summary.status == "best so far"
    assert summary.values[0].bounds is None
    assert not {"how sure", "interval"} & dict(summary.facts).keys()
    assert dict(summary.facts)["for the certificate"] == "2 new evaluations"


def test_a_budget_in_trials_is_paid_in_trials(counted):
    summary = summarised(counted)
    assert dict(summary.facts)["paid"] == "40 trials"


def test_the_level_has_its_name_where_trials_are_counted():
    study = optuna.create_study(sampler=RaceSampler("epochs", trials=40, seed=0))
    study.optimize(noisy(0), n_trials=5)
    assert summarised(study).values[0].who == "what it is worth (epochs=9)"


def test_the_level_has_its_name_where_costs_are_declared():
    fidelity = Fidelity("epochs", levels=[1, 3, 9], costs=[1, 2, 4])
    study = optuna.create_study(sampler=IISESampler(fidelity, arms=3, budget=60, seed=0))
    study.optimize(noisy(0))
    assert "(epochs=9)" in summarised(study).values[0].who


def test_no_level_is_named_without_a_fidelity():
    study = optuna.create_study(sampler=RaceSampler(trials=40, seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=5)
    assert summarised(study).values[0].who == "what it is worth"
