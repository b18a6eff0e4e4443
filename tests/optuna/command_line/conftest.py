"""A database with a race and a study by another sampler, and a module with objectives."""

import json

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

from mfhpo_optuna import IISESampler
from mfhpo_optuna.command_line import app

OBJECTIVES = """
import sys

import numpy as np
import optuna

rng = np.random.default_rng(0)


def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    return (x - 0.3) ** 2 + 0.01 * rng.normal()


def broken(trial):
    raise ValueError("of my own")


def broken_in_silence(trial):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    raise ValueError("of my own")


def ends_well(trial):
    objective(trial)
    sys.exit(0)


def ends_badly(trial):
    objective(trial)
    sys.exit("no data")


def of_another_study(trial):
    return trial.suggest_float("y", 0, 1)


def of_another_range(trial):
    return trial.suggest_float("x", 10, 11)


def with_no_whole_replicate(trial):
    return trial.suggest_float("x", -1, 1) + trial.suggest_float("split", 0, 1)


number = 3
"""


@pytest.fixture
def mfhpo():
    """Run the command; returns its result, and with --json what it printed."""

    def run(*arguments, code=0):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        if "--json" in arguments:
            return json.loads(result.stdout)
        return result

    return run


@pytest.fixture(scope="session")
def database(tmp_path_factory):
    """Path of an SQLite file with the studies "race" and "plain"."""
    path = tmp_path_factory.mktemp("database") / "studies.db"
    rng = np.random.default_rng(0)

    def raced(trial):
        x, epochs = trial.suggest_float("x", -1, 1), trial.suggest_int("epochs", 1, 9)
        return (x - 0.3) ** 2 + 0.05 * rng.normal() / epochs

    url = f"sqlite:///{path}"
    sampler = IISESampler("epochs", arms=4, epsilon=0.1, seed=0)
    optuna.create_study(storage=url, study_name="race", sampler=sampler).optimize(raced)
    random = optuna.samplers.RandomSampler(seed=0)
    plain = optuna.create_study(storage=url, study_name="plain", sampler=random)
    plain.optimize(lambda trial: (trial.suggest_float("x", -1, 1) - 0.3) ** 2, n_trials=6)
    return path


@pytest.fixture
def objectives(tmp_path, monkeypatch):
    """Name of a module in the working directory."""
    name = f"objectives_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OBJECTIVES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return name
