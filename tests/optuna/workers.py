"""Studies in files, and workers in processes of their own that run and resume them, or are killed.

The k-th value of a study has the k-th noise, whatever the numbers of the trials.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import optuna
import sqlalchemy
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from mfhpo_optuna import IISESampler, SearchSampler, certify
from tests.optuna.samplers.races import PULL, ended


def start(call):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", f"from {__name__} import *\n{call}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), *sys.path]))},
        stderr=subprocess.PIPE,
        text=True,
    )


def wait(*workers):
    for worker in workers:
        _, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0, errors


def kill(call):
    worker = start(call)
    _, errors = worker.communicate(timeout=300)
    assert worker.returncode == -signal.SIGKILL, errors


@sqlalchemy.event.listens_for(sqlalchemy.engine.Engine, "connect")
def leave_writing_to_the_system(connection, _):
    """Have SQLite wait for no disk: a killed process loses nothing by it."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous=OFF")


def storage_at(path):
    if path.endswith(".log"):
        return JournalStorage(JournalFileBackend(path))
    return f"sqlite:///{path}"


def study_at(path, sampler, **options):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(
        storage=storage_at(path),
        study_name="search",
        load_if_exists=True,
        sampler=sampler,
        **options,
    )


def two_parameters(trial, kill_at=-1, stage="after", pause=0.0):
    x = trial.suggest_float("x", -1, 1)
    begun = sum(PULL in t.user_attrs for t in trial.study.get_trials(deepcopy=False))
    if begun == kill_at + 1 and stage == "between":
        os.kill(os.getpid(), signal.SIGKILL)
    y = trial.suggest_categorical("y", ["a", "b"])
    epochs = trial.suggest_int("epochs", 1, 9)
    if begun == kill_at + 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(pause)
    done = ended(trial)
    noise = 0.05 * np.random.default_rng(done).normal()
    return (x - 0.3) ** 2 + 0.5 * (y == "b") + 0.2 / epochs + noise


def race(path, lease=1e-6, n_trials=None, **options):
    sampler = IISESampler(
        "epochs", 4, epsilon=0.3, measure=3, estimated_bias="eliminate", seed=0, lease=lease
    )
    study = study_at(path, sampler)
    study.optimize(lambda trial: two_parameters(trial, **options), n_trials=n_trials)
    return study


def search(path, lease=1e-6, n_trials=None, budget=200, **options):
    sampler = SearchSampler(
        "epochs", budget=budget, certify_share=0.4, sigma=0.05, seed=0, lease=lease
    )
    study = study_at(path, sampler)
    study.optimize(lambda trial: two_parameters(trial, **options), n_trials=n_trials)
    return study


def certified_in_blocks(path, most=2**31 - 1, kill_at=-1, timeout=None, **options):
    """The study and the certificate by shared splits; what a split does is the larger part."""

    def objective(trial):
        k, split = trial.suggest_int("k", 0, 3), trial.suggest_int("split", 0, most)
        if trial.number == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.002 * (trial.number % 4))
        own = 0.1 * np.random.default_rng([split, k]).normal()
        return 0.2 * k + np.random.default_rng(split).normal() + own

    study = study_at(path, optuna.samplers.RandomSampler(seed=0), direction="maximize")
    if not study.trials:
        for k in range(4):
            study.enqueue_trial({"k": k, "split": 0})
        study.optimize(objective, n_trials=4)
    options = {"epsilon": 0.05, "replicate": "split", **options}
    return study, certify(study, objective, top=4, timeout=timeout, **options)
