import math

import numpy as np
import optuna
import pytest

from mfhpo import EstimatedNoise, Fidelity
from mfhpo.racing.claims import FIXED
from mfhpo_optuna import IISESampler, SearchSampler
from mfhpo_optuna.report.ledger import ledger_of
from mfhpo_optuna.report.reading import read_study
from tests.optuna.report.conftest import noisy, summarised


def failing_now_and_then(trial):
    if trial.number % 4 == 3:
        raise RuntimeError("a node was lost")
    return noisy(trial.number)(trial)


def test_a_shortlist_before_its_first_look_has_no_interval():
    study = optuna.create_study(sampler=SearchSampler("epochs", trials=40, seed=0))
    study.optimize(noisy(0), n_trials=38)
    summary = summarised(study)
    assert summary.status == "best so far"
    assert summary.values[0].bounds is None
    assert not {"how sure", "interval"} & dict(summary.facts).keys()
    assert dict(summary.facts)["for the certificate"] == "2 new evaluations"


def test_a_shortlist_of_settings_alike_has_a_corrected_value():
    rng = np.random.default_rng(0)

    def alike(trial):
        return 0.0 * trial.suggest_float("x", 0, 1) + rng.normal()

    sampler = SearchSampler(trials=80, certify_share=0.7, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(alike)
    certificate = sampler.recommendation(study).certificate
    facts = dict(summarised(study).facts)
    assert certificate.corrected_mean > certificate.mean  # smaller values are better
    assert facts["corrected"] in str(certificate)
    assert facts["corrected"].startswith(f"{certificate.corrected_mean:.5g} when corrected")
    assert facts["about"] == FIXED


def test_a_budget_in_trials_is_paid_in_trials(counted):
    summary = summarised(counted)
    assert dict(summary.facts)["paid"] == "40 trials"


def test_the_level_has_its_name_where_trials_are_counted():
    study = optuna.create_study(sampler=SearchSampler("epochs", trials=40, seed=0))
    study.optimize(noisy(0), n_trials=5)
    assert summarised(study).values[0].who.startswith("what the search saw (epochs=9)")


def test_the_level_has_its_name_where_costs_are_declared():
    fidelity = Fidelity("epochs", levels=[1, 3, 9], costs=[1, 2, 4])
    study = optuna.create_study(sampler=IISESampler(fidelity, arms=3, budget=60, seed=0))
    study.optimize(noisy(0))
    assert "(epochs=9)" in summarised(study).values[0].who


def test_no_level_is_named_without_a_fidelity():
    study = optuna.create_study(sampler=SearchSampler(trials=40, seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=5)
    assert summarised(study).values[0].who == "what the search saw, not evaluated again"


def test_failures_are_among_the_trials_that_were_paid():
    study = optuna.create_study(sampler=SearchSampler("epochs", trials=40, seed=0))
    study.optimize(failing_now_and_then, catch=RuntimeError)
    answer = study.sampler.recommendation(study)
    assert answer.trials + answer.failures == 40
    assert dict(summarised(study).facts)["paid"] == f"40 trials, {answer.failures} of which failed"


def test_what_was_paid_has_no_unit_where_the_sampler_is_not_known():
    study = optuna.create_study(sampler=SearchSampler("epochs", budget=200, seed=0))
    study.optimize(noisy(0))
    other = optuna.create_study()
    other.add_trials(study.trials)
    reading = read_study(other)
    assert reading.sampler is None
    paid = dict(summarised(other).facts)["paid"]
    assert paid == f"{reading.answer['cost']:g} units of cost in {reading.answer['trials']} trials"
    assert ledger_of(reading).unit == "seconds"  # what its trials have taken


def test_a_search_without_a_certificate_says_what_it_saw():
    study = optuna.create_study(sampler=SearchSampler("epochs", budget=60, seed=0))
    study.optimize(noisy(0))
    summary = summarised(study)
    [saw] = summary.values
    assert saw.who == "what the search saw (epochs=9), not evaluated again"
    assert saw.value == study.sampler.recommendation(study).mean
    assert summary.luck == ""


@pytest.mark.filterwarnings("ignore:repeated evaluations")
def test_nothing_is_said_about_luck_where_there_was_none():
    study = optuna.create_study(sampler=IISESampler("epochs", arms=2, budget=40, seed=0))

    def without_noise(trial):
        return trial.suggest_float("x", 0, 1) + 1 / trial.suggest_int("epochs", 1, 3)

    study.optimize(without_noise)
    worth, promised = summarised(study).values
    assert promised.value == pytest.approx(worth.value)
    assert summarised(study).luck == ""


@pytest.mark.parametrize(
    ("sigma", "is_estimated"), [(None, True), (EstimatedNoise(), True), (0.05, False)]
)
def test_a_tolerance_is_as_estimated_as_the_noise(sigma, is_estimated):
    sampler = IISESampler("epochs", arms=3, budget=120, sigma=sigma, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(noisy(0))
    [tolerance] = [one for one in summarised(study).grounds if "tolerance" in one.text]
    assert tolerance.estimated == is_estimated
    assert tolerance.text.endswith("estimated" if is_estimated else "declared")


@pytest.mark.filterwarnings("ignore:.*leaves the race")
def test_a_race_in_which_every_value_was_nan_has_no_answer():
    study = optuna.create_study(sampler=IISESampler("epochs", arms=2, budget=30, seed=0))

    def objective(trial):
        trial.suggest_float("x", 0, 1)
        return math.nan * trial.suggest_int("epochs", 1, 3)

    study.optimize(objective, n_trials=3)
    summary = summarised(study)
    assert summary.status == "no answer"
    assert summary.values == ()


def test_a_single_trial_is_no_trials():
    study = optuna.create_study(sampler=IISESampler("epochs", arms=2, budget=30, seed=0))
    study.optimize(noisy(0), n_trials=1)
    assert dict(summarised(study).facts)["paid"] == "9 epochs in 1 trial"


def test_a_single_new_evaluation_is_no_evaluations():
    study = optuna.create_study(sampler=SearchSampler("epochs", trials=40, seed=0))
    study.optimize(noisy(0), n_trials=37)
    assert dict(summarised(study).facts)["for the certificate"] == "1 new evaluation"
