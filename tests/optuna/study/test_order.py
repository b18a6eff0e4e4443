"""The order in which a study's trials are learned, and who waits for whom."""

import os
import subprocess
import sys
import threading
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.storages import RetryFailedTrialCallback
from optuna.trial import TrialState

from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_optuna import IISESampler, MFTopTwoSampler, certify
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study import study_experiment
from mfhpo_optuna.study.study_experiment import StudyExperiment
from mfhpo_optuna.study.trials.processes import is_surely_dead, worker_name
from mfhpo_optuna.study.trials.under_way import UnderWay
from tests.optuna.samplers.races import Clock, answers, certificate_of

ARMS = [{"x": 0.0}, {"x": 1.0}]
NOTHING = "ignore:trial .* has nothing to evaluate"


def sampler(make=MFTopTwoSampler, **options):
    return make("epochs", ARMS, **{"epsilon": 0.0, "measure": 0, "seed": 0, **options})


def begin(study):
    trial = study.ask()
    x = trial.suggest_float("x", 0.0, 1.0)
    trial.suggest_int("epochs", 1, 9)
    return trial, x


def told(study):
    """The trials that were learned, of each configuration at each level in their order."""
    numbers = {}
    for result in study.sampler.known(study).experiment.history():
        numbers.setdefault((result.pull.arm, result.pull.fidelity), []).append(int(result.id))
    return numbers


@settings(max_examples=8, deadline=None)
@given(order=st.permutations(range(12)), seed=st.integers(0, 100))
def test_the_order_of_ends_does_not_matter(order, seed):
    values = np.random.default_rng(seed).standard_normal(12)
    learned = []
    for ends in (range(12), order):
        study = optuna.create_study(direction="maximize", sampler=sampler(IISESampler))
        trials = [begin(study)[0] for _ in range(12)]
        for number in ends:
            study.tell(trials[number], float(values[number]))
        learned.append(told(study))
    assert learned[0] == learned[1]


def play(study, n):
    for _ in range(n):
        trial, x = begin(study)
        study.tell(trial, x + 0.01 * np.random.default_rng(trial.number).standard_normal())


@pytest.mark.filterwarnings(NOTHING)
def test_quick_results_wait_for_a_slow_one_that_began_earlier():
    study = optuna.create_study(direction="maximize", sampler=sampler(IISESampler))
    slow, _ = begin(study)
    play(study, 80)
    answer = study.sampler.recommendation(study)
    assert not answer.certified
    assert f"waits for evaluation {slow.number} of candidate 0" in answer.reason
    assert slow.number not in [number for numbers in told(study).values() for number in numbers]
    study.tell(slow, 0.0)
    play(study, 20)
    answer = study.sampler.recommendation(study)
    assert answer.certified
    assert answer == sampler(IISESampler).recommendation(study)
    assert told(study)[0, 2][0] == slow.number
    assert study.best_trial.user_attrs["mfhpo:certificate"]["certified"]


@pytest.mark.filterwarnings(NOTHING)
@pytest.mark.parametrize("is_elsewhere", [True, False])
def test_who_is_said_to_have_failed_elsewhere_is_lost(is_elsewhere, monkeypatch):
    study = optuna.create_study(direction="maximize", sampler=sampler(IISESampler))
    slow, _ = begin(study)
    play(study, 12)
    with monkeypatch.context() as patch:
        if is_elsewhere:
            patch.setattr(study_experiment, "worker_name", lambda: "another 1")
        study.tell(slow.number, state=TrialState.FAIL)
    play(study, 20)
    for reader in (study.sampler, sampler(IISESampler)):
        answer = reader.recommendation(study)
        assert answer.certified
        assert answer.failures == (not is_elsewhere)
        assert any("was left out" in each for each in answer.conditions) == is_elsewhere


def test_what_waits_counts_as_under_way_and_is_paid_for():
    study = optuna.create_study(direction="maximize", sampler=sampler(IISESampler, budget=100))
    first, _ = begin(study)
    others = [begin(study)[0] for _ in range(4)]
    for trial in others:
        study.tell(trial, 0.5)
    ledger = study.sampler.known(study).experiment.ledger
    behind = [t for t in others if t.params["x"] == first.params["x"]]
    assert len(ledger.held) == len(behind) > 0
    assert len(ledger.pending()) == 1 + len(behind)
    assert study.sampler.recommendation(study).cost == 9.0 * len(others)


# The version that takes its place does the same; older ones of Optuna do not have it.
@pytest.mark.filterwarnings("ignore:Retry.*Callback")
def test_a_trial_that_optuna_repeats_has_the_place_of_the_lost_one():
    study = optuna.create_study(direction="maximize", sampler=sampler(IISESampler))
    died, _ = begin(study)
    other, _ = begin(study)
    study._storage.set_trial_state_values(died._trial_id, TrialState.FAIL)
    RetryFailedTrialCallback()(study, study.trials[died.number])
    later = [begin(study)[0] for _ in range(4)]
    for trial in [other, *reversed(later)]:
        study.tell(trial, trial.params["x"])
    again = later[0]
    assert again.params == died.params
    assert told(study)[0, 2][0] == again.number
    answer = study.sampler.recommendation(study)
    assert not any("left out" in each for each in answer.conditions)
    assert answer.cost == 9.0 * 6


@pytest.mark.filterwarnings(NOTHING)
@pytest.mark.parametrize("make", [IISESampler, MFTopTwoSampler])
def test_a_trial_begun_before_the_levels_were_known_waits_at_the_level_it_asks_for(make):
    study = optuna.create_study(direction="maximize", sampler=sampler(make, measure=1))
    other = optuna.load_study(
        study_name=study.study_name, storage=study._storage, sampler=sampler(make, measure=1)
    )
    blind = [study.ask(), other.ask(), study.ask(), other.ask()]
    asked = [(t.suggest_float("x", 0.0, 1.0), t.suggest_int("epochs", 1, 9)) for t in blind]
    assert asked == [(0.0, 9), (1.0, 9)] * 2
    for trial in blind[1::2]:
        other.tell(trial, -1.0)
    for _ in range(30):
        trial, x = begin(other)
        other.tell(trial, -x + 0.01 * np.random.default_rng(trial.number).standard_normal())
        assert not other.sampler.recommendation(other).certified
    for trial in blind[0::2]:
        study.tell(trial, 0.0)
    for _ in range(30):
        trial, x = begin(other)
        other.tell(trial, -x + 0.01 * np.random.default_rng(trial.number).standard_normal())
    assert other.sampler.recommendation(other).certified


class Slow:
    """An objective with a first trial of the best configuration that is slow, then has a value."""

    def __init__(self, value, end_it):
        self.value, self.end_it = value, end_it
        self._lock = threading.Lock()
        self._rng = np.random.default_rng(0)
        self._is_first = True

    def __call__(self, trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.suggest_categorical("level", [1])
        with self._lock:
            is_slow = x == 1.0 and self._is_first
            self._is_first &= not is_slow
            value = x + 0.05 * float(self._rng.standard_normal())
        if is_slow:
            self.was_ended = self.end_it.wait(60.0)
            return self.value
        return value


def single_level(make):
    return make(Fidelity("level", levels=[1]), ARMS, epsilon=0.0, seed=0, progress=False)


@pytest.fixture
def ends_when_waited_for(monkeypatch):
    ended, pause = threading.Event(), threading.Event()

    def sleep(seconds):
        ended.set()
        pause.wait(0.005)

    monkeypatch.setattr(StudySampler, "_sleep", staticmethod(sleep))
    return ended


@pytest.mark.parametrize(("make", "value"), [(IISESampler, 1.0), (MFTopTwoSampler, 0.9)])
def test_a_study_waits_for_a_slow_trial_outside_the_lock(make, value, ends_when_waited_for):
    objective = Slow(value, ends_when_waited_for)
    study = optuna.create_study(direction="maximize", sampler=single_level(make))
    study.optimize(objective, n_jobs=2, n_trials=2000)
    assert objective.was_ended
    (answer,) = answers(study)
    assert certificate_of(answer)["certified"]
    assert study.best_params["x"] == 1.0


def test_certify_waits_for_a_slow_evaluation(ends_when_waited_for):
    study = optuna.create_study(direction="maximize")
    for x in (0.0, 1.0):
        study.enqueue_trial({"x": x, "level": 1})
    ended = threading.Event()
    ended.set()
    study.optimize(Slow(1.0, ended), n_trials=2)
    objective = Slow(0.9, ends_when_waited_for)
    answer = certify(study, objective, top=2, epsilon=0.0, n_jobs=2)
    assert objective.was_ended
    assert answer.certified
    record = optuna.load_study(study_name=answer.study_name, storage=study._storage)
    assert [certificate_of(trial)["certified"] for trial in answers(record)] == [True]


def test_a_trial_that_hangs_ends_the_study_and_later_it_goes_on(monkeypatch):
    monkeypatch.setattr(StudyExperiment, "is_worth_waiting", False)
    ended = threading.Event()
    stop = optuna.Study.stop

    def stop_and_end(study):
        stop(study)
        ended.set()

    monkeypatch.setattr(optuna.Study, "stop", stop_and_end)
    study = optuna.create_study(direction="maximize", sampler=single_level(IISESampler))
    objective = Slow(0.9, ended)
    study.optimize(objective, n_jobs=2)
    assert objective.was_ended
    assert not study.sampler.recommendation(study).certified
    assert answers(study) == []
    study.optimize(objective)
    (last,) = answers(study)
    assert study.best_trial == last
    assert certificate_of(last)["certified"]


@pytest.mark.skipif(os.name != "posix", reason="only there a process can be asked for")
def test_a_worker_is_dead_only_if_that_is_sure():
    machine, _, _ = worker_name().rpartition(" ")
    assert not is_surely_dead(worker_name())
    assert not is_surely_dead(None)
    assert not is_surely_dead("another machine 1")
    assert not is_surely_dead(f"{machine} x@")
    assert not is_surely_dead(f"{machine} 1")  # not ours, but there
    assert is_surely_dead(f"{machine} {2**22 + 1}")  # beyond the largest number of a process


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="Linux says what a process is")
def test_a_killed_worker_is_dead_though_its_parent_does_not_ask_or_another_has_its_number():
    machine, _, _ = worker_name().rpartition(" ")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert not is_surely_dead(f"{machine} {child.pid}")
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it keeps its number
        assert is_surely_dead(f"{machine} {child.pid}")
    finally:
        child.communicate()
    mine = worker_name()
    assert is_surely_dead(mine[:-1] + str((int(mine[-1]) + 1) % 10))  # it began at another time


def minimised(study, trial, rng):
    x = trial.suggest_float("x", 0.0, 1.0)
    trial.suggest_int("epochs", 1, 9)
    return 0.5 + 0.01 * x + 0.1 * float(rng.standard_normal())


def with_an_overtaken_trial(**options):
    study = optuna.create_study(sampler=sampler(**options))
    return study, begin(study)[0]


def test_a_timeout_ends_a_study_that_waits(monkeypatch):
    """Who waits looks at the timeout after 10 and 20 seconds, and then after 40."""
    clock = Clock()
    monkeypatch.setattr(StudySampler, "_sleep", staticmethod(clock.sleep))
    monkeypatch.setattr(UnderWay, "clock", staticmethod(clock.monotonic))
    began = clock.now
    of_day = SimpleNamespace(now=lambda: datetime.fromtimestamp(clock.now))
    monkeypatch.setattr("optuna.study._optimize.datetime", SimpleNamespace(datetime=of_day))
    rng = np.random.default_rng(1)
    study, slow = with_an_overtaken_trial(epsilon=0.5)
    study.optimize(lambda trial: minimised(study, trial, rng), timeout=30)
    assert clock.now - began == pytest.approx(40.0)
    assert study.trials[slow.number].state == TrialState.RUNNING
    assert not study.sampler.recommendation(study).certified


def test_ctrl_c_leaves_no_waiting_trial_behind(monkeypatch):
    def interrupt(seconds):
        raise KeyboardInterrupt

    rng = np.random.default_rng(1)
    study, slow = with_an_overtaken_trial(epsilon=0.5)
    monkeypatch.setattr(StudySampler, "_sleep", staticmethod(interrupt))
    with pytest.raises(KeyboardInterrupt):
        study.optimize(lambda trial: minimised(study, trial, rng), timeout=20)
    running = [trial.number for trial in study.trials if trial.state == TrialState.RUNNING]
    assert running == [slow.number]
