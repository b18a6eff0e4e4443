import optuna

from mfhpo_optuna import RaceSampler
from tests.optuna.report.conftest import noisy, summarised


def test_a_shortlist_before_its_first_look_has_no_interval():
    study = optuna.create_study(sampler=RaceSampler("epochs", trials=40, seed=0))
    study.optimize(noisy(0), n_trials=38)
    summary = summarised(study)
    assert summary.status == "best so far"
    assert summary.values[0].bounds is None
    assert not {"how sure", "interval"} & dict(summary.facts).keys()
    assert dict(summary.facts)["for the certificate"] == "2 new evaluations"
