from datetime import datetime, timedelta

import optuna
import pytest
from optuna.trial import TrialState

from mfhpo import Fidelity
from mfhpo_optuna import IISESampler, SearchSampler
from tests.optuna.samplers.races import PULL, pulls, run, takes

SECONDS = "mfhpo:seconds"


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
    assert PULL in dead.user_attrs
    assert SECONDS not in dead.user_attrs
    known = [t.user_attrs[SECONDS] for t in pulls(study) if t.number != dead.number]
    cost = study.sampler.recommendation(study).cost
    assert sum(known) < cost <= sum(known) + 15.5
