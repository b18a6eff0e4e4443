"""Several workers that find that a race is over."""

import numpy as np
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from mfhpo_optuna import IISESampler
from tests.optuna.samplers.races import ARMS, CERTIFICATE, answers, bowl, worker


def iise():
    return IISESampler("epochs", ARMS, epsilon=0.2, sigma=0.05, seed=0)


def test_who_comes_later_adds_no_answer():
    """Two workers end a race at once; the second finds the first one's answer."""
    storage = InMemoryStorage()
    first, second = (worker(storage, iise()) for _ in range(2))
    late = second.ask()
    late.suggest_float("x", -1, 1)
    first.optimize(bowl)
    second.tell(late, state=TrialState.FAIL)
    first.optimize(bowl)
    finished = [answer.user_attrs[CERTIFICATE]["finished"] for answer in answers(first)]
    assert sum(finished) == 1


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
