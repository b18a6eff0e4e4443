"""Workers that join a study which others run: with the same arguments, or not at all."""

import inspect
import os
import re
import subprocess
import sys
import time

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from mfhpo_optuna import Fidelity, IISESampler, MFLUCBSampler, NashSampler, SearchSampler, certify
from mfhpo_optuna.arguments import STATE_VERSION, Settings
from mfhpo_optuna.study.trials.attributes import CERTIFICATE_KEY, SAMPLER_KEY
from mfhpo_optuna.study.trials.processes import worker_name
from mfhpo_optuna.visualization.reading import stored_sampler
from tests.optuna.games.nash_games import PLAYERS, QUERY, tracking
from tests.optuna.samplers.races import ARMS, PULL, bowl, pulls, worker
from tests.optuna.workers import search, start

MANY = [{"x": float(x)} for x in np.linspace(-1, 1, 50)]
OTHERS = [*MANY[:-1], {"x": 0.987}]
REFUSED = "is run with other arguments by another worker"


def iise(**options):
    return IISESampler("epochs", ARMS, seed=0, **options)


def another_process(number):
    """The name of a process of this machine; the parent of this one surely runs."""
    machine, _, _ = worker_name().rpartition(" ")
    return f"{machine} {number}@"


def begun_elsewhere(study, key=PULL, number=None):
    """A trial under way of a worker in another process."""
    trial = study.ask()
    tag = {**trial.user_attrs[key], "worker": another_process(number or os.getppid())}
    study._storage.set_trial_user_attr(trial._trial_id, key, tag)
    return trial


def a_dead_process():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@pytest.fixture
def storage():
    return InMemoryStorage()


def test_other_arguments_are_refused_while_another_process_runs_the_study(storage):
    one, other = worker(storage, iise(epsilon=0.1)), worker(storage, iise(epsilon=0.3))
    trial = begun_elsewhere(one)
    words = (
        f"study 'shared' {REFUSED}: trial 0, which process {os.getppid()} on "
        f"{os.uname().nodename} has begun. They differ in epsilon. "
    )
    with pytest.raises(ValueError, match=re.escape(words)):
        other.optimize(bowl, n_trials=5)
    assert [t.state for t in one.trials] == [TrialState.RUNNING, TrialState.FAIL]
    assert one.user_attrs[SAMPLER_KEY]["arguments"]["epsilon"] == 0.1
    one.optimize(bowl, n_trials=3)  # nobody has changed anything for those that were there
    one.tell(trial, bowl(trial))
    other.optimize(bowl, n_trials=3)  # nobody else runs it now
    assert one.user_attrs[SAMPLER_KEY]["arguments"]["epsilon"] == 0.3
    assert len(pulls(one)) == 7


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (iise(), iise(epsilon=None, delta=0.05, measure=10)),  # the defaults
        (iise(epsilon=1), iise(epsilon=1.0)),
        (iise(), iise(lease=5.0, progress=False)),
        (
            IISESampler(Fidelity("epochs", (1, 9)), ARMS, budget=np.float64(90)),
            IISESampler(Fidelity("epochs", [1, 9]), tuple(ARMS), budget=90),
        ),
    ],
)
def test_what_means_the_same_is_not_refused(mine, theirs, storage):
    assert Settings(mine, mine.arguments).digest == Settings(theirs, theirs.arguments).digest
    begun_elsewhere(worker(storage, mine))
    worker(storage, theirs).optimize(bowl, n_trials=1)
    assert len(pulls(worker(storage, mine))) == 2


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (IISESampler("epochs", ARMS, seed=1), iise(), "differ in seed"),
        (MFLUCBSampler("epochs", ARMS, seed=0), iise(), "differ in sampler"),
        (IISESampler("epochs", ARMS[:2], seed=0), iise(), "differ in arms"),
        (
            IISESampler("epochs", {"x": FloatDistribution(0, 1, step=0.5)}),
            IISESampler("epochs", {"x": FloatDistribution(0, 2, step=0.5)}),
            "differ in arms",
        ),
        # Long arguments that differ far behind.
        (IISESampler("epochs", MANY), IISESampler("epochs", OTHERS), "differ in arms"),
        (
            SearchSampler("epochs", budget=200, seed=0),
            SearchSampler("epochs", budget=100, seed=0),
            "differ in budget",
        ),
    ],
)
def test_what_differs_is_named(mine, theirs, words, storage):
    begun_elsewhere(worker(storage, theirs))
    with pytest.raises(ValueError, match=f"{REFUSED}.*{words}"):
        worker(storage, mine).optimize(bowl)


def test_a_dead_worker_and_one_whose_lease_is_over_are_not_waited_for(storage):
    begun_elsewhere(worker(storage, iise(epsilon=0.1)), number=a_dead_process())
    other = worker(storage, iise(epsilon=0.3))
    other.optimize(bowl, n_trials=1)
    begun_elsewhere(other)
    third = worker(storage, iise(epsilon=0.2, lease=1e-6))
    third.optimize(bowl, n_trials=1)
    assert len(pulls(third)) == 4


@pytest.mark.parametrize("fixed", [{"x": 0.0}, {"x": 0.0, "epochs": 3}])
def test_a_refused_trial_with_parameters_of_its_own_is_no_answer(fixed, storage):
    one = worker(storage, iise(epsilon=0.1))
    begun_elsewhere(one)
    one.enqueue_trial(fixed)
    other = worker(storage, iise(epsilon=0.3))
    with pytest.warns(UserWarning, match=rf"{REFUSED}.*Trial 1 is evaluated all the same"):
        other.optimize(lambda trial: -1.0 + 0.0 * trial.suggest_float("x", -1, 1))
    assert len(pulls(one)) == 1
    assert len(one.trials) == 2
    with pytest.raises(ValueError, match="No feasible trials"):
        _ = one.best_trial


def test_an_option_that_a_later_version_adds_changes_nothing_for_who_does_not_give_it(monkeypatch):
    def digest():
        return Settings(iise(epsilon=0.1), {"epsilon": 0.1, "seed": 0}).digest

    before, constructor = digest(), IISESampler.__init__
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [
        *inspect.signature(constructor).parameters.values(),
        inspect.Parameter("added", kind, default=3),
    ]
    signature = inspect.Signature(more)
    monkeypatch.setattr(constructor, "__signature__", signature)
    assert "added" in inspect.signature(IISESampler).parameters
    assert digest() == before


@pytest.mark.parametrize("version", [STATE_VERSION + 7, 1])
def test_a_study_of_another_version_is_refused_and_not_read(version, storage):
    by = "another mfhpo"
    study = worker(storage, iise())
    study.optimize(bowl, n_trials=2)
    study.set_user_attr(SAMPLER_KEY, {**study.user_attrs[SAMPLER_KEY], "version": version})
    with pytest.raises(ValueError, match=f"{by}, which writes version {version} of a"):
        worker(storage, iise()).optimize(bowl)
    assert len(pulls(study)) == 2
    study._storage.set_trial_user_attr(study.ask()._trial_id, PULL, {"of": "another kind"})
    with pytest.raises(ValueError, match=by):
        worker(storage, iise()).optimize(bowl)
    with pytest.raises(ValueError, match=by):
        stored_sampler(study)


@pytest.mark.parametrize(
    "note", [None, 7, "x", [], {}, {"arguments": 3}, {"version": "new"}, {"arguments": {"a": []}}]
)
def test_notes_that_nobody_can_read_break_nothing(note, storage):
    one = worker(storage, iise(epsilon=0.1))
    begun_elsewhere(one)
    one.set_user_attr(SAMPLER_KEY, note)
    with pytest.raises(ValueError, match=REFUSED):
        worker(storage, iise(epsilon=0.3)).optimize(bowl)
    worker(storage, iise(epsilon=0.1)).optimize(bowl, n_trials=1)
    assert one.user_attrs[SAMPLER_KEY]["arguments"]["epsilon"] == 0.1


def test_of_two_that_begin_at_the_same_moment_the_one_that_is_noted_goes_on(storage):
    one, other = worker(storage, iise(epsilon=0.1)), worker(storage, iise(epsilon=0.3))
    begun_elsewhere(one)
    one.set_user_attr(SAMPLER_KEY, other.sampler._settings.note)
    other.optimize(bowl, n_trials=1)
    begun_elsewhere(other)
    with pytest.raises(ValueError, match="They differ in epsilon"):
        one.optimize(bowl)


def test_a_certificate_is_refused_as_well(storage):
    study = worker(storage, optuna.samplers.RandomSampler(seed=0))
    study.optimize(bowl, n_trials=10)
    first = certify(study, bowl, top=2, budget=5)
    record = optuna.load_study(study_name=first.study_name, storage=storage)
    record.set_user_attr(SAMPLER_KEY, {**record.user_attrs[SAMPLER_KEY], "digest": "theirs"})
    trial = record.ask()
    tag = {**pulls(record)[-1].user_attrs[PULL], "trial": trial.number, "arguments": "theirs"}
    tag["worker"] = another_process(os.getppid())
    storage.set_trial_user_attr(trial._trial_id, PULL, tag)
    for catch in ((), (Exception,)):
        with pytest.raises(ValueError, match=rf"{REFUSED}.* They differ in delta, budget"):
            certify(study, bowl, top=2, budget=60, delta=0.5, catch=catch)
    answers = [t for t in record.trials if CERTIFICATE_KEY in t.user_attrs]
    assert len(answers) == 1
    before = len(record.trials)
    assert [t.state for t in record.trials[-2:]] == [TrialState.FAIL] * 2
    assert len(pulls(record)) == 6
    with pytest.raises(ValueError, match=rf"{REFUSED}.* They differ in budget"):
        certify(study, bowl, top=2, budget=4)  # which asks for no evaluation
    certify(study, bowl, top=2, budget=4, delta=0.4, timeout=0)  # which merely reads
    assert len(record.trials) == before
    storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
    assert certify(study, bowl, top=2, budget=60, delta=0.5).evaluations > 6


def test_a_game_is_refused_as_well(storage):
    def player(budget):
        return optuna.create_study(
            storage=storage,
            study_name="game",
            load_if_exists=True,
            directions=["minimize"] * 2,
            sampler=NashSampler(PLAYERS, budget=budget, seed=0),
        )

    one = player(9)
    trial = begun_elsewhere(one, QUERY)
    with pytest.raises(ValueError, match="They differ in budget"):
        player(12).optimize(tracking)
    one.tell(trial, tracking(trial))
    player(12).optimize(tracking, n_trials=1)


@pytest.mark.parametrize("path", [pytest.param("study.db", marks=pytest.mark.slow), "study.log"])
def test_a_real_process_is_named(path, tmp_path):
    path = str(tmp_path / path)
    search(path, n_trials=0)
    other = start(f"search({path!r}, lease=None, n_trials=1, pause=600)")
    try:
        study = search(path, n_trials=0)
        while not study.trials or "epochs" not in study.trials[0].params:
            assert other.poll() is None, other.communicate()
            time.sleep(0.05)
        with pytest.raises(ValueError, match=rf"process {other.pid} .* They differ in budget"):
            search(path, budget=300, lease=None)
        newer = "import mfhpo_optuna.arguments as arguments; arguments.STATE_VERSION += 1"
        later = start(f"{newer}; search({path!r}, lease=None)")
        _, errors = later.communicate(timeout=60)
        assert f"which writes version {STATE_VERSION} of a study's state; this one" in errors
    finally:
        other.kill()
        other.communicate()
    search(path, budget=300, lease=None, n_trials=1)  # the other is dead now
