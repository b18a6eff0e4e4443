import os
import signal
import time
import warnings

import numpy as np
import optuna
import pytest

from mfhpo_optuna import time_limited
from mfhpo_optuna.study.trials.attributes import CENSORED_KEY, MEMORY_KEY, SECONDS_KEY
from tests.optuna.time_limits.processes import (
    MEGABYTE,
    alive,
    below,
    end_helpers,
    fails,
    hangs_if_odd,
    only,
    process_number,
    run,
    until,
)


def test_a_first_trial_that_hangs_may_be_due_to_the_fork(monkeypatch, tmp_path, shared_clock):
    def second_hangs(trial):
        return shared_clock.hang(trial) if trial.number else 0.0

    maps = tmp_path / "maps"
    maps.write_text("7f12 r-xp /lib/libopenblas.so.0")
    monkeypatch.setattr("mfhpo_optuna.time_limits.time_limited.Path", lambda _: maps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(shared_clock.hang)
        maps.write_text("7f12 r-xp /lib/libgomp-e985bcbb.so.1.0.0")
        run(second_hangs, n_trials=2)
    with pytest.warns(UserWarning, match='start_method="forkserver"') as caught:
        run(shared_clock.hang, n_trials=2)
    assert len(caught) == 1


def test_processes_are_reused():
    def objective(trial):
        trial.set_user_attr("process", os.getpid())
        if trial.number:
            raise [optuna.TrialPruned, ValueError][trial.number % 2]
        return 0.0

    study = run(objective, n_trials=5, limit=30.0, catch=(ValueError,))
    assert len({trial.user_attrs["process"] for trial in study.trials}) == 1


def test_a_process_that_was_killed_while_it_rested_is_replaced():
    study = optuna.create_study()
    with time_limited(process_number, limit=30.0) as limited:
        study.optimize(limited, n_trials=1)
        everything = sorted(below())
        for pid in everything[-3:]:  # the worker, its keeper and the warden
            os.kill(int(study.trials[-1].value) if pid == everything[-1] else pid, signal.SIGKILL)
            assert until(lambda pid=pid: not alive(pid))
            study.optimize(limited, n_trials=1)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 4


@pytest.mark.slow
@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_start_methods(start_method):
    study = run(hangs_if_odd, n_trials=4, limit=0.5, start_method=start_method, n_jobs=2)
    states = {trial.number % 2: trial.state.name for trial in study.trials}
    assert states == {0: "COMPLETE", 1: "PRUNED"}
    with pytest.raises(LookupError, match="trial 0"):
        run(fails, limit=30.0, start_method=start_method)
    end_helpers()


def test_what_cannot_be_sent_to_a_new_process_is_explained():
    with pytest.raises(TypeError, match=r"(?s)cannot be sent.*top level.*start_method=\"fork\""):
        run(lambda trial: 0.0, start_method="spawn")


def test_a_forked_process_uses_processes_of_its_own():
    with time_limited(process_number, limit=30.0) as limited:
        first = limited(optuna.trial.FixedTrial({}))
        pid = os.fork()
        if not pid:
            try:
                with limited:
                    os._exit(0 if limited(optuna.trial.FixedTrial({})) != first else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert limited(optuna.trial.FixedTrial({})) == first


def test_what_is_no_longer_used_ends():
    before = below()
    study = optuna.create_study()
    study.optimize(time_limited(process_number, limit=30.0), n_trials=1)
    assert until(lambda: below() <= before)


def test_memory_is_limited():
    mine = np.ones(25 * MEGABYTE)  # 200 MB that the worker shares with this process

    def objective(trial):
        total = float(mine[0])
        if trial.number == 1:
            if os.fork():  # the child takes it
                time.sleep(3600.0)
            held = np.ones(40 * MEGABYTE)
            total += held[0]
            time.sleep(3600.0)
        return total

    study = run(objective, n_trials=3, limit=60.0, memory_limit=150 * MEGABYTE)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED", "COMPLETE"]
    attributes = study.trials[1].user_attrs
    assert attributes[MEMORY_KEY] == 150 * MEGABYTE
    assert attributes[CENSORED_KEY] == 60.0
    assert attributes[SECONDS_KEY] < 30.0


@pytest.mark.parametrize(
    ("megabytes", "seconds", "state"), [(220, 1.0, "COMPLETE"), (75, 60.0, "PRUNED")]
)
def test_memory_that_is_shared_counts_once(megabytes, seconds, state):
    mine = np.ones(25 * MEGABYTE)  # 200 MB

    def objective(trial):
        held = np.ones(15 * MEGABYTE)  # 120 MB
        children = []
        for _ in range(3):
            children.append(os.fork())
            if not children[-1]:
                time.sleep(seconds if float(mine.sum() + held.sum()) else 0.0)
                os._exit(0)
        for child in children:
            os.waitpid(child, 0)
        return float(held[0])

    trial = only(run(objective, limit=60.0, memory_limit=megabytes * MEGABYTE))
    assert trial.state.name == state
    assert (MEMORY_KEY in trial.user_attrs) is (state == "PRUNED")


def test_a_worker_that_keeps_memory_is_replaced():
    kept = []

    def objective(trial):
        kept.append(np.ones(MEGABYTE * 4 * (trial.number % 2)))  # 32 MB in every second trial
        return float(len(kept))

    study = run(objective, n_trials=5, limit=60.0, memory_limit=100 * MEGABYTE)
    assert [trial.value for trial in study.trials] == [1.0, 2.0, 1.0, 2.0, 1.0]
