"""Several workers that find at the same moment that a race is over: one of them answers."""

import os

import numpy as np
import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from mfhpo_optuna import IISESampler
from mfhpo_optuna.samplers import answer as answering
from mfhpo_optuna.samplers.study_sampler import StudySampler
from mfhpo_optuna.study.trials.attributes import ANSWERING_KEY
from tests.optuna.samplers.races import ARMS, CERTIFICATE, answers, bowl, pulls, worker
from tests.optuna.study.test_joining import a_dead_process, another_process


def iise():
    return IISESampler("epochs", ARMS, epsilon=0.2, sigma=0.05, seed=0)


@pytest.fixture
def over(monkeypatch):
    """A study whose race is over, and whose answer nobody has added yet."""
    study = worker(InMemoryStorage(), iise())
    with monkeypatch.context() as patch:
        for way in ("add_answer", "add_so_far"):
            patch.setattr(answering, way, lambda *_: None)
        study.optimize(bowl)
    assert study.sampler.recommendation(study).certified
    assert len(pulls(study)) == len(study.trials)
    return study


def claim(study, process=None):
    """Another process has a trial under way in which it is about to answer."""
    other = optuna.load_study(study_name="shared", storage=study._storage)
    trial = other.ask()
    trial.set_user_attr(ANSWERING_KEY, another_process(process or os.getppid()))
    return trial


@pytest.fixture
def waits(monkeypatch):
    """What happens at each wait, one after the other; then nothing."""
    happens = []

    def sleep(seconds):
        waits.append(seconds)
        if happens:
            happens.pop(0)()

    waits = []
    monkeypatch.setattr(StudySampler, "_sleep", staticmethod(sleep))
    return happens, waits


def test_alone_nobody_waits(over, waits):
    over.optimize(bowl)
    assert len(answers(over)) == 1
    assert not waits[1]


def test_who_comes_later_adds_no_answer(over, waits):
    happens, waited = waits
    trial, other = claim(over), worker(over._storage, iise())

    def answer_and_end():
        answering.add_answer(other, other.sampler.known(other))
        other.tell(trial.number, state=TrialState.PRUNED)

    happens += [lambda: None, answer_and_end]
    over.optimize(bowl)
    assert len(waited) == 2
    assert len(answers(over)) == 1


def test_the_first_trial_answers_after_one_look(over, waits):
    happens, waited = waits
    mine = over.ask()  # under ask and tell nothing is concluded before a trial
    claim(over)
    mine.suggest_float("x", -1, 1)
    over.tell(mine, state=TrialState.FAIL)
    assert len(waited) == 1
    assert len(answers(over)) == 1
    assert happens == []


def test_one_that_never_answers_is_not_waited_for_long(over, waits):
    _, waited = waits
    claim(over)
    over.optimize(bowl)
    assert len(answers(over)) == 1
    assert 1.5 <= sum(waited) <= 2.5


def test_a_dead_process_is_not_waited_for(over, waits):
    claim(over, process=a_dead_process())
    over.optimize(bowl)
    assert not waits[1]
    assert len(answers(over)) == 1


def test_an_interrupt_while_waiting_still_answers(over, waits):
    happens, _ = waits

    def interrupt():
        raise KeyboardInterrupt

    claimed = claim(over)
    happens.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        over.optimize(bowl)
    assert len(answers(over)) == 1
    running = [t.number for t in over.trials if t.state == TrialState.RUNNING]
    assert running == [claimed.number]


class Slow(IISESampler):
    """Something may happen between what it learns of a trial and the trial's end in the study."""

    def __init__(self, **options):
        super().__init__("epochs", 4, estimated_bias="eliminate", measure=3, **options)
        self.meanwhile = lambda: None

    def after_trial(self, study, trial, state, values):
        super().after_trial(study, trial, state, values)
        self.meanwhile()


@pytest.mark.parametrize("seed", [6, 19, 85])
@pytest.mark.parametrize("threads", [False, True])
def test_a_certificate_is_what_whoever_reads_the_study_later_finds(seed, threads):
    """Though trials ended in another order than the workers learned of them in.

    With some seeds a worker that kept to its own order would give another arm, or certify alone.
    """
    storage, rng = InMemoryStorage(), np.random.default_rng(seed)

    def make():
        return worker(storage, Slow(epsilon=0.2, sigma=0.05, seed=0))

    def begin(study):
        trial = study.ask()
        x, y = trial.suggest_float("x", -1, 1), trial.suggest_categorical("y", ["a", "b"])
        value = (x - 0.3) ** 2 + 0.5 * (y == "b") + 0.2 / trial.suggest_int("epochs", 1, 9)
        return trial, value + 0.05 * rng.normal()

    def meanwhile(trial):
        second.sampler.meanwhile = lambda: None
        first.tell(*trial)

    first = make()
    second = first if threads else make()
    while True:
        ended, other = begin(second), begin(first)
        second.sampler.meanwhile = lambda trial=other: meanwhile(trial)
        second.tell(*ended)
        if has_ended(first):
            break
        ended, other = begin(second), begin(first)
        second.tell(*ended)
        if has_ended(first):
            break
        first.tell(*other)
    reader = make()
    found = reader.sampler.recommendation(reader)
    said = reader.best_trial.user_attrs[CERTIFICATE]
    assert (said["certified"], said["arm"]) == (True, said["arm"]) == (found.certified, found.arm)


def has_ended(study):
    certificates = (t.user_attrs.get(CERTIFICATE) for t in study.get_trials(deepcopy=False))
    return any(certificate["finished"] for certificate in certificates if certificate)


class Failing(InMemoryStorage):
    """Once, it fails to write that a trial has ended, of which the sampler has learned already."""

    fails = False

    def set_trial_state_values(self, trial_id, state, values=None):
        if self.fails and state.is_finished():
            self.fails = False
            raise OSError("the disk is full")
        return super().set_trial_state_values(trial_id, state, values)


@pytest.mark.parametrize("comes", [TrialState.COMPLETE, TrialState.FAIL])
def test_a_trial_whose_end_was_not_written_is_learned_of_once(comes):
    storage = Failing()
    study = worker(storage, iise())
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, bowl(trial))
    trial = study.ask()
    value = bowl(trial)
    storage.fails = True
    with pytest.raises(OSError, match="the disk is full"):
        study.tell(trial, value)
    if comes == TrialState.COMPLETE:
        study.tell(trial, value)
    else:  # a heartbeat was missed
        storage.set_trial_state_values(trial._trial_id, comes)
    fresh = worker(storage, iise())
    found, expected = (one.sampler.known(one).experiment for one in (study, fresh))
    assert found.history() == expected.history()
    assert repr(found.answer()) == repr(expected.answer())
    assert found.next() == expected.next()
