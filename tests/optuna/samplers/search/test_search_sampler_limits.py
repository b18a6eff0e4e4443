"""SearchSampler sets limits that follow from worth, and learns from trials that were stopped."""

import itertools
import time
import warnings

import optuna
import pytest
from optuna.trial import TrialState

from mfhpo_optuna import SearchSampler, TimeLimitPruner, time_limited
from tests.optuna.samplers.races import pulls, run, takes

LIMIT, STOPPED_AT, ARM = "mfhpo:limit", "mfhpo:censored_at", "mfhpo:pull"


def is_slow(x):
    return int(x * 1e6) % 7 == 3


def obedient(trial):
    """A seventh of all configurations takes 50 times as long as the others, if it may."""
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 27)
    seconds = float(epochs * (50 if is_slow(x) else 1))
    limit = trial.user_attrs.get(LIMIT, seconds)
    takes(min(seconds, limit))
    if seconds > limit:
        trial.set_user_attr(STOPPED_AT, limit)
        raise optuna.TrialPruned
    return (x - 0.3) ** 2 + 0.2 / epochs


def stopped(study):
    return [trial for trial in pulls(study) if STOPPED_AT in trial.user_attrs]


def test_trials_that_are_stopped_are_no_failures(clock):
    sampler = SearchSampler("epochs", seconds=1000.0, certify_share=0.0, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        study = run(sampler, obedient)
    answer = sampler.recommendation(study)
    assert len(stopped(study)) == answer.stopped > 0
    assert answer.failures == 0
    assert answer.saved > 0.0
    assert f"stopped     {answer.stopped} trials" in str(answer)
    assert abs(answer.params["x"] - 0.3) < 0.1
    assert sum(trial.user_attrs["mfhpo:seconds"] for trial in pulls(study)) < 1200.0


def test_who_reads_the_study_later_knows_the_prices_and_the_limits(clock):
    sampler = SearchSampler("epochs", seconds=1000.0, seed=0)
    study = run(sampler, obedient, n_trials=30)
    assert stopped(study)
    others = [SearchSampler("epochs", seconds=1000.0, seed=0) for _ in range(2)]
    assert others[0].recommendation(study) == sampler.recommendation(study)
    copied = optuna.create_study(study_name=study.study_name, sampler=others[1])
    for key, value in study.user_attrs.items():
        copied.set_user_attr(key, value)
    copied.add_trials(study.trials)
    limits = [one.ask().user_attrs[LIMIT] for one in (study, copied)]
    assert limits[0] == limits[1]


def test_a_configuration_that_needs_too_much_memory_is_not_tried_again(clock):
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 27)
        takes(epochs)
        if is_slow(x):
            trial.set_user_attr("mfhpo:memory_limit", 1e9)
            trial.set_user_attr(STOPPED_AT, 60.0)
            raise optuna.TrialPruned
        return (x - 0.3) ** 2 + 0.2 / epochs

    sampler = SearchSampler("epochs", seconds=1000.0, certify_share=0.0, seed=0)
    study = run(sampler, objective)
    arms = [trial.user_attrs[ARM]["arm"] for trial in stopped(study)]
    assert len(arms) > 1
    assert len(set(arms)) == len(arms)
    answer = sampler.recommendation(study)
    assert (answer.stopped, answer.saved, answer.failures) == (len(arms), 0.0, 0)


def slow_ones_hang(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    for step in itertools.count():
        trial.report(step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
        time.sleep(0.001 * epochs)
        if not is_slow(x):
            return (x - 0.3) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("enforcer", ["time_limited", "TimeLimitPruner"])
def test_nothing_hangs(enforcer):
    sampler = SearchSampler("epochs", seconds=2.0, certify_share=0.0, seed=0)
    cooperative = enforcer == "TimeLimitPruner"
    pruner = TimeLimitPruner() if cooperative else optuna.pruners.NopPruner()
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    with time_limited(slow_ones_hang) as limited:
        study.optimize(slow_ones_hang if cooperative else limited, n_trials=150)
    assert stopped(study)
    assert not [trial for trial in study.trials if trial.state == TrialState.RUNNING]
    answer = sampler.recommendation(study)
    assert answer.stopped == len(stopped(study))
    assert not is_slow(answer.params["x"])
