"""Trials that fail because their storage does count for nothing, and against nothing."""

import multiprocessing

import optuna
import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mfhpo_optuna import (
    IISESampler,
    MFSampler,
    NashSampler,
    RaceSampler,
    RCUCBSampler,
    certify,
    time_limited,
)
from mfhpo_optuna.study.loop.storage_errors import is_of_storage
from tests.optuna.games.nash_games import tracking
from tests.optuna.samplers.races import ARMS, PULL, bowl, pulls

FAILED = "mfhpo:storage_failed"
SAMPLERS = {
    "arms": lambda: IISESampler("epochs", ARMS, budget=400, seed=0),
    "replicates": lambda: MFSampler("epochs", ARMS, replicate="split", budget=400, seed=0),
    "search": lambda: RaceSampler("epochs", budget=150, seed=0),
    "limits": lambda: RCUCBSampler(ARMS, [1.0, 4.0], reward_range=(-3.0, 1.0), horizon=40, seed=0),
}


class Unreliable(InMemoryStorage):
    """A storage that cannot write what it is given, while `broken` says so."""

    def __init__(self):
        super().__init__()
        self.broken = lambda of: False

    def set_trial_param(self, trial_id, param_name, *value):
        self._check(trial_id)
        super().set_trial_param(trial_id, param_name, *value)

    def set_trial_intermediate_value(self, trial_id, *value):
        self._check(trial_id)
        super().set_trial_intermediate_value(trial_id, *value)

    def _check(self, trial_id):
        if self.broken(self.get_trial(trial_id)):
            raise StorageInternalError("database is locked")


def first_of_the_best():
    """Whether a trial is one of the first four of the best arm."""
    spoilt = set()

    def is_one(trial):
        if trial.user_attrs.get(PULL, {}).get("arm") == 2 and len(spoilt) < 4:
            spoilt.add(trial.number)
        return trial.number in spoilt

    return is_one


def split_bowl(trial):
    trial.suggest_int("split", 0, 2**31 - 1)
    return bowl(trial)


def good_when_high(trial):
    return -bowl(trial)


def objective_of(kind):
    return {"replicates": split_bowl, "limits": good_when_high}.get(kind, bowl)


def study_of(kind, storage):
    direction = "maximize" if kind == "limits" else "minimize"
    return optuna.create_study(
        study_name="shared",
        storage=storage,
        load_if_exists=True,
        sampler=SAMPLERS[kind](),
        direction=direction,
    )


@pytest.mark.filterwarnings("ignore:.*nobody enforces")
@pytest.mark.parametrize("kind", SAMPLERS)
def test_what_the_storage_spoils_counts_against_no_configuration(kind):
    storage = Unreliable()
    study = study_of(kind, storage)
    storage.broken = first_of_the_best()
    study.optimize(objective_of(kind), n_trials=15, catch=(Exception,))
    spoilt = [trial for trial in study.trials if FAILED in trial.user_attrs]
    assert len(spoilt) >= 3
    assert all(trial.state == TrialState.FAIL for trial in spoilt)
    storage.broken = lambda of: False
    study.optimize(objective_of(kind))
    answer = study.sampler.recommendation(study)
    assert abs(answer.params["x"]) < 0.4
    assert str(study_of(kind, storage).sampler.recommendation(study)) == str(answer)
    assert "failed" not in str(answer)


@pytest.mark.filterwarnings("ignore:.*leaves the race")
def test_the_same_error_of_the_objective_itself_does():
    is_spoilt = first_of_the_best()

    def objective(trial):
        value = bowl(trial)
        if is_spoilt(trial):
            raise ConnectionError("database is locked")
        return value

    study = study_of("arms", Unreliable())
    study.optimize(objective, catch=(Exception,))
    assert study.sampler.recommendation(study).params != ARMS[2]
    assert not any(FAILED in trial.user_attrs for trial in study.trials)


def test_nothing_is_told_to_a_game():
    storage = Unreliable()
    sampler = NashSampler({"row": ["x"], "column": ["y"]}, budget=12, seed=0)
    study = optuna.create_study(storage=storage, directions=["minimize"] * 2, sampler=sampler)
    storage.broken = lambda trial: trial.number in (2, 5)
    study.optimize(tracking, catch=(Exception,))
    assert len(study.trials) == 14
    assert sampler.equilibrium(study).finished


def test_below_time_limits_the_objective_may_have_reported():
    def objective(trial):
        trial.report(bowl(trial), 0)
        return bowl(trial)

    storage = Unreliable()
    study = study_of("arms", storage)
    storage.broken = first_of_the_best()
    with time_limited(objective, limit=30.0) as limited:
        study.optimize(limited, n_trials=12, catch=(Exception,))
    spoilt = [trial for trial in study.trials if trial.state == TrialState.FAIL]
    assert len(spoilt) >= 3
    assert all(trial.user_attrs[FAILED] for trial in spoilt)


def test_a_storage_that_stays_broken_ends_the_study_and_not_the_race():
    storage = Unreliable()
    study = study_of("arms", storage)
    storage.broken = lambda trial: True
    with pytest.raises(RuntimeError, match="'shared' has failed in 10 trials one after the other"):
        study.optimize(bowl, catch=(Exception,))
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] * 10
    storage.broken = lambda trial: False
    study.optimize(bowl)
    assert study.best_params["x"] == 0.0


def test_the_replicates_of_a_certificate_do_not_count_either():
    storage = Unreliable()
    study = optuna.create_study(
        storage=storage, study_name="done", sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(bowl, n_trials=10)
    before = len(storage.get_all_trials(study._study_id))
    ids = iter(range(1000))
    storage.broken = lambda trial: trial._trial_id > before and next(ids) % 3 == 0
    answer = certify(study, bowl, top=2, budget=60, epsilon=0.5, catch=(Exception,))
    record = optuna.load_study(study_name=answer.study_name, storage=storage)
    assert any(FAILED in trial.user_attrs for trial in record.trials)
    assert answer.certified
    assert [candidate.failures for candidate in answer.candidates] == [0, 0]


def errors_of(*calls):
    for call in calls:
        try:
            call()
        except Exception as error:
            yield error


def test_errors_are_told_apart_by_where_they_come_from(tmp_path, monkeypatch):
    journal = JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    study = optuna.create_study(storage=journal)
    trial = study.ask()
    trial.suggest_categorical("kind", ["a", "b"])
    other = study.ask()

    def is_full(*_):
        raise OSError(28, "No space left on device")

    (of_user,) = errors_of(lambda: other.suggest_categorical("kind", ["c"]))
    (no_json,) = errors_of(lambda: other.set_user_attr("key", multiprocessing))
    monkeypatch.setattr("optuna.storages.journal._file.os.fsync", is_full)
    (full,) = errors_of(lambda: other.report(1.0, 0))
    (own,) = errors_of(is_full)
    assert isinstance(full, OSError)
    found = [is_of_storage(error) for error in (of_user, no_json, full, own, None)]
    assert found == [False, False, True, False, False]


def test_what_was_spoilt_is_evaluated_again_as_if_it_had_never_been():
    spoilt, plain = Unreliable(), InMemoryStorage()
    spoilt.broken = lambda trial: trial.number == 2
    for storage, n_trials in ((spoilt, 6), (plain, 5)):
        study_of("arms", storage).optimize(bowl, n_trials=n_trials, catch=(Exception,))
    chosen = [trial.params for trial in pulls(study_of("arms", spoilt)) if trial.number != 2]
    assert chosen == [trial.params for trial in pulls(study_of("arms", plain))]
