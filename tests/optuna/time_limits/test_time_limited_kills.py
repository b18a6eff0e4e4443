import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import optuna
import pytest
from optuna.trial import TrialState
from sqlalchemy.exc import IntegrityError

from mfhpo_optuna import time_limited
from mfhpo_optuna.study.trials.attributes import CENSORED_KEY, SECONDS_KEY
from mfhpo_optuna.time_limits import time_limited as supervision
from tests.optuna.time_limits.processes import LIMIT, SOON, Notes, alive, below, only, run, until

# Said where a test before this one has loaded a library with OpenMP.
pytestmark = pytest.mark.filterwarnings("ignore:trial 0, the first one, was stopped:UserWarning")


def holds_the_interpreter_in_c(trial):
    ctypes.PyDLL(None).sleep(3600)  # unlike CDLL, it keeps the interpreter's lock
    return 0.0


def ignores_signals(trial):
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1.0)


def stops_itself(trial):
    os.kill(os.getpid(), signal.SIGSTOP)
    return 0.0


def waits_for_a_thread_that_hangs(trial):
    threading.Thread(target=sum, args=(range(10**13),)).start()
    return 0.0


def hangs_while_its_value_is_read(trial):
    class Slow:
        def __float__(self):
            time.sleep(3600.0)

    return Slow()


HANGS = [holds_the_interpreter_in_c, ignores_signals, stops_itself, hangs_while_its_value_is_read]


@pytest.mark.parametrize("hang", HANGS)
def test_a_hang_ends_at_its_limit(hang):
    def objective(trial):
        trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("stage", {"name": "training"})
        trial.report(0.5, 3)
        trial.set_constraint("c", -1.0)
        return hang(trial)

    began = time.monotonic()
    trial = only(run(objective))
    assert time.monotonic() - began < LIMIT + SOON
    assert trial.state == TrialState.PRUNED
    assert 0.0 <= trial.params["x"] <= 1.0
    assert trial.intermediate_values == {3: 0.5}
    assert trial.constraints == {"c": -1.0}
    noted = dict(trial.user_attrs)
    assert LIMIT <= noted.pop(SECONDS_KEY) < LIMIT + SOON
    assert noted == {"stage": {"name": "training"}, CENSORED_KEY: LIMIT}


def test_the_next_trial_after_a_thread_that_hangs_begins():
    study = run(waits_for_a_thread_that_hangs, n_trials=2, limit=0.5)
    # The thread may hold up the answer, or only be found in the way of the next trial.
    assert {trial.state for trial in study.trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
    assert len(study.trials) == 2


def leaves_the_session(trial):
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    time.sleep(3600.0)


def becomes_a_daemon(trial):
    os.setsid()
    if os.fork():
        os._exit(0)
    trial.write(os.getpid())
    time.sleep(3600.0)


@pytest.mark.parametrize("child", [leaves_the_session, becomes_a_daemon])
@pytest.mark.parametrize("ending", ["hangs", "exits", "is dismissed"])
def test_children_end_with_the_objective(child, ending, tmp_path, shared_clock):
    notes = Notes(tmp_path / "pids")

    def objective(trial):
        pid = os.fork()
        if not pid:
            child(notes)
        notes.write(pid)
        notes.write(subprocess.Popen(["sleep", "3600"], start_new_session=True).pid)
        enough = 3 if child is becomes_a_daemon else 2
        until(lambda: len(notes.read()) >= enough)
        if ending == "hangs":
            shared_clock.hang(trial)
        if ending == "exits":
            os._exit(7)
        return 0.0

    trial = only(run(objective, catch=(RuntimeError,)))
    states = {"hangs": "PRUNED", "exits": "FAIL", "is dismissed": "COMPLETE"}
    assert trial.state.name == states[ending]
    assert len(notes.read()) >= 2
    assert not any(map(alive, notes.read()))


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (lambda: os._exit(3), "exited with status 3"),
        (lambda: (faulthandler.disable(), os.kill(os.getpid(), signal.SIGSEGV)), "SIGSEGV"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL.*memory_limit"),
        (lambda: os.kill(os.getpid(), signal.SIGRTMIN + 1), f"signal {signal.SIGRTMIN + 1}"),
        (lambda: (os.closerange(3, 4096), time.sleep(3600.0)), "closed its connection"),
        (lambda: os.closerange(0, 4096), "exited with status 0"),
    ],
    ids=["exit", "segfault", "kill", "real-time", "close and sleep", "close all"],
)
def test_a_process_that_ends_by_itself_fails_its_trial(end, shown, capfd, monkeypatch):
    last_words = 0.1 if shown == "closed its connection" else 60.0  # of the one that says none
    monkeypatch.setattr(supervision, "_LAST_WORDS", last_words)

    def objective(trial):
        value = trial.suggest_float("x", 0.0, 1.0)
        if trial.number == 0:
            end()
            trial.report(1.0, 1)
        return value

    study = optuna.create_study()
    with time_limited(objective, limit=30.0) as limited:
        with pytest.raises(RuntimeError, match=shown):
            study.optimize(limited, n_trials=1)
        study.optimize(limited, n_trials=1)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "COMPLETE"]
    assert "x" in study.trials[0].params
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("victim", ["warden", "keeper", "worker"])
def test_nothing_outlives_processes_that_are_killed_from_outside(victim, tmp_path):
    notes = Notes(tmp_path / "pids")

    def objective(trial):
        if trial.number:
            return 0.0
        notes.write(subprocess.Popen(["sleep", "3600"], start_new_session=True).pid)
        own = {"warden": notes.read()[0], "keeper": os.getppid(), "worker": os.getpid()}
        os.kill(own[victim], signal.SIGKILL)
        return float(sum(range(10**13)))

    study = optuna.create_study()
    before = below()
    with time_limited(objective, limit=60.0) as limited:
        limited(optuna.trial.FixedTrial({}, number=1))
        notes.write(min(below() - before))  # the first one that was started
        study.optimize(limited, n_trials=1, catch=(RuntimeError,))
        assert study.trials[0].state == TrialState.FAIL
        study.optimize(limited, n_trials=1)
        assert study.trials[1].state == TrialState.COMPLETE
        assert until(lambda: not alive(notes.read()[-1]))


SCRIPT = textwrap.dedent(
    """
    import os, subprocess, sys, time
    import optuna
    import sqlalchemy
    from mfhpo_optuna import time_limited

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.number == 2 or (trial.number == 3 and "both" in sys.argv):
            child = subprocess.Popen(["sleep", "3600"], start_new_session=True).pid
            trial.set_user_attr("pids", [os.getpid(), os.getppid(), child])
            if "hold" in sys.argv:
                sum(range(10**13))
            time.sleep(3600.0)
        return x

    study = optuna.create_study(storage=sys.argv[1], study_name="s", load_if_exists=True)
    limited = time_limited(objective, limit=3600.0)
    study.optimize(limited, n_trials=4, n_jobs=2 if "jobs" in sys.argv else 1)
    """
)


def _script(*arguments):
    def heed_interrupts():  # they are ignored where the tests run in the background of a script
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    options = {"stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.Popen(command, preexec_fn=heed_interrupts, **options)


def _pids(storage):
    try:
        trials = optuna.load_study(study_name="s", storage=storage).trials
    except (KeyError, optuna.exceptions.StorageInternalError, IntegrityError):
        return []  # it is being created
    return [pid for trial in trials for pid in trial.user_attrs.get("pids", ())]


@pytest.mark.slow
def test_children_die_with_a_killed_process_and_the_study_goes_on(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    script = _script(storage, "hold", "jobs")
    assert until(lambda: len(_pids(storage)) == 3, 60.0, pause=0.1)
    pids = _pids(storage)
    assert all(map(alive, pids))
    script.kill()
    script.communicate()
    assert until(lambda: not any(map(alive, pids)))
    resumed = _script(storage)
    resumed.communicate(timeout=60.0)
    assert resumed.returncode == 0
    study = optuna.load_study(study_name="s", storage=storage)
    states = [trial.state.name for trial in study.trials]
    assert states.count("RUNNING") == 1
    assert len(states) == states.count("COMPLETE") + 1 >= 7


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_ends_the_trials_and_the_program(jobs, tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    script = _script(storage, "hold", *(["jobs", "both"] if jobs == 2 else []))
    try:
        assert until(lambda: len(_pids(storage)) == 3 * jobs, 60.0, pause=0.1)
        pids = _pids(storage)
        if jobs == 2:
            time.sleep(0.5)  # now Optuna only waits for both
        os.killpg(script.pid, signal.SIGINT)  # what a terminal does
        _, shown = script.communicate(timeout=30.0)
    finally:
        script.kill()
        script.wait()
    assert "KeyboardInterrupt" in shown
    assert until(lambda: not any(map(alive, pids)))
    ended = optuna.load_study(study_name="s", storage=storage).trials[2:]
    assert "x" in ended[0].params
    # Some Pythons no longer wait for the thread whose join was interrupted.
    assert TrialState.FAIL in [trial.state for trial in (ended if jobs == 2 else ended[:1])]
    assert TrialState.COMPLETE not in [trial.state for trial in ended]


@pytest.mark.slow
def test_nothing_is_left_when_a_program_ends(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(storage=storage, study_name="s")
    program = SCRIPT.replace("trial.number ==", "0 >").replace(
        "return x", 'trial.set_user_attr("pids", [os.getpid(), os.getppid()]); return x'
    )
    command = [sys.executable, "-W", "error", "-c", program, storage, "jobs"]
    done = subprocess.run(command, timeout=60)
    assert done.returncode == 0
    assert not any(map(alive, _pids(storage)))
    assert len(_pids(storage)) == 4 * 2
