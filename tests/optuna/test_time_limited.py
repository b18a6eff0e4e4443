"""Limits hold whatever an objective does, and nothing is left of it."""

from __future__ import annotations

import copy
import ctypes
import faulthandler
import itertools
import json
import math
import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.terminator import report_cross_validation_scores
from optuna.trial import TrialState

from benchmarks import time_limit as benchmark
from mfhpo_optuna import MFSampler, time_limited
from mfhpo_optuna import _crew as crew
from mfhpo_optuna import _global_random as global_random
from mfhpo_optuna import _processes as processes
from mfhpo_optuna._crossing import pack_error
from mfhpo_optuna._limit_attributes import (
    CENSORED_KEY,
    ENFORCER_KEY,
    LIMIT_KEY,
    MEMORY_KEY,
    SECONDS_KEY,
)
from tests.optuna.processes import alive, below, fails, hangs_if_odd, open_files, until

optuna.logging.set_verbosity(optuna.logging.WARNING)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

MEGABYTE = 1_000_000
LIMIT = 0.25
# Some hundredths of a second where nothing else runs; a loaded machine may need more.
SOON = 2.0


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Any:
    before = below()
    yield
    assert until(lambda: below() <= before), "processes are left"


def run(objective: Any, n_trials: int = 1, limit: float | None = LIMIT, **options: Any) -> Any:
    """A study of an objective with a limit."""
    catch = options.pop("catch", ())
    n_jobs = options.pop("n_jobs", 1)
    storage = options.pop("storage", None)
    study = optuna.create_study(storage=storage)
    with time_limited(objective, limit, **options) as limited:
        study.optimize(limited, n_trials=n_trials, catch=catch, n_jobs=n_jobs)
    return study


def only(study: optuna.Study) -> Any:
    (trial,) = study.trials
    return trial


# Hangs.


def sleeps(trial: Any) -> float:
    time.sleep(3600.0)
    return 0.0


def holds_the_interpreter(trial: Any) -> float:
    return float(sum(range(10**13)))


def backtracks(trial: Any) -> float:
    return float(bool(re.match(r"(a*)*b", "a" * 64)))


def holds_the_interpreter_in_c(trial: Any) -> float:
    ctypes.PyDLL(None).sleep(3600)  # unlike CDLL, it keeps the interpreter's lock
    return 0.0


def ignores_signals(trial: Any) -> float:
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1.0)


def swallows_everything(trial: Any) -> float:
    while True:
        try:
            time.sleep(1.0)
        except BaseException:
            continue


def stops_itself(trial: Any) -> float:
    os.kill(os.getpid(), signal.SIGSTOP)
    return 0.0


def waits_for_a_thread_that_hangs(trial: Any) -> float:
    threading.Thread(target=sum, args=(range(10**13),)).start()
    return 0.0


def hangs_while_its_value_is_pickled(trial: Any) -> Any:
    class Slow:
        def __reduce__(self) -> Any:
            time.sleep(3600.0)

    return Slow()


HANGS = [
    sleeps,
    holds_the_interpreter,
    backtracks,
    holds_the_interpreter_in_c,
    ignores_signals,
    swallows_everything,
    stops_itself,
    hangs_while_its_value_is_pickled,
]


@pytest.mark.parametrize("hang", HANGS, ids=lambda hang: hang.__name__)
def test_a_hang_ends_at_its_limit(hang: Callable[[Any], float]) -> None:
    def objective(trial: optuna.Trial) -> float:
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
    assert trial.user_attrs["stage"] == {"name": "training"}
    assert trial.user_attrs[CENSORED_KEY] == LIMIT
    assert LIMIT <= trial.user_attrs[SECONDS_KEY] < LIMIT + SOON
    assert trial.user_attrs[ENFORCER_KEY] == "time_limited"
    assert MEMORY_KEY not in trial.user_attrs


def test_the_next_trial_after_a_thread_that_hangs_begins() -> None:
    study = run(waits_for_a_thread_that_hangs, n_trials=2, limit=0.5)
    # The thread may hold up the answer, or only be found in the way of the next trial.
    assert {trial.state for trial in study.trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
    assert len(study.trials) == 2


def obeys(trial: Any) -> None:
    time.sleep(3600.0)


def ignores_sigterm(trial: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600.0)


def leaves_the_session(trial: Any) -> None:
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    time.sleep(3600.0)


def becomes_a_daemon(trial: Any) -> None:
    os.setsid()
    if os.fork():
        os._exit(0)
    trial.write(os.getpid())
    time.sleep(3600.0)


class Notes:
    """Numbers that processes leave in a file, since a child cannot use the trial."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, number: int) -> None:
        with self.path.open("a") as file:
            file.write(f"{number}\n")

    def read(self) -> list[int]:
        return [int(line) for line in self.path.read_text().split()] if self.path.exists() else []


@pytest.mark.parametrize("child", [obeys, ignores_sigterm, leaves_the_session, becomes_a_daemon])
@pytest.mark.parametrize("ending", ["hangs", "exits", "is dismissed"])
def test_children_end_with_the_objective(
    child: Callable[[Any], None], ending: str, tmp_path: Path
) -> None:
    notes = Notes(tmp_path / "pids")

    def objective(trial: optuna.Trial) -> float:
        pid = os.fork()
        if not pid:
            child(notes)
        notes.write(pid)
        notes.write(subprocess.Popen(["sleep", "3600"], start_new_session=True).pid)
        enough = 3 if child is becomes_a_daemon else 2
        until(lambda: len(notes.read()) >= enough)
        if ending == "hangs":
            time.sleep(3600.0)
        if ending == "exits":
            os._exit(7)
        return 0.0

    limit = 1.0 if ending == "hangs" else 60.0
    trial = only(run(objective, limit=limit, warm=False, catch=(RuntimeError,)))
    states = {"hangs": "PRUNED", "exits": "FAIL", "is dismissed": "COMPLETE"}
    assert trial.state.name == states[ending]
    assert len(notes.read()) >= 2
    assert not any(map(alive, notes.read()))


# What objectives return and raise.


@pytest.mark.parametrize(
    "value",
    [1, 2.5, True, np.float32(0.5), np.array(3.0), math.inf],
    ids=repr,
)
def test_values_cross(value: Any) -> None:
    plain = optuna.create_study()
    plain.optimize(lambda trial: value, n_trials=1)
    assert only(run(lambda trial: value)).value == plain.trials[0].value


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: math.nan,
        lambda: np.ones(20 * MEGABYTE),
        lambda: [0.5] * MEGABYTE,
        lambda: threading.Lock(),
        lambda: lambda: 0.0,
    ],
    ids=["None", "NaN", "array", "list", "lock", "lambda"],
)
def test_what_is_no_value_fails_as_without_limits(make: Callable[[], Any]) -> None:
    study = run(lambda trial: make() if trial.number == 0 else 1.0, n_trials=2, limit=30.0)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "COMPLETE"]


def test_a_number_that_cannot_be_pickled_is_a_number() -> None:
    class Tensor:
        def __float__(self) -> float:
            return 0.75

    assert only(run(lambda trial: Tensor())).value == 0.75


def test_several_objectives() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"])
    with time_limited(lambda trial: (trial.suggest_float("x", 0.0, 1.0), 2.0), limit=30.0) as f:
        study.optimize(f, n_trials=2)
    assert study.trials[0].values == [study.trials[0].params["x"], 2.0]


class Odd(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


class Unshowable(Exception):
    def __init__(self, code: int) -> None:
        self.code = code
        self.lock = threading.Lock()

    def __str__(self) -> str:
        return f"code {self.code}"


@pytest.mark.parametrize(
    ("make", "kind", "shown"),
    [
        (lambda: ValueError("plain"), ValueError, "plain"),
        (lambda: FileNotFoundError(2, "no such file", "a.csv"), FileNotFoundError, "a.csv"),
        (lambda: ValueError(threading.Lock()), ValueError, "lock"),
        (lambda: Odd(1, 2), Odd, "1 and 2"),
        (lambda: Unshowable(5), RuntimeError, "code 5"),
        (lambda: type("Local", (KeyError,), {})("k"), KeyError, "Local: 'k'"),
        (lambda: SystemExit(3), SystemExit, "3"),
        (lambda: KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
    ],
)
def test_exceptions_cross(
    make: Callable[[], BaseException], kind: type[BaseException], shown: str
) -> None:
    def objective(trial: optuna.Trial) -> float:
        raise make()

    study = optuna.create_study()
    with time_limited(objective, limit=30.0) as limited:
        with pytest.raises(kind, match=re.escape(shown)) as raised:
            study.optimize(limited, n_trials=3)
        assert type(raised.value) is kind
        assert "in objective" in str(raised.value.__cause__)
        assert "raise make()" in str(raised.value.__cause__)
    assert SECONDS_KEY in study.trials[0].user_attrs
    # Optuna leaves a trial running when the program is to exit.
    expected = TrialState.RUNNING if kind is SystemExit else TrialState.FAIL
    assert [trial.state for trial in study.trials] == [expected]


def test_an_exception_that_only_the_other_process_knows() -> None:
    packed = pack_error(Odd(1, 2))
    elsewhere = pickle.loads(
        pickle.dumps(packed).replace(b"test_time_limited", b"test_time_timited")
    )
    assert isinstance(elsewhere.error(), RuntimeError)
    assert str(elsewhere.error()) == "1 and 2"


def test_pruning_by_the_objective_is_no_censoring() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.report(0.5, 1)
        raise optuna.TrialPruned("hopeless")

    trial = only(run(objective))
    assert trial.state == TrialState.PRUNED
    assert trial.value == 0.5
    assert CENSORED_KEY not in trial.user_attrs
    assert SECONDS_KEY in trial.user_attrs


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (lambda: os._exit(3), "exited with status 3"),
        (lambda: (faulthandler.disable(), os.kill(os.getpid(), signal.SIGSEGV)), "SIGSEGV"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL.*memory_limit"),
        (lambda: (os.closerange(3, 4096), time.sleep(3600.0)), "closed its connection"),
    ],
    ids=["exit", "segfault", "kill", "close"],
)
def test_a_process_that_ends_by_itself_fails_its_trial(end: Callable[[], None], shown: str) -> None:
    def objective(trial: optuna.Trial) -> float:
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


def test_output_appears_once(capfd: pytest.CaptureFixture[str]) -> None:
    sys.stdout.write("before ")

    def objective(trial: optuna.Trial) -> float:
        print(f"trial {trial.number}")
        return 0.0

    run(objective, n_trials=2, limit=30.0)
    assert capfd.readouterr().out == "before trial 0\ntrial 1\n"


def test_standard_input_is_empty() -> None:
    assert only(run(lambda trial: len(os.read(0, 10)), limit=30.0)).value == 0.0


# The trial that objectives see.


def test_the_trial_is_like_the_real_one() -> None:
    def objective(trial: optuna.Trial) -> float:
        seen = {
            "float": trial.suggest_float("float", 0.1, 10.0, log=True),
            "step": trial.suggest_float("step", 0.0, 1.0, step=0.25),
            "int": trial.suggest_int("int", 1, 100, log=True),
            "even": trial.suggest_int("even", 0, 10, step=2),
            "choice": trial.suggest_categorical("choice", ["a", None, 3, True]),
        }
        assert trial.params == seen
        assert trial.suggest_float("float", 0.1, 10.0, log=True) == seen["float"]
        assert set(trial.distributions) == set(seen)
        assert trial.relative_params == {}
        trial.report(np.float32(0.5), np.int64(1))
        assert trial.should_prune() is False
        trial.set_user_attr("seen", seen)
        assert trial.user_attrs["seen"] == seen
        trial.set_constraint("c", np.float64(-2.0))
        assert trial.constraints == {"c": -2.0}
        assert trial.datetime_start is not None
        assert isinstance(trial, optuna.trial.BaseTrial)
        study = trial.study
        assert study.direction == optuna.study.StudyDirection.MINIMIZE
        assert len(study.directions) == 1
        assert study.user_attrs == {"owner": "me"}
        assert study.study_name == "named"
        assert study.metric_names is None
        assert len(study.trials) == len(study.get_trials(deepcopy=False)) == trial.number + 1
        if trial.number:
            assert study.best_trial.number == 0
            assert study.best_value == 0.0
            assert study.best_params == study.best_trial.params
            assert [best.number for best in study.best_trials] == [0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            report_cross_validation_scores(trial, [0.5, 0.6])
        return float(trial.number)

    study = optuna.create_study(study_name="named")
    study.set_user_attr("owner", "me")
    with time_limited(objective, limit=30.0) as limited:
        study.optimize(limited, n_trials=2)
    for trial in study.trials:
        assert trial.user_attrs["seen"] == trial.params
        assert trial.intermediate_values == {1: 0.5}
        assert "terminator:cv_scores" in trial.system_attrs


def test_errors_of_the_trial_reach_the_objective() -> None:
    def objective(trial: optuna.Trial) -> float:
        with pytest.raises(ValueError, match=r"low.*high"):
            trial.suggest_float("x", 1.0, 0.0)
        with pytest.raises(TypeError, match="supposed to be a float"):
            trial.report("much", 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="can be pickled"):
            trial.set_user_attr("lock", threading.Lock())
        with pytest.raises(ValueError, match="No trials are completed"):
            trial.study.best_value  # noqa: B018
        with pytest.raises(AttributeError, match="enqueue_trial cannot be reached"):
            trial.study.enqueue_trial({})
        return 0.5

    assert only(run(objective, limit=30.0)).value == 0.5


def test_the_objective_may_stop_the_study() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.number == 1:
            trial.study.stop()
        return 0.0

    assert len(run(objective, n_trials=10, limit=30.0).trials) == 2


def test_a_sampler_that_prunes_is_heard() -> None:
    class Refuses(optuna.samplers.RandomSampler):
        def sample_independent(self, *arguments: Any) -> Any:
            raise optuna.TrialPruned("over")

    study = optuna.create_study(sampler=Refuses())
    with time_limited(hangs_if_odd, limit=30.0) as limited:
        study.optimize(limited, n_trials=1)
    assert only(study).state == TrialState.PRUNED
    assert CENSORED_KEY not in only(study).user_attrs


def test_the_samplers_time_does_not_count() -> None:
    class Slow(optuna.samplers.RandomSampler):
        def sample_independent(self, *arguments: Any) -> Any:
            time.sleep(0.2)
            return super().sample_independent(*arguments)

    def objective(trial: optuna.Trial) -> float:
        return sum(trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(4))

    study = optuna.create_study(sampler=Slow())
    with time_limited(objective, limit=0.4) as limited:
        study.optimize(limited, n_trials=1)
    assert only(study).state == TrialState.COMPLETE
    assert only(study).user_attrs[SECONDS_KEY] < 0.4


def test_threads_of_the_objective_share_the_trial() -> None:
    def objective(trial: optuna.Trial) -> float:
        def use(part: int) -> None:
            for i in range(25):
                name = f"x{part}-{i}"
                value = trial.suggest_float(name, part, part + 0.5)
                assert part <= value <= part + 0.5
                trial.set_user_attr(name, value)

        threads = [threading.Thread(target=use, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return 0.0

    trial = only(run(objective, limit=60.0))
    assert len(trial.params) == 100
    assert all(trial.user_attrs[name] == value for name, value in trial.params.items())


def test_interrupted_calls_leave_the_connection_whole() -> None:
    class Interrupted(Exception):
        pass

    class Slow(optuna.samplers.RandomSampler):
        def sample_independent(self, *arguments: Any) -> Any:
            time.sleep(0.05)
            return super().sample_independent(*arguments)

    def interrupt(number: int, frame: Any) -> None:
        raise Interrupted

    def objective(trial: optuna.Trial) -> float:
        signal.signal(signal.SIGALRM, interrupt)
        for i in range(4):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            with pytest.raises(Interrupted):
                trial.suggest_float(f"x{i}", i, i + 0.5)
        return trial.suggest_float("y", 10.0, 11.0)

    study = optuna.create_study(sampler=Slow())
    with time_limited(objective, limit=30.0) as limited:
        study.optimize(limited, n_trials=1)
    assert 10.0 <= only(study).value <= 11.0


def test_late_threads_and_children_are_refused(tmp_path: Path) -> None:
    kept: list[optuna.Trial] = []

    def objective(trial: optuna.Trial) -> float:
        if kept:
            with pytest.raises(RuntimeError, match="trial 0 has ended"):
                kept[0].report(1.0, 1)
        kept.append(trial)
        pid = os.fork()
        if not pid:
            try:
                trial.report(1.0, 1)
            except RuntimeError as error:
                os._exit(5 if "of" in str(error) and "process" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
        return 0.0

    study = run(objective, n_trials=2, limit=30.0)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE"]


def test_the_objective_may_use_multiprocessing() -> None:
    def objective(trial: optuna.Trial) -> float:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            return float(sum(pool.map(abs, range(10))))

    assert only(run(objective, limit=60.0)).value == 45.0


# Where limits come from.


def test_the_smaller_limit_counts() -> None:
    class Sets(optuna.samplers.RandomSampler):
        def before_trial(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
            limit = [0.1, 3600.0][trial.number]
            study._storage.set_trial_user_attr(trial._trial_id, LIMIT_KEY, limit)
            trial.user_attrs[LIMIT_KEY] = limit

    study = optuna.create_study(sampler=Sets())
    with time_limited(sleeps, limit=0.3) as limited:
        study.optimize(limited, n_trials=2)
    assert [trial.user_attrs[CENSORED_KEY] for trial in study.trials] == [0.1, 0.3]
    study = optuna.create_study(sampler=Sets())
    with time_limited(sleeps) as limited:
        study.optimize(limited, n_trials=1)
    assert study.trials[0].user_attrs[CENSORED_KEY] == 0.1


def test_without_any_limit_there_is_one_warning() -> None:
    with pytest.warns(UserWarning, match="limit=60") as caught:
        study = run(lambda trial: 0.0, n_trials=3, limit=None)
    assert len([warning for warning in caught if "limit=60" in str(warning.message)]) == 1
    assert len(study.get_trials(states=[TrialState.COMPLETE])) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(lambda trial: 0.0, limit=None, memory_limit=1e9)
        run(lambda trial: 0.0, limit=math.inf)
        run(lambda trial: 0.0, limit=1e12)


def test_a_first_trial_that_hangs_may_be_due_to_the_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    uses = [False]
    monkeypatch.setattr("mfhpo_optuna._time_limited._uses_openmp", lambda: uses[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(sleeps, limit=0.1)
        uses[0] = True
        run(hangs_if_odd, n_trials=2, limit=0.1)
    with pytest.warns(UserWarning, match='start_method="forkserver"') as caught:
        run(sleeps, n_trials=2, limit=0.1)
    assert len(caught) == 1


def test_openmp_is_seen() -> None:
    program = """if True:
        from mfhpo_optuna._time_limited import _uses_openmp
        before = _uses_openmp()
        import lightgbm
        print(before, _uses_openmp())
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_bad_limit_of_the_sampler_is_named() -> None:
    study = optuna.create_study()
    with time_limited(hangs_if_odd) as limited:
        for bad, kind in ((-1.0, ValueError), ("soon", TypeError)):
            trial = study.ask()
            trial.set_user_attr(LIMIT_KEY, bad)
            with pytest.raises(kind, match=f"mfhpo:limit.*trial {trial.number} must be"):
                limited(trial)


def test_fixed_trials_work() -> None:
    with time_limited(hangs_if_odd, limit=30.0) as limited:
        assert limited(optuna.trial.FixedTrial({"x": 0.25})) == 0.25


@pytest.mark.parametrize(
    ("arguments", "kind", "shown"),
    [
        ({"limit": 0}, ValueError, "limit must be a positive number of seconds, got 0"),
        ({"limit": -1.0}, ValueError, "limit"),
        ({"limit": math.nan}, ValueError, "limit"),
        ({"limit": True}, TypeError, "limit must be a number of seconds or None, got True"),
        ({"limit": "60"}, TypeError, "limit"),
        ({"memory_limit": 0}, ValueError, "memory_limit must be a positive number of bytes"),
        ({"memory_limit": "2 GB"}, TypeError, "memory_limit"),
        ({"start_method": "thread"}, ValueError, "start_method.*'thread'"),
        ({"warm": 1}, TypeError, "warm must be True or False, got 1"),
        ({"objective": 3}, TypeError, "objective must be a function"),
    ],
)
def test_bad_arguments_are_refused_at_once(
    arguments: dict[str, Any], kind: type[Exception], shown: str
) -> None:
    with pytest.raises(kind, match=shown):
        time_limited(**{"objective": hangs_if_odd, **arguments})


# Memory.


@pytest.mark.parametrize("where", ["here", "in a child"])
def test_memory_is_limited(where: str) -> None:
    mine = np.ones(25 * MEGABYTE)  # 200 MB that the worker shares with this process

    def objective(trial: optuna.Trial) -> float:
        total = float(mine[0])
        if trial.number == 1:
            if where == "in a child" and os.fork():
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
def test_memory_that_is_shared_counts_once(megabytes: int, seconds: float, state: str) -> None:
    mine = np.ones(25 * MEGABYTE)  # 200 MB

    def objective(trial: optuna.Trial) -> float:
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


def test_the_memory_of_other_programs_counts() -> None:
    program = "import time; held = bytearray(b'x') * 100_000_000; time.sleep(3600)"

    def objective(trial: optuna.Trial) -> float:
        return float(subprocess.run([sys.executable, "-c", program]).returncode)

    trial = only(run(objective, limit=60.0, memory_limit=80 * MEGABYTE))
    assert trial.user_attrs[MEMORY_KEY] == 80 * MEGABYTE


def test_a_worker_that_keeps_memory_is_replaced() -> None:
    kept: list[Any] = []

    def objective(trial: optuna.Trial) -> float:
        kept.append(np.ones(MEGABYTE * 4 * (trial.number % 2)))  # 32 MB in every second trial
        return float(len(kept))

    study = run(objective, n_trials=5, limit=60.0, memory_limit=100 * MEGABYTE)
    assert [trial.value for trial in study.trials] == [1.0, 2.0, 1.0, 2.0, 1.0]


def test_without_proc_the_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["sh", "-c", "sleep 3600 & wait"])
    try:
        assert until(lambda: len(processes.descendants(child.pid)) == 1)
        known = processes.descendants(child.pid)
        monkeypatch.setattr(processes, "_HAS_PROC", False)
        assert processes.descendants(child.pid) == known
        assert set(known) < set(processes.descendants(os.getpid()))
        table = {os.getpid(): (1, 10), 2: (os.getpid(), 30), 3: (2, 5), 4: (1, 1000)}
        monkeypatch.setattr(processes, "_process_table", lambda: table)
        assert processes.memory_below() == 30 + 5 - 10
    finally:
        for pid in known:
            os.kill(pid, signal.SIGKILL)
        child.kill()
        child.wait()


# Storages, workers, samplers.


def _storages(folder: Path) -> dict[str, Callable[[], Any]]:
    return {
        "memory": lambda: None,
        "sqlite": lambda: f"sqlite:///{folder}/study.db",
        "journal": lambda: JournalStorage(JournalFileBackend(f"{folder}/study.log")),
    }


@pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])
def test_storages(kind: str, tmp_path: Path) -> None:
    study = run(hangs_if_odd, n_trials=4, storage=_storages(tmp_path)[kind](), n_jobs=2)
    states = {trial.number % 2: trial.state.name for trial in study.trials}
    assert states == {0: "COMPLETE", 1: "PRUNED"}
    assert all("x" in trial.params for trial in study.trials)


def test_many_jobs_run_at_the_same_time() -> None:
    def objective(trial: optuna.Trial) -> float:
        time.sleep(0.3)
        return trial.suggest_float("x", 0.0, 1.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # newer Pythons warn of forks beside threads
        began = time.monotonic()
        study = run(objective, n_trials=16, limit=30.0, n_jobs=8)
    assert time.monotonic() - began < 16 * 0.3
    assert len(study.get_trials(states=[TrialState.COMPLETE])) == 16


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_nothing_is_left_after_many_trials(
    n_jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    shared_memory = set(os.listdir("/dev/shm"))
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    began = below()
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
    assert os.listdir(tmp_path) == []
    assert set(os.listdir("/dev/shm")) <= shared_memory


def test_no_descriptor_is_left_open() -> None:
    run(hangs_if_odd, n_trials=2)
    files = open_files()
    for _ in range(5):
        run(hangs_if_odd, n_trials=2, limit=0.05)
    assert open_files() <= files


@pytest.mark.filterwarnings("ignore:repeated evaluations give exactly the same")
def test_a_race_for_fidelities_goes_through() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        epochs = trial.suggest_int("epochs", 1, 9)
        return x + 0.01 * epochs

    sampler = MFSampler("epochs", 4, seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    with time_limited(objective, limit=30.0) as limited:
        study.optimize(limited, n_trials=60)
    assert sampler.recommendation(study).params
    plain = optuna.create_study(direction="maximize", sampler=MFSampler("epochs", 4, seed=0))
    plain.optimize(objective, n_trials=60)
    assert [t.params for t in study.trials] == [t.params for t in plain.trials]


def test_tpe_goes_through() -> None:
    def objective(trial: optuna.Trial) -> float:
        return (trial.suggest_float("x", -1.0, 1.0) - 0.5) ** 2

    studies = []
    with time_limited(objective, limit=30.0) as limited:
        for function in (limited, objective):
            studies.append(optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0)))
            studies[-1].optimize(function, n_trials=15)
    assert [t.params for t in studies[0].trials] == [t.params for t in studies[1].trials]


# Processes.


def _process(trial: optuna.Trial) -> float:
    return float(os.getpid())


def test_processes_are_reused_unless_told_otherwise() -> None:
    warm = {trial.value for trial in run(_process, 3, limit=30.0).trials}
    cold = {trial.value for trial in run(_process, 3, limit=30.0, warm=False).trials}
    assert (len(warm), len(cold)) == (1, 3)


def test_a_process_that_was_killed_while_it_rested_is_replaced() -> None:
    study = optuna.create_study()
    with time_limited(_process, limit=30.0) as limited:
        study.optimize(limited, n_trials=1)
        everything = sorted(below())
        for pid in everything[-3:]:  # the worker, its keeper and the warden
            os.kill(int(study.trials[-1].value) if pid == everything[-1] else pid, signal.SIGKILL)
            assert until(lambda pid=pid: not alive(pid))
            study.optimize(limited, n_trials=1)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 4


def _end_helpers() -> None:
    """Python's own helpers stay until the interpreter exits."""
    multiprocessing.forkserver._forkserver._stop()
    multiprocessing.resource_tracker._resource_tracker._stop()


def test_an_exception_leaves_the_process_for_the_next_trial() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("process", os.getpid())
        raise [optuna.TrialPruned, ValueError][trial.number % 2]

    study = run(objective, n_trials=4, limit=30.0, catch=(ValueError,))
    assert len({trial.user_attrs["process"] for trial in study.trials}) == 1


def test_a_process_that_is_slow_to_die_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "_FREE_WITHIN", 0.0)
    study = run(hangs_if_odd, n_trials=6, limit=0.05)
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "PRUNED"] * 3


@pytest.mark.parametrize("victim", ["warden", "keeper", "worker"])
def test_nothing_outlives_processes_that_are_killed_from_outside(
    victim: str, tmp_path: Path
) -> None:
    notes = Notes(tmp_path / "pids")

    def objective(trial: optuna.Trial) -> float:
        if trial.number:
            return 0.0
        child = subprocess.Popen(["sleep", "3600"], start_new_session=True).pid
        notes.write(child)
        os.kill(notes.read()[0] if victim == "warden" else own(victim), signal.SIGKILL)
        return float(sum(range(10**13)))

    def own(victim: str) -> int:
        return os.getppid() if victim == "keeper" else os.getpid()

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


def test_processes_that_cannot_start_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew.KeptWorker, "begin", lambda worker, order: worker.close())
    with pytest.raises(RuntimeError, match="end before the objective begins"):
        run(hangs_if_odd)


@pytest.mark.slow
@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_start_methods(start_method: str) -> None:
    study = run(hangs_if_odd, n_trials=4, limit=0.5, start_method=start_method, n_jobs=2)
    states = {trial.number % 2: trial.state.name for trial in study.trials}
    assert states == {0: "COMPLETE", 1: "PRUNED"}
    with pytest.raises(LookupError, match="trial 0"):
        run(fails, limit=30.0, start_method=start_method)
    _end_helpers()


class Unloadable:
    """Can be pickled, but not loaded elsewhere."""

    def __init__(self) -> None:
        self._process = os.getpid()

    def __setstate__(self, state: dict[str, int]) -> None:
        if os.getpid() != state["_process"]:
            raise OSError("data.csv is not there")

    def __call__(self, trial: optuna.Trial) -> float:
        return 0.0


def test_what_cannot_be_sent_to_a_new_process_is_explained() -> None:
    with pytest.raises(TypeError, match=r"(?s)cannot be pickled.*top level.*start_method=\"fork\""):
        time_limited(lambda trial: 0.0, limit=1.0, start_method="spawn")
    with pytest.raises(TypeError, match=r"cannot be loaded in a new process.*data.csv"):
        run(Unloadable(), start_method="forkserver")
    _end_helpers()


def test_the_wrapper_can_be_pickled_and_copied() -> None:
    with time_limited(hangs_if_odd, limit=0.3) as limited:
        optuna.create_study().optimize(limited, n_trials=1)
        for other in (pickle.loads(pickle.dumps(limited)), copy.deepcopy(limited)):
            study = optuna.create_study()
            with other:
                study.optimize(other, n_trials=2)
            assert [trial.state.name for trial in study.trials] == ["COMPLETE", "PRUNED"]
        assert "hangs_if_odd" in repr(limited)
        assert "limit=0.3" in repr(limited)


def test_a_forked_process_uses_processes_of_its_own() -> None:
    with time_limited(_process, limit=30.0) as limited:
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


def test_limits_nest() -> None:
    def objective(trial: optuna.Trial) -> float:
        inner = run(hangs_if_odd, n_trials=2, limit=0.2)
        return float(inner.trials[1].user_attrs[CENSORED_KEY])

    assert only(run(objective, limit=30.0)).value == 0.2

    def hangs_inside(trial: optuna.Trial) -> float:
        run(sleeps, limit=3600.0)
        return 0.0

    assert only(run(hangs_inside, limit=0.5)).state == TrialState.PRUNED


def test_two_wrappers_at_once() -> None:
    first, second = optuna.create_study(), optuna.create_study()
    with time_limited(hangs_if_odd, limit=0.2) as one, time_limited(_process, limit=0.3) as other:
        for _ in range(2):
            first.optimize(one, n_trials=1)
            second.optimize(other, n_trials=1)
    assert [trial.state.name for trial in first.trials] == ["COMPLETE", "PRUNED"]
    assert len({trial.value for trial in second.trials}) == 1


def test_closing_ends_trials_and_the_wrapper_can_go_on() -> None:
    limited = time_limited(hangs_if_odd, limit=3600.0)
    study = optuna.create_study()
    study.optimize(limited, n_trials=1)
    closer = threading.Timer(0.2, limited.close)
    closer.start()
    with pytest.raises(RuntimeError, match=r"closed its connection|ended"):
        study.optimize(limited, n_trials=1)
    closer.join()
    assert study.trials[1].state == TrialState.FAIL
    study.optimize(limited, n_trials=1)
    assert study.trials[2].state == TrialState.COMPLETE
    limited.close()
    limited.close()


def test_what_is_no_longer_used_ends() -> None:
    before = below()
    study = optuna.create_study()
    study.optimize(time_limited(_process, limit=30.0), n_trials=1)
    assert until(lambda: below() <= before)


def test_global_generators_differ_between_trials_and_repeat_when_seeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numpy: Any = np  # the legacy generator is meant

    def objective(trial: optuna.Trial) -> float:
        trial.set_user_attr("random", random.random())
        trial.set_user_attr("numpy", numpy.random.random())
        return 0.0

    def draws(**options: Any) -> list[float]:
        study = run(objective, n_trials=4, limit=30.0, **options)
        return [trial.user_attrs[key] for trial in study.trials for key in ("random", "numpy")]

    def begin_seeded(seed: int) -> None:
        monkeypatch.setattr(global_random, "_calls", itertools.count())
        random.seed(seed)
        numpy.random.seed(seed)

    states = random.getstate(), numpy.random.get_state()
    try:
        begin_seeded(1)
        first = draws()
        assert len({*first, *draws(), *draws(warm=False)}) == 24
        assert random.random() == random.Random(1).random()  # nothing was drawn here
        begin_seeded(1)
        assert draws(warm=False) == first
        begin_seeded(2)
        assert not {*draws()} & {*first}
    finally:
        random.setstate(states[0])
        numpy.random.set_state(states[1])


# Ends of this process.

SCRIPT = textwrap.dedent(
    """
    import os, subprocess, sys, time
    import optuna
    import sqlalchemy
    from mfhpo_optuna import time_limited

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        if trial.number == 2:
            child = subprocess.Popen(["sleep", "3600"], start_new_session=True).pid
            trial.set_user_attr("pids", [os.getpid(), os.getppid(), child])
            if "hold" in sys.argv:
                sum(range(10**13))
            time.sleep(3600.0)
        return x

    study = optuna.create_study(storage=sys.argv[1], study_name="s", load_if_exists=True)
    limited = time_limited(objective, limit=3600.0)
    study.optimize(limited, n_trials=4, n_jobs=2 if "jobs" in sys.argv else 1)
    if "exit" in sys.argv:
        sys.exit()
    """
)


def _script(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def _pids(storage: str) -> list[int]:
    try:
        trials = optuna.load_study(study_name="s", storage=storage).trials
    except (KeyError, optuna.exceptions.StorageInternalError):
        return []
    pids = [pid for trial in trials for pid in trial.user_attrs.get("pids", ())]
    return pids


@pytest.mark.slow
def test_children_die_with_a_killed_process_and_the_study_goes_on(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    script = _script(storage, "hold", "jobs")
    assert until(lambda: len(_pids(storage)) == 3, 60.0, pause=0.1)
    pids = _pids(storage)
    assert all(map(alive, pids))
    script.kill()
    script.wait()
    assert until(lambda: not any(map(alive, pids)))
    resumed = _script(storage)
    assert resumed.wait(60.0) == 0
    study = optuna.load_study(study_name="s", storage=storage)
    states = [trial.state.name for trial in study.trials]
    assert states.count("RUNNING") == 1
    assert len(states) == states.count("COMPLETE") + 1 >= 7


@pytest.mark.slow
def test_an_interrupt_ends_the_objective(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    script = _script(storage, "hold")
    assert until(lambda: len(_pids(storage)) == 3, 60.0, pause=0.1)
    pids = _pids(storage)
    os.killpg(script.pid, signal.SIGINT)  # what a terminal does
    _, shown = script.communicate(timeout=60.0)
    assert "KeyboardInterrupt" in shown
    assert until(lambda: not any(map(alive, pids)))
    trial = optuna.load_study(study_name="s", storage=storage).trials[2]
    assert trial.state == TrialState.FAIL
    assert "x" in trial.params


@pytest.mark.slow
def test_nothing_is_left_when_a_program_ends(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(storage=storage, study_name="s")
    program = SCRIPT.replace("trial.number == 2", "False").replace(
        "return x", 'trial.set_user_attr("pids", [os.getpid(), os.getppid()]); return x'
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, storage, "jobs"], timeout=60
    )
    assert done.returncode == 0
    assert not any(map(alive, _pids(storage)))
    assert len(_pids(storage)) == 4 * 2


@pytest.mark.slow
def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = tmp_path / "time_limit.json"
    assert benchmark.main(["--trials=1", f"--output={output}"]) == 0
    _end_helpers()
    assert "late: C loop" in capsys.readouterr().out
    report = json.loads(output.read_text())
    assert set(report["overhead"]) == set(benchmark.WAYS)
    assert all(figure["median"] > 0.0 for figure in report["late"].values())
