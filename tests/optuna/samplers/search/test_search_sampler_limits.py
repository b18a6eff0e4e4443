"""Searches that pay in seconds, set limits by worth, and learn from trials that were stopped."""

import itertools
import time
import warnings
from datetime import datetime, timedelta

import optuna
import pytest
from optuna.trial import TrialState

from mfhpo_optuna import Fidelity, IISESampler, SearchSampler, TimeLimitPruner, time_limited
from tests.optuna.samplers.races import pulls, run, takes

LIMIT, STOPPED_AT, ARM = "mfhpo:limit", "mfhpo:censored_at", "mfhpo:pull"
SECONDS = "mfhpo:seconds"


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
    assert (answer.stopped, answer.failures) == (len(arms), 0)


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


def valley(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 27)
    takes(2.0 + 0.5 * epochs)
    return (x - 0.3) ** 2 + 0.2 / epochs


def seconds_of(study):
    return [trial.user_attrs[SECONDS] for trial in pulls(study)]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_trials_that_fail_before_they_ask_for_the_fidelity_are_paid_for(clock):
    def objective(trial):
        if trial.number < 5:
            trial.suggest_float("x", -1, 1)
            takes(10.0)
            raise ArithmeticError
        return valley(trial)

    sampler = SearchSampler("epochs", seconds=200.0, seed=0)
    study = run(sampler, objective, catch=(ArithmeticError,))
    assert sum(trial.state == TrialState.FAIL for trial in study.trials) == 5
    assert sampler.recommendation(study).cost == pytest.approx(sum(seconds_of(study)))
    assert 180.0 < sum(seconds_of(study)) < 220.0


def test_whoever_goes_on_with_the_study_goes_on_with_its_costs(clock):
    options = {"seconds": 60.0, "checkpoints": True, "seed": 0}
    straight = run(SearchSampler("epochs", **options), valley)
    stopped = optuna.create_study(sampler=SearchSampler("epochs", **options))
    for _ in range(len(pulls(straight))):
        stopped.optimize(valley, n_trials=1)
        stopped.sampler = SearchSampler("epochs", **options)
    assert [t.params["epochs"] for t in pulls(stopped)] == [
        t.params["epochs"] for t in pulls(straight)
    ]
    answer = stopped.sampler.recommendation(stopped)
    assert answer.cost == straight.sampler.recommendation(straight).cost


@pytest.mark.parametrize(
    "make",
    [
        lambda: SearchSampler("epochs", seconds=150.0, seed=0),
        lambda: IISESampler(
            Fidelity("epochs", levels=[1, 27], costs="measured"),
            [{"x": x} for x in (0.0, 0.3, 0.9)],
            seed=0,
        ),
    ],
    ids=["search", "race"],
)
def test_a_worker_that_died_is_not_paid_for_until_somebody_notices(clock, make):
    """The storage declares it dead hours later: `after_trial` is never called for it."""
    sampler = make()
    study = optuna.create_study(sampler=sampler)
    study.optimize(valley, n_trials=4)
    lost = study.ask()
    running = study._storage._get_trial(lost._trial_id)
    running.datetime_start = datetime.now() - timedelta(hours=5)
    study._storage.set_trial_state_values(lost._trial_id, TrialState.FAIL)
    study.sampler = make()
    study.optimize(valley, n_trials=2)
    (dead,) = [t for t in study.trials if t.state == TrialState.FAIL]
    assert ARM in dead.user_attrs
    assert SECONDS not in dead.user_attrs
    known = [t.user_attrs[SECONDS] for t in pulls(study) if t.number != dead.number]
    cost = study.sampler.recommendation(study).cost
    assert sum(known) < cost <= sum(known) + 15.5
