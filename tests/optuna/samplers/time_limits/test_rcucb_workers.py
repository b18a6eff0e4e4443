import time
from datetime import datetime, timedelta

import optuna
import pytest
from optuna.trial import TrialState, create_trial

from mfhpo_optuna import RCUCBSampler
from tests.optuna.samplers.races import answers
from tests.optuna.samplers.time_limits.timed import (
    ARMS,
    LIMIT,
    LIMITS,
    PULL,
    end,
    history,
    make,
    pulls,
    score,
    sequence,
)

HORIZON = 60


@pytest.fixture(scope="module", params=[LIMITS, 3], ids=["given", "derived"])
def uninterrupted(request):
    study = optuna.create_study(
        study_name="service",
        direction="maximize",
        sampler=make(arms=4, limits=request.param, horizon=HORIZON),
    )
    study.optimize(score)
    study.set_user_attr("limits", request.param)
    return study


@pytest.mark.parametrize("lost_at", [0, 2, 25])
def test_a_study_whose_worker_was_killed_goes_on_as_if_nothing_had_happened(uninterrupted, lost_at):
    limits = uninterrupted.user_attrs["limits"]
    study = optuna.create_study(study_name="service", direction="maximize")
    study.sampler = make(arms=4, limits=limits, horizon=HORIZON)
    if lost_at:
        study.optimize(score, n_trials=lost_at)
    study.ask().suggest_float("x", 0.0, 1.0)
    study.sampler = make(arms=4, limits=limits, horizon=HORIZON, lease=1e-6)
    study.optimize(score)
    assert pulls(study)[lost_at].state == TrialState.RUNNING
    assert sequence(study) == sequence(uninterrupted)
    assert study.best_params == uninterrupted.best_params
    assert study.best_value == uninterrupted.best_value
    answer, whole = (s.sampler.recommendation(s) for s in (study, uninterrupted))
    assert answer == whole


def test_what_ends_after_its_lease_counts_as_well():
    study = optuna.create_study(direction="maximize", sampler=make(lease=1e-6))
    late, again = study.ask(), study.ask()
    assert again.user_attrs[PULL]["arm"] == late.user_attrs[PULL]["arm"]
    for trial, value in ((again, 0.6), (late, 0.5)):
        trial.suggest_float("x", 0.0, 1.0)
        study.tell(trial, end(trial, value, 0.5))
    for sampler in (study.sampler, make()):
        assert [result.observation.value for result in history(study, sampler)] == [0.6, 0.5]


def test_what_ends_after_the_horizon_is_no_other_answer():
    study = optuna.create_study(direction="maximize", sampler=make(horizon=HORIZON))
    late = [study.ask() for _ in range(3)]
    for trial in late:
        trial.suggest_float("x", 0.0, 1.0)
    study.optimize(score)
    n_answers = len(answers(study))
    for value, trial in enumerate(late):
        study.tell(trial, end(trial, value / 2.0, 0.01))
    assert len(history(study)) > HORIZON
    assert len(answers(study)) == n_answers


def test_a_zombie_does_not_delay_the_end():
    study = optuna.create_study(direction="maximize", sampler=make(horizon=HORIZON))
    study.ask()
    study.optimize(score, n_trials=500)
    assert len(pulls(study)) == HORIZON + 1


def test_a_trial_that_was_copied_obeys_the_limit_that_came_with_it():
    """While limits are derived, the sampler gives none; the enforcer still reads the old one."""
    study = optuna.create_study(direction="maximize", sampler=RCUCBSampler(ARMS))
    of_other_study = {"trial": 0, "study": "another", "order": 1, "arm": 2, "key": "x"}
    study.enqueue_trial({}, user_attrs={LIMIT: 0.7, PULL: of_other_study})
    trial = study.ask()
    assert trial.user_attrs[PULL]["arm"] == 0
    trial.suggest_float("x", 0.0, 1.0)
    with pytest.raises(optuna.TrialPruned):
        end(trial, 0.5, 1.0)
    study.tell(trial, state=TrialState.PRUNED)
    [result] = history(study)
    assert (result.pull.arm, result.pull.limit, result.observation.censored_at) == (0, 0.7, 0.7)


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_was_set_makes_no_trial_longer_or_shorter_than_nothing(hours):
    """Nor does it those whose seconds were noted so."""
    study = optuna.create_study(direction="maximize", sampler=make(horizon=HORIZON))
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    begun = datetime.now() + timedelta(hours=hours)
    study._storage._get_trial(trial._trial_id).datetime_start = begun
    time.sleep(0.05)
    study.tell(trial, 0.5)
    told = study.trials[0]
    assert 0.05 <= told.user_attrs["mfhpo:seconds"] < 60.0
    noted = {**told.user_attrs, PULL: {**told.user_attrs[PULL], "trial": len(study.trials)}}
    noted["mfhpo:seconds"] = -3599.0
    parts = told.params, told.distributions
    study.add_trial(
        create_trial(value=0.5, params=parts[0], distributions=parts[1], user_attrs=noted)
    )
    for sampler in (study.sampler, make(horizon=HORIZON)):
        seen = [result.observation for result in history(study, sampler)]
        assert [each.value for each in seen] == [0.5, 0.5]
        assert all(each.cost >= 0.0 for each in seen)
    study.optimize(score)
    assert study.sampler.recommendation(study).trials == HORIZON
