"""Races of studies that several test files share."""

from __future__ import annotations

import os
import signal

import numpy as np
import optuna
import sqlalchemy
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from mfhpo_optuna import IISESampler

ARMS = [{"x": x} for x in (-0.9, -0.5, 0.0, 0.6)]
PULL = "mfhpo:pull"
CERTIFICATE = "mfhpo:certificate"


def noise(trial, scale=0.05):
    return scale * np.random.default_rng(trial.number).normal()


def bowl(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    return x**2 + 0.1 / epochs + noise(trial)


def run(sampler, objective=bowl, n_trials=3000, **options):
    study = optuna.create_study(sampler=sampler, **options)
    study.optimize(objective, n_trials=n_trials)
    assert len(study.trials) < n_trials, "the race did not end by itself"
    return study


def pulls(study):
    return [trial for trial in study.trials if PULL in trial.user_attrs]


def arms_of(study, fidelity="epochs"):
    """Parameters of every arm; a trial that evaluated something else fails the test."""
    arms = {}
    for trial in pulls(study):
        params = {name: value for name, value in trial.params.items() if name != fidelity}
        assert arms.setdefault(trial.user_attrs[PULL]["arm"], params) == params
    return arms


def counted_for_their_arm(study):
    """The trials that evaluated what the first trial of their arm did."""
    arms = {}
    for trial in sorted(pulls(study), key=lambda trial: trial.number):
        arms.setdefault(trial.user_attrs[PULL]["arm"], trial.params["x"])
    return [t for t in pulls(study) if arms[t.user_attrs[PULL]["arm"]] == t.params["x"]]


def two_parameters(trial, kill_at=-1, stage="after"):
    """The k-th value of a study has the k-th noise, whatever the numbers of the trials."""
    x = trial.suggest_float("x", -1, 1)
    if trial.number == kill_at and stage == "between":
        os.kill(os.getpid(), signal.SIGKILL)
    y = trial.suggest_categorical("y", ["a", "b"])
    epochs = trial.suggest_int("epochs", 1, 9)
    if trial.number == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    done = sum(t.state.is_finished() for t in trial.study.get_trials(deepcopy=False))
    noise = 0.05 * np.random.default_rng(done).normal()
    return x**2 + 0.5 * (y == "b") + 0.1 / epochs + noise


def leave_writing_to_the_system(connection, _):  # a killed process loses nothing by it
    connection.execute("PRAGMA synchronous=OFF")


def race(path, kill_at=-1, stage="after", lease=1e-6, n_trials=None):
    """Begin or resume a race in a file; it may kill its own process in a trial."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f"sqlite:///{path}"
    if path.endswith(".log"):
        storage = JournalStorage(JournalFileBackend(path))
    elif not sqlalchemy.event.contains(
        sqlalchemy.engine.Engine, "connect", leave_writing_to_the_system
    ):
        sqlalchemy.event.listen(sqlalchemy.engine.Engine, "connect", leave_writing_to_the_system)
    sampler = IISESampler(
        "epochs", 4, epsilon=0.3, measure=3, estimated_bias="eliminate", seed=0, lease=lease
    )
    study = optuna.create_study(
        storage=storage, study_name="race", load_if_exists=True, sampler=sampler
    )
    study.optimize(lambda trial: two_parameters(trial, kill_at, stage), n_trials=n_trials)
    return study
