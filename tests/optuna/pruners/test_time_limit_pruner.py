import math
import time
from datetime import datetime, timedelta

import optuna
import pytest
from optuna.trial import TrialState

from mfhpo_optuna import RCUCBSampler, TimeLimitPruner, time_limited
from mfhpo_optuna.pruners import time_limit_pruner
from mfhpo_optuna.study.trials.attributes import CENSORED_KEY, ENFORCER_KEY, LIMIT_KEY, SECONDS_KEY
from tests.optuna.time_limits.processes import SlowSampler


def asks(pruner, ran, limit=None):
    """What a trial that has run for some seconds hears, and what is then noted of it."""
    study = optuna.create_study(pruner=pruner)
    trial = study.ask()
    if limit is not None:
        trial.set_user_attr(LIMIT_KEY, limit)
    trial._cached_frozen_trial.datetime_start = datetime.now() - timedelta(seconds=ran)
    trial.report(1.0, 1)
    answer = trial.should_prune()
    assert trial.user_attrs == study.trials[0].user_attrs
    return answer, trial.user_attrs


@pytest.fixture
def moved(monkeypatch):
    """Seconds by which the wall clock was moved on, as a list of one."""
    moved = [0.0]

    class Moved(datetime):
        @classmethod
        def now(cls):
            return datetime.now() + timedelta(seconds=moved[0])

    monkeypatch.setattr(time_limit_pruner, "datetime", Moved)
    return moved


def test_a_trial_that_asks_ends_at_its_limit(tmp_path, moved):
    def reports(trial):
        for step in range(500):
            moved[0] += 1000.0
            trial.report(float(step), step)
            if trial.should_prune():
                raise optuna.TrialPruned

    storage = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(pruner=TimeLimitPruner(limit=3500.0), storage=storage)
    study.optimize(reports, n_trials=1)
    (trial,) = study.trials
    assert trial.state == TrialState.PRUNED
    assert trial.user_attrs == {CENSORED_KEY: 3500.0}
    assert len(trial.intermediate_values) == 4


@pytest.mark.parametrize(
    ("limit", "told", "ran", "censored_at"),
    [
        (60.0, None, 59.0, None),
        (60.0, None, 61.0, 60.0),
        (None, 60, 61.0, 60.0),
        (60.0, 30.0, 45.0, 30.0),
        (30.0, 60.0, 45.0, 30.0),
        (None, None, 1e6, None),
        (math.inf, None, 1e6, None),
    ],
)
def test_the_smaller_limit_counts(limit, told, ran, censored_at):
    answer, attributes = asks(TimeLimitPruner(limit), ran, told)
    assert answer is (censored_at is not None)
    assert attributes.get(CENSORED_KEY) == censored_at
    assert attributes.get(ENFORCER_KEY) == (None if told is None else "TimeLimitPruner")
    assert SECONDS_KEY not in attributes


def test_both_enforcers_read_the_same_clock(shared_clock, moved):
    def objective(trial):
        value = trial.suggest_float("x", 0.0, 1.0)
        return value + 2.0 * trial.should_prune()

    def sleep(seconds):
        shared_clock.sleep(1000.0 * seconds)
        moved[0] += 1000.0 * seconds

    study = optuna.create_study(pruner=TimeLimitPruner(limit=500.0), sampler=SlowSampler(sleep))
    with time_limited(objective, limit=600.0) as limited:
        study.optimize(limited, n_trials=1)
    (trial,) = study.trials
    assert trial.state == TrialState.COMPLETE
    assert trial.value <= 1.0  # it was not told to stop
    assert set(trial.user_attrs) == {SECONDS_KEY}
    study.optimize(objective, n_trials=1)
    assert study.trials[1].value >= 2.0  # by the wall clock, it was


@pytest.mark.parametrize("limited", [False, True])
def test_a_trial_that_goes_on_is_marked_and_its_seconds_are_those_at_its_end(limited):
    def objective(trial):
        time.sleep(0.1)
        trial.report(1.0, 0)
        trial.should_prune()
        time.sleep(0.2)
        return 1.0

    if limited:
        sampler = optuna.samplers.RandomSampler()
        study = optuna.create_study(pruner=TimeLimitPruner(0.05), sampler=sampler)
        with time_limited(objective, limit=30.0) as function:
            study.optimize(function, n_trials=1)
    else:
        sampler = RCUCBSampler(arms=2, limits=[0.05], reward_range=(0.0, 1.0), seed=0)
        study = optuna.create_study(direction="maximize", pruner=TimeLimitPruner(), sampler=sampler)
        study.optimize(objective, n_trials=1)
    trial = study.trials[0]
    assert trial.state == TrialState.COMPLETE
    assert trial.user_attrs[CENSORED_KEY] == 0.05
    assert trial.user_attrs[SECONDS_KEY] >= 0.3
