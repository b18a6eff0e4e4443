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
from mfhpo_optuna import IISESampler, MFTopTwoSampler, SearchSampler
from mfhpo_optuna.samplers import policy_sampler
from mfhpo_optuna.samplers.policy_sampler import PolicySampler
from mfhpo_optuna.study.fidelity_race import FidelityRace
from mfhpo_optuna.study.trials.processes import is_surely_dead, worker_name
from tests.optuna.samplers.races import Clock

ARMS = [{"x": 0.0}, {"x": 1.0}]
CERTIFICATE = "mfhpo:certificate"
SO_FAR = "mfhpo:so_far"


def sampler(make=MFTopTwoSampler, **options):
    return make("epochs", ARMS, **{"epsilon": 0.0, "measure": 0, "seed": 0, **options})


def begin(study):
    trial = study.ask()
    x = trial.suggest_float("x", 0.0, 1.0)
    trial.suggest_int("epochs", 1, 9)
    return trial, x


@settings(max_examples=8, deadline=None)
@given(order=st.permutations(range(12)), seed=st.integers(0, 100))
def test_the_order_of_ends_does_not_matter(order, seed):
    values = np.random.default_rng(seed).standard_normal(12)
    told = []
    for ends in (range(12), order):
        study = optuna.create_study(direction="maximize", sampler=sampler(IISESampler))
        trials = [begin(study)[0] for _ in range(12)]
        for number in ends:
            study.tell(trials[number], float(values[number]))
        heard = {}

        def listen(race, heard=heard):
            def note(_, pull, observation):
                heard.setdefault((pull.arm, pull.fidelity), []).append(observation.value)

            return note

        study.sampler.replay(study, listen)
        told.append(heard)
    assert told[0] == told[1]


def overtaken(make_sampler):
    """A study whose first trial is under way while the others end; their values are clear."""
    study = optuna.create_study(direction="maximize", sampler=make_sampler)
    slow, _ = begin(study)
    for _ in range(80):
        trial, x = begin(study)
        study.tell(trial, x + 0.01 * np.random.default_rng(trial.number).standard_normal())
    return study, slow


def test_an_overtaken_trial_keeps_the_answer_uncertified_until_it_ends():
    study, slow = overtaken(sampler(IISESampler))
    answer = study.sampler.recommendation(study)
    assert answer.finished
    assert not answer.certified
    assert f"trial {slow.number} began earlier" in answer.reason
    assert f"study.tell({slow.number}, state=optuna.trial.TrialState.FAIL)" in answer.reason
    study.tell(slow, 0.0)
    answer = study.sampler.recommendation(study)
    assert answer.certified
    assert answer == sampler(IISESampler).recommendation(study)
    assert study.best_trial.user_attrs[CERTIFICATE]["certified"]


def test_a_trial_that_is_declared_dead_is_a_failure_and_no_longer_waited_for():
    study, slow = overtaken(sampler(IISESampler))
    study.tell(slow.number, state=TrialState.FAIL)
    answer = study.sampler.recommendation(study)
    assert answer.certified
    assert answer.failures == 1


def test_what_waits_counts_as_under_way_and_is_paid_for():
    study = optuna.create_study(direction="maximize", sampler=sampler(IISESampler, budget=100))
    first, _ = begin(study)
    others = [begin(study)[0] for _ in range(4)]
    for trial in others:
        study.tell(trial, 0.5)
    race = study.sampler._of(study)
    behind = [t for t in others if t.params["x"] == first.params["x"]]
    assert len(race._turns.waiting) == len(behind) > 0
    assert len(race._pending(-1)) == 1 + len(behind)
    assert race.policy.held_cost == 9.0 * len(behind)


# The version that takes its place does the same; older ones of Optuna do not have it.
@pytest.mark.filterwarnings("ignore:Retry.*Callback")
def test_a_trial_that_optuna_repeats_is_not_waited_for_twice():
    study = optuna.create_study(direction="maximize", sampler=sampler(IISESampler))
    died, _ = begin(study)
    study._storage.set_trial_state_values(died._trial_id, TrialState.FAIL)
    # It copies the attributes, so that the repetition looks like a trial of the race at once.
    RetryFailedTrialCallback()(study, study.trials[died.number])
    for _ in range(80):
        trial, x = begin(study)
        study.tell(trial, x + 0.01 * np.random.default_rng(trial.number).standard_normal())
    race = study.sampler._of(study)
    assert study.sampler.recommendation(study).certified
    assert not race._turns.waiting
    assert not race._turns.given_up


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
    for _ in range(80):
        trial, x = begin(other)
        other.tell(trial, -x + 0.01 * np.random.default_rng(trial.number).standard_normal())
        assert not other.sampler.recommendation(other).certified
    for trial in blind[0::2]:
        study.tell(trial, 0.0)
    assert other.sampler.recommendation(other).certified


@pytest.mark.filterwarnings("ignore")
def test_what_counts_for_an_arm_and_its_repeats_is_told_in_the_order_of_beginnings():
    study = optuna.create_study(sampler=IISESampler("epochs", arms=6, epsilon=0.0, seed=0))
    trials = []
    for _ in range(8):
        trial = study.ask()
        trials.append((trial, trial.suggest_categorical("x", ["a", "b"])))
        trial.suggest_int("epochs", 9, 9)
    told = []
    study.sampler._of(study).listener = lambda number, pull, _: told.append((pull.arm, number))
    for trial, _ in reversed(trials):
        study.tell(trial, float(trial.number))
    assert len({arm for arm, _ in told}) == 2
    for arm in {arm for arm, _ in told}:
        numbers = [number for owner, number in told if owner == arm]
        assert numbers == sorted(numbers)
        assert len({x for trial, x in trials if trial.number in numbers}) == 1


class Slow:
    """An objective with a first trial of the best configuration that is slow, then has a value."""

    def __init__(self, value, end_it):
        self.value, self.end_it = value, end_it
        self.evaluations = 0
        self._lock = threading.Lock()
        self._rng = np.random.default_rng(0)
        self._is_first = True

    def __call__(self, trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.suggest_categorical("level", [1])
        with self._lock:
            self.evaluations += 1
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
def overtaken_for_a_while(monkeypatch):
    ended = threading.Event()
    wait = PolicySampler._wait

    def watched(self, study, trial):
        if self._of(study).waits_for:
            threading.Timer(0.5, ended.set).start()
        return wait(self, study, trial)

    monkeypatch.setattr(PolicySampler, "_wait", watched)
    return ended


def answers(study):
    """Those at the end of a race, or what was taken for it."""
    ours = [t.user_attrs for t in study.trials if CERTIFICATE in t.user_attrs]
    return [attributes[CERTIFICATE] for attributes in ours if SO_FAR not in attributes]


@pytest.mark.parametrize(("make", "value"), [(IISESampler, 1.0), (MFTopTwoSampler, -5.0)])
def test_a_study_goes_on_while_only_an_overtaken_trial_keeps_it_from_a_certificate(
    make, value, overtaken_for_a_while
):
    objective = Slow(value, overtaken_for_a_while)
    study = optuna.create_study(direction="maximize", sampler=single_level(make))
    study.optimize(objective, n_jobs=2, n_trials=2000)
    assert overtaken_for_a_while.is_set()
    (answer,) = answers(study)
    assert answer["certified"]
    assert study.sampler.recommendation(study).certified
    assert study.best_params["x"] == 1.0


def test_a_trial_that_hangs_ends_the_wait_with_its_lease_and_later_the_record_is_mended(
    monkeypatch,
):
    monkeypatch.setattr(FidelityRace, "_default_lease", lambda self, pull: 1.0)
    ended = threading.Event()
    stop = optuna.Study.stop

    def stop_and_end(study):
        stop(study)
        threading.Timer(0.3, ended.set).start()

    monkeypatch.setattr(optuna.Study, "stop", stop_and_end)
    study = optuna.create_study(direction="maximize", sampler=single_level(IISESampler))
    objective = Slow(-5.0, ended)
    study.optimize(objective, n_jobs=2)
    assert objective.was_ended
    withheld, mended = answers(study)
    assert not withheld["certified"]
    assert "began earlier" in withheld["reason"]
    assert "began earlier" not in mended["reason"]
    assert mended["trials"] > withheld["trials"]
    assert study.best_trial.user_attrs[CERTIFICATE] == mended


@pytest.mark.parametrize("value", [1.0, -50.0])
def test_the_record_of_a_search_is_mended_when_its_last_replicate_ends(value, monkeypatch):
    monkeypatch.setattr(FidelityRace, "_default_lease", lambda self, pull: 0.0)
    sampler = SearchSampler(
        trials=60, certify_share=0.5, top=2, epsilon=0.5, seed=0, progress=False
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    slow = None
    for _ in range(60):
        trial = study.ask()
        x = trial.suggest_categorical("x", [0.0, 1.0])
        if slow is None and "shortlist" in trial.user_attrs.get("mfhpo:pull", {}) and x == 1.0:
            slow = trial
            continue
        study.tell(trial, x + 0.05 * np.random.default_rng(trial.number).standard_normal())
        if slow is not None and answers(study):
            break
    assert slow is not None
    assert [("began earlier" in answer["reason"]) for answer in answers(study)] == [True]
    study.tell(slow, value)
    withheld, mended = answers(study)
    assert not withheld["certified"]
    assert "began earlier" not in mended["reason"]
    assert study.best_trial.user_attrs[CERTIFICATE] == mended
    assert mended["certified"] == (value == 1.0)


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


def test_an_answer_is_brought_up_to_date_when_the_last_trial_fails():
    rng = np.random.default_rng(1)
    study, slow = with_an_overtaken_trial(budget=900.0)
    study.optimize(lambda trial: minimised(study, trial, rng))
    withheld = study.best_trial
    so_far = [trial for trial in study.trials if SO_FAR in trial.user_attrs]
    assert withheld.user_attrs["mfhpo:withheld"]
    assert withheld.value == np.nextafter(so_far[-1].value, -np.inf)  # it promises nothing more
    study.tell(slow.number, state=TrialState.FAIL)
    assert study.best_trial.user_attrs[CERTIFICATE] == answers(study)[-1]
    assert "mfhpo:withheld" not in study.best_trial.user_attrs
    assert study.best_value == min(
        np.nextafter(withheld.value, -np.inf), study.sampler.recommendation(study).interval[1]
    )


def test_a_timeout_ends_a_study_that_waits(monkeypatch):
    """Who waits looks at the timeout after 10 and 20 seconds, and then after 40."""
    clock = Clock()
    monkeypatch.setattr(policy_sampler, "time", clock)
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
    monkeypatch.setattr("mfhpo_optuna.samplers.policy_sampler.time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(lambda trial: minimised(study, trial, rng), timeout=20)
    running = [trial.number for trial in study.trials if trial.state == TrialState.RUNNING]
    assert running == [slow.number]
