"""Trials that fail because their storage does count for nothing, and against nothing."""

import contextlib
import json
import multiprocessing
import time
from types import SimpleNamespace

import optuna
import pytest
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mfhpo_optuna import (
    IISESampler,
    MFSampler,
    NashSampler,
    RCUCBSampler,
    SearchSampler,
    certify,
    time_limited,
)
from mfhpo_optuna.study.loop import ends as storage_errors
from mfhpo_optuna.study.loop.ends import is_of_storage
from tests.optuna.games.nash_games import on_a_grid
from tests.optuna.samplers.races import ARMS, PULL, bowl, pulls, split_bowl, worker

FAILED = "mfhpo:storage_failed"
SAMPLERS = {
    "arms": lambda: IISESampler("epochs", ARMS, budget=400, seed=0),
    "replicates": lambda: MFSampler("epochs", ARMS, replicate="split", budget=400, seed=0),
    "search": lambda: SearchSampler("epochs", budget=150, seed=0),
    "limits": lambda: RCUCBSampler(ARMS, [1.0, 4.0], reward_range=(-3.0, 1.0), horizon=40, seed=0),
}


class Unreliable(InMemoryStorage):
    """A storage that cannot write what it is given, while `broken` says so."""

    def __init__(self):
        super().__init__()
        self.broken = lambda of: False
        self.before_failing = lambda: None
        self.attributes_to_fail = 0

    def set_trial_param(self, trial_id, param_name, *value):
        self._check(trial_id)
        super().set_trial_param(trial_id, param_name, *value)

    def set_trial_intermediate_value(self, trial_id, *value):
        self._check(trial_id)
        super().set_trial_intermediate_value(trial_id, *value)

    def set_trial_user_attr(self, trial_id, key, value):
        if key == FAILED and self.attributes_to_fail:
            self.attributes_to_fail -= 1
            raise OSError("database is locked")
        super().set_trial_user_attr(trial_id, key, value)

    def _check(self, trial_id):
        if self.broken(self.get_trial(trial_id)):
            self.before_failing()
            raise OSError("database is locked")


def first_of_the_best():
    """Whether a trial is one of the first four of the best arm."""
    spoilt = set()

    def is_one(trial):
        if trial.user_attrs.get(PULL, {}).get("arm") == 2 and len(spoilt) < 4:
            spoilt.add(trial.number)
        return trial.number in spoilt

    return is_one


def good_when_high(trial):
    return -bowl(trial)


def objective_of(kind):
    return {"replicates": split_bowl, "limits": good_when_high}.get(kind, bowl)


def study_of(kind, storage):
    direction = "maximize" if kind == "limits" else "minimize"
    return worker(storage, SAMPLERS[kind](), direction=direction)


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


def test_the_game_ends_though_the_storage_never_works_again():
    storage = Unreliable()
    sampler = NashSampler({"row": ["x"], "column": ["y"]}, budget=4, seed=0)
    study = optuna.create_study(storage=storage, directions=["minimize"] * 2, sampler=sampler)
    storage.broken = lambda trial: trial.number < 50
    study.optimize(on_a_grid, n_trials=51, catch=(Exception,))
    storage.broken = lambda trial: True
    study.optimize(on_a_grid, catch=(Exception,))
    # What never ran costs nothing, but from the eleventh on, losses of a profile are failures.
    assert len(study.trials) == 50 + 1 + (11 + 1) + 11


def reporting(trial):
    trial.report(bowl(trial), 0)
    return bowl(trial)


def test_a_storage_that_blocks_until_the_limit_censors_nothing(shared_clock):
    storage = Unreliable()
    study = study_of("arms", storage)
    storage.broken = lambda trial: len(trial.params) == 2
    storage.before_failing = lambda: shared_clock.sleep(90.0)
    with time_limited(reporting, limit=60.0) as limited:
        study.optimize(limited, n_trials=1, catch=(OSError,))
    assert study.trials[0].state == TrialState.FAIL
    assert study.trials[0].user_attrs.keys() == {PULL, "mfhpo:end", "mfhpo:seconds", FAILED}


def caught(trial):
    with contextlib.suppress(OSError):
        reporting(trial)
    raise ArithmeticError


def its_own_cause(trial):
    bowl(trial)
    try:
        raise ArithmeticError
    except ArithmeticError as error:
        raise error from error


def passed_on(trial):
    try:
        reporting(trial)
    except OSError as error:
        raise ArithmeticError from error


@pytest.mark.parametrize(
    ("objective", "counts"), [(caught, True), (its_own_cause, True), (passed_on, False)]
)
@pytest.mark.parametrize("limited", [False, True])
def test_what_counts_is_the_error_by_which_the_objective_ends(objective, counts, limited):
    storage = Unreliable()
    study = study_of("arms", storage)
    storage.broken = lambda trial: len(trial.params) == 2
    if limited:
        objective = time_limited(objective, limit=30.0)
    study.optimize(objective, n_trials=2, catch=(ArithmeticError,))
    assert [FAILED not in trial.user_attrs for trial in study.trials] == [counts] * 2


def test_a_storage_that_does_not_come_back_is_not_asked_for_ever(monkeypatch):
    monkeypatch.setattr(storage_errors, "_PATIENCE", 0.3)
    storage = Unreliable()
    study = study_of("arms", storage)
    storage.broken, storage.attributes_to_fail = lambda trial: True, 1000
    with pytest.raises(OSError, match="database is locked"):
        study.optimize(bowl, catch=(Exception,))


@pytest.mark.parametrize("catch", [(), (OSError,)])
@pytest.mark.parametrize("while_it", ["waits", "writes"])
def test_who_does_not_wait_for_the_storage_interrupts_the_study(while_it, catch, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    storage = Unreliable()
    study = study_of("arms", storage)
    storage.broken, storage.attributes_to_fail = lambda trial: trial.number == 2, 1000
    if while_it == "waits":
        clock = SimpleNamespace(monotonic=time.monotonic, sleep=interrupted)
        monkeypatch.setattr(storage_errors, "time", clock)
    else:
        monkeypatch.setattr(storage_errors, "write_attribute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(bowl, catch=catch)
    [last] = [trial for trial in pulls(study) if trial.number >= 2]
    assert (last.number, last.state) == (2, TrialState.FAIL)


@pytest.mark.parametrize(
    ("known", "before", "restarts"),  # a search has a model at 20
    [(0, 0, True), (1, 3, False), (2, 3, True), (0, 20, False), (1, 20, True)],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: SearchSampler("epochs", budget=150, seed=0),
        lambda: IISESampler("epochs", 40, budget=400, seed=0),
    ],
    ids=["search", "arms"],
)
def test_enqueued_configurations_are_evaluated_again(make, restarts, before, known):
    storage = Unreliable()
    study = worker(storage, make())
    study.optimize(bowl, n_trials=before)
    first = len(study.trials)
    for x in (0.123, 0.456):
        study.enqueue_trial({"x": x})
    storage.broken = lambda trial: trial.number == first and len(trial.params) == known
    with pytest.raises(OSError, match="locked"):
        study.optimize(reporting)
    assert FAILED in study.trials[first].user_attrs
    if restarts:
        study = worker(storage, make())
    study.optimize(reporting)
    for x in (0.123, 0.456):
        of_x = [t for t in pulls(study) if t.params.get("x") == x]
        assert TrialState.COMPLETE in {trial.state for trial in of_x}


def test_a_configuration_whose_data_no_storage_takes_leaves_the_race_in_the_end():
    storage = Unreliable()
    study = study_of("arms", storage)
    storage.broken = lambda trial: trial.params.get("x") == 0.0
    with pytest.warns(UserWarning, match="leaves the race"):
        study.optimize(reporting, catch=(OSError,))
    spoilt = [trial for trial in study.trials if FAILED in trial.user_attrs]
    assert len(spoilt) == 13  # ten that count for nothing, and as many as any arm may fail
    assert study.sampler.recommendation(study).params != {"x": 0.0}


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
        except BaseException as error:
            yield error


def test_errors_are_told_apart_by_where_they_come_from(tmp_path, monkeypatch):
    journal = JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    study = optuna.create_study(storage=journal)
    trial = study.ask()
    trial.suggest_categorical("kind", ["a", "b"])
    other = study.ask()

    def is_full(*_):
        raise OSError(28, "No space left on device")

    def is_cut_off(*_):
        json.loads('{"op')

    def is_interrupted(*_):
        raise KeyboardInterrupt

    def while_it(does):
        monkeypatch.setattr("optuna.storages.journal._file.os.fsync", does)
        (error,) = errors_of(lambda: other.report(1.0, 0))
        return error

    (of_user,) = errors_of(lambda: other.suggest_categorical("kind", ["c"]))
    (no_json,) = errors_of(lambda: other.set_user_attr("key", multiprocessing))
    (no_study,) = errors_of(lambda: optuna.load_study(storage=journal, study_name="none"))
    (own,) = errors_of(is_full)
    full, cut_off, interrupted = map(while_it, (is_full, is_cut_off, is_interrupted))
    assert isinstance(full, OSError)
    assert isinstance(cut_off, json.JSONDecodeError)
    for error in (full, cut_off):
        assert is_of_storage(error, journal)
        assert not is_of_storage(error, InMemoryStorage())
    for error in (of_user, no_json, no_study, own, interrupted, None):
        assert not is_of_storage(error, journal)


def test_what_was_spoilt_is_evaluated_again_as_if_it_had_never_been():
    spoilt, plain = Unreliable(), InMemoryStorage()
    spoilt.broken = lambda trial: trial.number == 2
    for storage, n_trials in ((spoilt, 6), (plain, 5)):
        study_of("arms", storage).optimize(bowl, n_trials=n_trials, catch=(Exception,))
    chosen = [trial.params for trial in pulls(study_of("arms", spoilt)) if trial.number != 2]
    assert chosen == [trial.params for trial in pulls(study_of("arms", plain))]
