import copy
import itertools
import math
import multiprocessing
import os
import pickle
import tempfile
import threading
import warnings

import optuna
import pytest
from optuna.trial import TrialState

from mfhpo_optuna import time_limited
from mfhpo_optuna.study.trials.attributes import CENSORED_KEY, ENFORCER_KEY, LIMIT_KEY, SECONDS_KEY
from mfhpo_optuna.time_limits.worker import Answers
from tests.optuna.time_limits.processes import (
    LIMIT,
    SlowSampler,
    below,
    hangs_if_odd,
    only,
    open_files,
    run,
    sleeps,
    until,
)

# Said where a test before this one has loaded a library with OpenMP.
pytestmark = pytest.mark.filterwarnings("ignore:trial 0, the first one, was stopped:UserWarning")


def test_pruning_by_the_objective_is_no_censoring():
    def objective(trial):
        trial.report(0.5, 1)
        raise optuna.TrialPruned("hopeless")

    trial = only(run(objective))
    assert trial.state == TrialState.PRUNED
    assert trial.value == 0.5
    assert CENSORED_KEY not in trial.user_attrs
    assert SECONDS_KEY in trial.user_attrs


def test_the_samplers_time_does_not_count(shared_clock):
    def objective(trial):
        shared_clock.sleep(0.1)
        drawn_together = len(trial.relative_params)
        return drawn_together + sum(trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(4))

    trial = only(run(objective, sampler=SlowSampler(shared_clock.sleep)))
    assert trial.state == TrialState.COMPLETE
    assert trial.user_attrs[SECONDS_KEY] == pytest.approx(0.1)


STEPS = itertools.count()


def _asks_for_what_is_refused(trial):
    with pytest.raises(ValueError, match="high"):
        trial.suggest_float("x", 1.0, 0.0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda trial: trial.report(1.0, next(STEPS)),
        lambda trial: trial.relative_params,
        lambda trial: trial.suggest_float("x", 0.0, 1.0),
        _asks_for_what_is_refused,
    ],
    ids=["report", "relative", "known", "refused"],
)
def test_asking_without_end_is_the_objectives_own_time(ask, tmp_path, shared_clock, monkeypatch):
    def objective(trial):
        while True:
            ask(trial)

    def slowly_done(answers, call, done=Answers._done):
        shared_clock.sleep(0.1)
        return done(answers, call)

    monkeypatch.setattr(Answers, "_done", slowly_done)
    trial = only(run(objective, storage=f"sqlite:///{tmp_path}/study.db"))
    assert trial.state == TrialState.PRUNED
    assert trial.user_attrs[CENSORED_KEY] == LIMIT
    assert trial.user_attrs[SECONDS_KEY] >= LIMIT


def test_the_smaller_limit_counts():
    class Sets(optuna.samplers.RandomSampler):
        def before_trial(self, study, trial):
            limit = [0.1, 3600.0][trial.number]
            study._storage.set_trial_user_attr(trial._trial_id, LIMIT_KEY, limit)
            trial.user_attrs[LIMIT_KEY] = limit

    study = run(sleeps, 2, limit=0.3, sampler=Sets())
    assert [trial.user_attrs[CENSORED_KEY] for trial in study.trials] == [0.1, 0.3]
    assert [trial.user_attrs[ENFORCER_KEY] for trial in study.trials] == ["time_limited"] * 2
    assert only(run(sleeps, limit=None, sampler=Sets())).user_attrs[CENSORED_KEY] == 0.1


def test_without_any_limit_there_is_one_warning():
    with pytest.warns(UserWarning, match="limit=60") as caught:
        study = run(lambda trial: 0.0, n_trials=3, limit=None)
    assert len([warning for warning in caught if "limit=60" in str(warning.message)]) == 1
    assert len(study.get_trials(states=[TrialState.COMPLETE])) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for limits in ({"limit": None, "memory_limit": 1e9}, {"limit": math.inf}, {"limit": 1e12}):
            run(lambda trial: 0.0, **limits)


def test_many_jobs_run_at_the_same_time():
    together = multiprocessing.get_context("fork").Barrier(8)

    def objective(trial):
        together.wait(60.0)
        return trial.suggest_float("x", 0.0, 1.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # newer Pythons warn of forks beside threads
        study = run(objective, n_trials=16, limit=120.0, n_jobs=8)
    assert len(study.get_trials(states=[TrialState.COMPLETE])) == 16


@pytest.mark.slow
def test_nothing_is_left_after_many_trials(tmp_path, monkeypatch):
    n_jobs = 2
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    began, before = below(), open_files()
    with time_limited(hangs_if_odd, limit=0.02) as limited:
        study.optimize(limited, n_trials=4, n_jobs=n_jobs)
        files, children = open_files(), len(below() - began)
        study.optimize(limited, n_trials=196, n_jobs=n_jobs)
        # One that was killed is replaced when it is needed again.
        assert len(below() - began) <= max(children, 1 + 2 * n_jobs)
        assert open_files() <= files + n_jobs
    assert [trial.state.name for trial in study.trials].count("PRUNED") >= 100
    assert len(study.trials) == 200
    assert until(lambda: below() <= began)
    assert open_files() <= before
    assert os.listdir(tmp_path) == []


def test_the_wrapper_can_be_pickled_and_copied():
    with time_limited(hangs_if_odd, limit=LIMIT) as limited:
        optuna.create_study().optimize(limited, n_trials=1)
        for other in (pickle.loads(pickle.dumps(limited)), copy.deepcopy(limited)):
            study = optuna.create_study()
            with other:
                study.optimize(other, n_trials=2)
            assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED"]
        assert "hangs_if_odd" in repr(limited)
        assert f"limit={LIMIT}" in repr(limited)


def test_closing_ends_trials_and_the_wrapper_can_go_on():
    limited = time_limited(hangs_if_odd, limit=3600.0)
    study = optuna.create_study()
    study.optimize(limited, n_trials=1)

    def close():
        until(lambda: "x" in study.trials[-1].params and len(study.trials) == 2)
        limited.close()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(RuntimeError, match=r"closed its connection|ended"):
        study.optimize(limited, n_trials=1)
    closer.join()
    assert study.trials[1].state == TrialState.FAIL
    study.optimize(limited, n_trials=1)
    assert study.trials[2].state == TrialState.COMPLETE
    limited.close()
    limited.close()
