"""Several workers that find at the same moment that a race is over: one of them answers."""

import os
import time

import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from mfhpo_optuna import IISESampler, RaceSampler
from mfhpo_optuna.samplers import answer
from mfhpo_optuna.study.attributes import ANSWERING_KEY
from tests.optuna.samplers.races import ARMS, CERTIFICATE, answers, bowl, pulls, valley
from tests.optuna.study.test_joining import a_dead_process, another_process

OVER = {"epsilon": 0.2, "sigma": 0.05, "seed": 0}


def worker(storage):
    return optuna.create_study(
        storage=storage,
        study_name="shared",
        load_if_exists=True,
        sampler=IISESampler("epochs", ARMS, **OVER),
    )


@pytest.fixture
def over():
    """A study whose race is over, and whose answer nobody has added yet."""
    ended = worker(InMemoryStorage())
    ended.optimize(bowl)
    storage = InMemoryStorage()
    study = worker(storage)
    study.add_trials(pulls(ended))
    assert study.sampler.recommendation(study).certified
    return study


def claim(study, seconds_ago=0.0, process=None):
    """Another process has a trial under way in which it is about to answer."""
    other = optuna.load_study(study_name="shared", storage=study._storage)
    trial = other.ask()
    note = {"worker": another_process(process or os.getppid()), "since": time.time() - seconds_ago}
    trial.set_user_attr(ANSWERING_KEY, note)
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
    clock = time.monotonic
    monkeypatch.setattr(answer.time, "sleep", sleep)
    monkeypatch.setattr(answer.time, "monotonic", lambda: clock() + sum(waits))
    return happens, waits


def test_alone_nobody_waits(over, waits):
    over.optimize(bowl)
    assert len(answers(over)) == 1
    assert not waits[1]
    assert not any(ANSWERING_KEY in trial.user_attrs for trial in over.trials)


def test_who_comes_later_adds_no_answer(over, waits):
    happens, waited = waits
    trial, other = claim(over, seconds_ago=1.0), worker(over._storage)

    def answer_and_end():
        other.sampler._conclude(other, other.sampler._of(other))
        other.tell(trial.number, state=TrialState.PRUNED)

    happens += [lambda: None, answer_and_end]
    over.optimize(bowl)
    assert len(waited) == 2
    assert len(answers(over)) == 1


def test_whose_claim_is_earlier_answers_after_one_look(over, waits):
    _, waited = waits
    claim(over, seconds_ago=-1.0)  # it has come to it a second later
    over.optimize(bowl)
    assert len(waited) == 1
    assert len(answers(over)) == 1


def test_one_that_never_answers_is_not_waited_for_long(over, waits):
    _, waited = waits
    claim(over, seconds_ago=1.0)
    over.optimize(bowl)
    assert len(answers(over)) == 1
    assert 4.0 <= sum(waited) <= 5.5


@pytest.mark.parametrize("options", [{"seconds_ago": 6.0}, {"process": "dead"}])
def test_old_and_dead_claims_are_not_waited_for(options, over, waits):
    process = {"process": a_dead_process()} if "process" in options else {}
    claim(over, **options | process)
    over.optimize(bowl)
    assert not waits[1]
    assert len(answers(over)) == 1


def test_an_interrupt_while_waiting_still_answers(over, waits):
    happens, _ = waits

    def interrupt():
        raise KeyboardInterrupt

    claim(over, seconds_ago=1.0)
    happens.append(interrupt)
    over.optimize(bowl)
    assert len(answers(over)) == 1


@pytest.mark.parametrize(("others", "n_answers"), [([], 2), ([(0, None, None)], 1)])
def test_figures_alone_are_left_to_those_that_are_under_way(others, n_answers, monkeypatch):
    study = optuna.create_study(sampler=RaceSampler("epochs", budget=60, seed=0))
    study.optimize(valley)
    assert len(answers(study)) == 1
    study.add_trial(pulls(study)[0])  # one that was under way, and has changed no more than figures
    race = study.sampler._of(study)
    monkeypatch.setattr(race, "chosen_by", lambda number: others)
    study.optimize(valley, n_trials=1)
    assert len(answers(study)) == n_answers
    assert len({trial.user_attrs[CERTIFICATE]["arm"] for trial in answers(study)}) == 1
