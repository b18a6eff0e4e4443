"""Trials that `optimize` would leave running in a process that lives on."""

import itertools
import os
import sys
import threading

import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from mfhpo_optuna import IISESampler
from mfhpo_optuna.study.loop.ends import end_with_optimize, note_end
from mfhpo_optuna.study.trials.attributes import STORAGE_FAILED_KEY
from tests.optuna.samplers.races import ARMS, bowl, pulls
from tests.optuna.workers import storage_at


class Ending(IISESampler):
    def __init__(self):
        super().__init__("epochs", ARMS, budget=200, seed=0)

    def before_trial(self, study, trial):
        end_with_optimize(study, trial)
        super().before_trial(study, trial)

    def after_trial(self, study, trial, state, values):
        note_end(study, trial, state, values)
        super().after_trial(study, trial, state, values)


def states(study):
    return [trial.state.name for trial in pulls(study)]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("misbehave", [lambda: sys.exit(3), lambda: 10**400])
def test_what_ends_the_loop_fails_its_trial_and_the_race_goes_on(misbehave, n_jobs):
    study = optuna.create_study(sampler=Ending())

    def objective(trial):
        bowl(trial)
        return misbehave()

    study.optimize(bowl, n_trials=2)
    with pytest.raises((SystemExit, OverflowError)):
        study.optimize(objective, n_jobs=n_jobs, catch=(Exception,))
    assert {trial.state for trial in pulls(study)[2:]} == {TrialState.FAIL}
    study.optimize(bowl)
    assert study.sampler.recommendation(study).finished


def test_a_value_whose_storing_was_interrupted_is_kept(monkeypatch):
    study = optuna.create_study(sampler=Ending())
    tell, earlier = study._storage.set_trial_state_values, itertools.count()

    def interrupted(trial_id, state, values=None):
        if next(earlier) == 4:
            monkeypatch.undo()
            raise KeyboardInterrupt
        return tell(trial_id, state, values)

    monkeypatch.setattr(study._storage, "set_trial_state_values", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(bowl)
    assert states(study) == ["COMPLETE"] * 5
    study.optimize(bowl)
    plain = optuna.create_study(sampler=IISESampler("epochs", ARMS, budget=200, seed=0))
    plain.optimize(bowl)
    assert [trial.params for trial in study.trials] == [trial.params for trial in plain.trials]


def test_an_interrupt_before_the_objective_fails_the_trial(monkeypatch):
    def interrupted(self, study, trial):
        raise KeyboardInterrupt

    study = optuna.create_study(sampler=Ending())
    monkeypatch.setattr(IISESampler, "infer_relative_search_space", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(bowl)
    assert states(study) == ["FAIL"]


def test_what_a_storage_has_kept_from_ending_counts_for_nothing():
    class Locked(InMemoryStorage):
        is_locked = False

        def get_trial(self, trial_id):
            if self.is_locked:
                self.is_locked = False
                raise OSError("database is locked")
            return super().get_trial(trial_id)

    def objective(trial):
        value = bowl(trial)
        storage.is_locked = True
        return value

    storage = Locked()
    study = optuna.create_study(sampler=Ending(), storage=storage)
    with pytest.raises(OSError, match="locked"):
        study.optimize(objective, catch=(Exception,))
    assert states(study) == ["FAIL"]
    assert STORAGE_FAILED_KEY in study.trials[0].user_attrs


def test_a_child_of_the_objective_ends_no_trial(tmp_path):
    study = optuna.create_study(sampler=Ending(), storage=storage_at(f"{tmp_path}/study.log"))

    def objective(trial):
        child = os.fork()
        if not child:
            sys.exit()
        os.waitpid(child, 0)
        return bowl(trial)

    try:
        study.optimize(objective, n_trials=1)
    except SystemExit:
        os._exit(0)
    assert states(study) == ["COMPLETE"]


def test_a_trial_of_a_thread_that_still_runs_is_left_to_it():
    study = optuna.create_study(sampler=Ending())
    has_begun, may_end = threading.Event(), threading.Event()

    def run_another():
        study._thread_local.in_optimize_loop = True  # as `n_jobs` does
        study.ask()
        has_begun.set()
        may_end.wait()

    def objective(trial):
        other.start()
        has_begun.wait()
        raise LookupError

    other = threading.Thread(target=run_another)
    with pytest.raises(LookupError):
        study.optimize(objective)
    may_end.set()
    other.join()
    assert states(study) == ["FAIL", "RUNNING"]
