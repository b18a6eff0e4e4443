import math

import numpy as np
import optuna
import pytest

from mfhpo.racing.sentences import FIXED
from mfhpo_optuna import IISESampler, SearchSampler
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
    assert dict(summary.facts)["for the certificate"] == "6 new evaluations"


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


def test_failures_are_among_the_trials_that_were_paid():
    study = optuna.create_study(sampler=SearchSampler("epochs", trials=40, seed=0))
    study.optimize(failing_now_and_then, catch=RuntimeError)
    answer = study.sampler.recommendation(study)
    assert answer.trials + answer.failures == 40
    assert dict(summarised(study).facts)["paid"] == f"40 trials, {answer.failures} of which failed"


def test_a_search_without_a_certificate_says_what_it_saw():
    study = optuna.create_study(sampler=SearchSampler("epochs", budget=60, seed=0))
    study.optimize(noisy(0))
    summary = summarised(study)
    [saw] = summary.values
    assert saw.who == "what the search saw (epochs=9), not evaluated again"
    assert saw.value == study.sampler.recommendation(study).mean
    assert summary.luck == ""


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
