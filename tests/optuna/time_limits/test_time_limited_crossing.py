import math
import os
import pickle
import random
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import optuna
import pytest
from optuna.terminator import report_cross_validation_scores
from optuna.trial import TrialState

from mfhpo_optuna.study.trials.attributes import SECONDS_KEY
from mfhpo_optuna.time_limits.crossing import pack_error
from tests.optuna.time_limits.processes import MEGABYTE, SlowSampler, only, run


class Tensor:
    """A number that cannot be pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def __float__(self):
        return 0.75


LONG = "x" * 2 * MEGABYTE  # longer than one piece of a message
NUMBERS = [True, np.float32(0.5), np.array(3.0), math.inf, Tensor()]
OTHERS = [None, np.ones(MEGABYTE), threading.Lock(), [1.0, None], {"loss": 1.0}]


@pytest.mark.parametrize("value", [*NUMBERS, *OTHERS], ids=type)
def test_values_and_what_is_none_are_taken_as_without_limits(value):
    def objective(trial):
        return value if trial.number == 0 else 1.0

    plain = optuna.create_study()
    plain.optimize(objective, n_trials=2)
    assert (plain.trials[1].state, plain.trials[1].value) == (TrialState.COMPLETE, 1.0)
    for trial, limited in zip(plain.trials, run(objective, 2, limit=30.0).trials, strict=True):
        assert (limited.state, limited.value) == (trial.state, trial.value)


class Unreadable:
    def __float__(self):
        raise RuntimeError("no number")

    __repr__ = __float__


class Endless(Sequence):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        raise RuntimeError("no item")


@pytest.mark.parametrize("value", ["0.5", 10**400, Unreadable(), [10**400], Endless()], ids=type)
def test_what_optuna_would_leave_running_fails_and_the_study_goes_on(value):
    study = run(lambda trial: value if trial.number == 0 else 1.0, n_trials=2, limit=30.0)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL, TrialState.COMPLETE]


def test_several_objectives():
    def objective(trial):
        return trial.suggest_float("x", 0.0, 1.0), 2.0

    study = run(objective, 2, limit=30.0, directions=["minimize", "maximize"])
    assert study.trials[0].values == [study.trials[0].params["x"], 2.0]


class Odd(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class Unshowable(Exception):
    def __init__(self, code):
        self.code = code
        self.lock = threading.Lock()

    def __str__(self):
        return f"code {self.code}"


@pytest.mark.parametrize(
    ("make", "kind", "shown"),
    [
        (lambda: ValueError("plain"), ValueError, "plain"),
        (lambda: ValueError(threading.Lock()), ValueError, "lock"),
        (lambda: Odd(1, 2), Odd, "1 and 2"),
        (lambda: Unshowable(5), RuntimeError, "code 5"),
        (lambda: type("Local", (KeyError,), {})("k"), KeyError, "Local: 'k'"),
        (lambda: SystemExit(3), RuntimeError, "SystemExit(3), which ends a program"),
        (lambda: GeneratorExit(), RuntimeError, "GeneratorExit(), which ends a program"),
        (lambda: KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
    ],
)
def test_exceptions_cross(make, kind, shown):
    def objective(trial):
        raise make()

    study = optuna.create_study()
    with pytest.raises(kind, match=re.escape(shown)) as raised:
        run(objective, 3, limit=30.0, study=study)
    assert type(raised.value) is kind
    assert "in objective" in str(raised.value.__cause__)
    assert "raise make()" in str(raised.value.__cause__)
    assert SECONDS_KEY in study.trials[0].user_attrs
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]


def test_an_exception_that_only_the_other_process_knows():
    packed = pack_error(Odd(1, 2))
    renamed = pickle.dumps(packed).replace(b"test_time_limited", b"test_time_timited")
    elsewhere = pickle.loads(renamed)
    assert isinstance(elsewhere.error(), RuntimeError)
    assert str(elsewhere.error()) == "1 and 2"


def test_output_appears_once(capfd):
    sys.stdout.write("before ")

    def objective(trial):
        print(f"trial {trial.number}")
        return 0.0

    run(objective, n_trials=2, limit=30.0)
    assert capfd.readouterr().out == "before trial 0\ntrial 1\n"


def test_the_trial_is_like_the_real_one():
    def objective(trial):
        seen = {
            "float": trial.suggest_float("float", 0.1, 10.0, log=True),
            "step": trial.suggest_float(name="step", low=0.0, high=1.0, step=0.25),
            "int": trial.suggest_int(name="int", low=1, high=100, log=True),
            "even": trial.suggest_int("even", 0, 10, step=2),
            "choice": trial.suggest_categorical(name="choice", choices=["a", None, 3, True]),
        }
        assert trial.suggest_int.__name__ == "suggest_int"
        assert trial.params == seen
        assert trial.suggest_float("float", 0.1, 10.0, log=True) == seen["float"]
        assert set(trial.distributions) == set(seen)
        assert trial.relative_params == {}
        trial.report(np.float32(0.5), np.int64(1))
        assert trial.should_prune() is False
        trial.set_user_attr("seen", seen)
        trial.set_user_attr("long", LONG)
        assert trial.user_attrs == {"seen": seen, "long": LONG}
        trial.set_constraint("c", np.float64(-2.0))
        assert trial.constraints == {"c": -2.0}
        assert trial.datetime_start is not None
        assert isinstance(trial, optuna.trial.BaseTrial)
        study = trial.study
        assert study.directions == [study.direction] == [optuna.study.StudyDirection.MINIMIZE]
        assert study.user_attrs == {"owner": "me"}
        assert (study.study_name, study.metric_names) == ("named", None)
        assert len(study.trials) == len(study.get_trials(deepcopy=False)) == trial.number + 1
        if trial.number:
            assert (study.best_trial.number, study.best_value) == (0, 0.0)
            assert study.best_params == study.best_trial.params
            assert [best.number for best in study.best_trials] == [0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            report_cross_validation_scores(trial, [0.5, 0.6])
        return float(trial.number)

    study = optuna.create_study(study_name="named")
    study.set_user_attr("owner", "me")
    run(objective, 2, limit=30.0, study=study)
    for trial in study.trials:
        assert trial.user_attrs["seen"] == trial.params
        assert trial.intermediate_values == {1: 0.5}
        assert "terminator:cv_scores" in trial.system_attrs


REFUSED = [
    (ValueError, r"low.*high", lambda trial: trial.suggest_float("x", 1.0, 0.0)),
    (TypeError, "supposed to be a float", lambda trial: trial.report("much", 1)),
    (TypeError, "can be pickled", lambda trial: trial.set_user_attr("a", threading.Lock())),
    (ValueError, "No trials are completed", lambda trial: trial.study.best_value),
    (AttributeError, "enqueue_trial cannot be", lambda trial: trial.study.enqueue_trial({})),
]


def test_errors_of_the_trial_reach_the_objective():
    def objective(trial):
        for kind, words, ask in REFUSED:
            with pytest.raises(kind, match=words):
                ask(trial)
        return 0.5

    assert only(run(objective, limit=30.0)).value == 0.5


def test_threads_of_the_objective_share_the_trial():
    def objective(trial):
        def use(part):
            for name in (f"x{part}-{i}" for i in range(25)):
                value = trial.suggest_float(name, part, part + 0.5)
                assert part <= value <= part + 0.5
                trial.set_user_attr(name, value)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(use, range(4)))
        return 0.0

    trial = only(run(objective, limit=60.0))
    assert len(trial.params) == 100
    assert all(trial.user_attrs[name] == value for name, value in trial.params.items())


def test_interrupted_calls_leave_the_connection_whole(capfd):
    class Interrupted(Exception):
        pass

    def interrupt(number, frame):
        raise Interrupted

    def interrupted(trial, name, low):
        signal.setitimer(signal.ITIMER_REAL, 0.1)  # while it waits for the answer
        with pytest.raises(Interrupted):
            trial.suggest_float(name, low, low + 0.5)

    def objective(trial):
        signal.signal(signal.SIGALRM, interrupt)
        trial.set_user_attr("process", os.getpid())
        for i in range(4):
            interrupted(trial, f"x{i}", i)
        value = trial.suggest_float("y", 10.0, 11.0)
        interrupted(trial, "z", 20.0)  # its answer comes between the trials
        return value

    study = run(objective, n_trials=2, limit=30.0, sampler=SlowSampler(time.sleep))
    assert all(10.0 <= trial.value <= 11.0 and len(trial.params) == 6 for trial in study.trials)
    assert len({trial.user_attrs["process"] for trial in study.trials}) == 1
    assert "Traceback" not in capfd.readouterr().err


def test_late_threads_and_children_are_refused():
    kept = []

    def objective(trial):
        if kept:
            with pytest.raises(RuntimeError, match="trial 0 has ended"):
                kept[0].report(1.0, 1)
        kept.append(trial)
        pid = os.fork()
        if not pid:
            try:
                with pytest.raises(RuntimeError, match=r"used in process \d+ only"):
                    trial.report(1.0, 1)
                os._exit(5)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
        return 0.0

    study = run(objective, n_trials=2, limit=30.0)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE"]


def test_global_generators_differ_between_trials_and_repeat_when_seeded():
    legacy = np.random  # the legacy generator is meant

    def objective(trial):
        trial.set_user_attr("random", random.random())
        trial.set_user_attr("numpy", legacy.random())
        return 0.0

    def draws(seed=None):
        if seed is not None:
            random.seed(seed)
            legacy.seed(seed)
        study = run(objective, n_trials=4, limit=30.0)
        return [trial.user_attrs[key] for trial in study.trials for key in ("random", "numpy")]

    states = random.getstate(), legacy.get_state()
    try:
        first = draws(seed=1)
        assert len({*first, *draws()}) == 16
        assert draws(seed=1) == first
        assert not {*draws(seed=2)} & {*first}
    finally:
        random.setstate(states[0])
        legacy.set_state(states[1])
