"""A search, or a race, that is told which configuration is in use today."""

import numpy as np
import optuna
import pytest

from mfhpo_optuna import MFSampler, SearchSampler
from mfhpo_optuna.report import ledger, summary
from mfhpo_optuna.study.arms import is_baseline
from mfhpo_optuna.visualization import reading


def bowl(trial):
    noise = 0.02 * np.random.default_rng([5, trial.number]).normal()
    x = trial.suggest_float("x", -1, 1)
    return (x - 0.3) ** 2 + 0.2 / trial.suggest_int("epochs", 1, 27) + noise


def run(study, n_trials=None):
    study.optimize(bowl, n_trials=n_trials)
    return study.sampler.recommendation(study)


def study_of(**options):
    sampler = SearchSampler("epochs", budget=1500, seed=0, **options)
    return optuna.create_study(study_name="today", sampler=sampler)


def evaluated(study, x):
    """The trials of a configuration, without those that are answers: number and level."""
    own = [t for t in study.trials if t.params.get("x") == x and "mfhpo:pull" in t.user_attrs]
    return [(trial.number, trial.params["epochs"]) for trial in own]


def test_given_baseline_is_the_second_trial_and_a_finalist():
    study = study_of(baseline={"x": 1, "epochs": 3}, certify_share=0.4)
    answer = run(study)
    first, *others = evaluated(study, 1.0)
    assert first == (1, 27)
    assert study.trials[1].user_attrs["baseline"] is True
    assert len(others) >= 2  # of the certificate
    assert answer.baseline.verdict == "better"
    assert 0.0 < answer.baseline.at_least < 0.49
    found = reading.read_study(study)
    rows = dict(summary.summary_of(found, ledger.ledger_of(found)).rows)
    assert rows["baseline"] == str(answer.baseline)
    resumed = optuna.load_study(
        study_name="today", storage=study._storage, sampler=study.sampler.reader()
    )
    assert str(resumed.sampler.recommendation(resumed)) == str(answer)
    assert sum(trial.user_attrs.get("baseline") is True for trial in study.trials) == 1


@pytest.mark.parametrize("when", [0, 3])
def test_enqueued_and_marked_trial_is_the_baseline(when):
    study = study_of()
    if when:
        run(study, when)
    study.enqueue_trial({"x": 0.9}, user_attrs={"baseline": True})
    answer = run(study)
    (_, level), *others = evaluated(study, 0.9)
    assert level == 27
    assert len(others) >= 2
    assert answer.baseline.params == {"x": 0.9}


def test_marked_trial_takes_the_place_of_the_argument():
    study = study_of(baseline={"x": 1.0})
    study.enqueue_trial({"x": 0.9}, user_attrs={"baseline": True})
    assert run(study).baseline.params == {"x": 0.9}
    assert evaluated(study, 1.0) == []


def test_baseline_at_a_cheap_level_goes_on_to_the_target():
    study = study_of()
    study.enqueue_trial({"x": 0.9, "epochs": 1}, user_attrs={"baseline": True})
    answer = run(study)
    assert [level for _, level in evaluated(study, 0.9)][:2] == [1, 27]
    assert answer.baseline.params == {"x": 0.9}


@pytest.mark.parametrize("budget", [None, 1500])
def test_race_of_given_arms_names_it(budget):
    arms = [{"x": x} for x in np.linspace(-1.0, 1.0, 5 if budget is None else 20)]
    sampler = MFSampler("epochs", arms=arms, baseline=arms[0], seed=0, budget=budget)
    answer = run(optuna.create_study(sampler=sampler))
    assert answer.baseline.params == {"x": -1.0}
    assert answer.baseline.verdict == "better"


def test_baseline_has_no_part_where_nothing_is_certified():
    with pytest.raises(ValueError, match="baseline=0 has no part in aim='reward per cost'"):
        MFSampler("epochs", arms=[{"x": 0.1}], aim="reward per cost", baseline=0)
    with pytest.raises(
        TypeError, match="baseline must be a dictionary of parameters or None, got 'x'"
    ):
        SearchSampler("epochs", baseline="x")


@pytest.mark.parametrize(
    ("baseline", "words"),
    [
        ({"y": 0.9}, "the objective does not ask for 'y'"),
        ({"x": 9}, "x=9 is not in FloatDistribution"),
        ({}, "it has no parameters"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_baseline_that_the_objective_cannot_evaluate_raises(baseline, words):
    study = study_of(baseline=baseline)
    with pytest.raises(ValueError, match=words):
        study.optimize(bowl)
    assert not any(map(is_baseline, study.trials))
