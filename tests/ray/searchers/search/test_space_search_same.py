"""The same search in Optuna and in Ray Tune: the same pulls and answer."""

import math

import numpy as np
import optuna
import pytest
from ray import tune

from mfhpo import Fidelity
from mfhpo_optuna import SearchSampler
from mfhpo_ray import SpaceSearch
from tests.ray.searchers.searching import in_tune

LEVELS = (1, 3, 9)
SEED = 5
OPTIONS = {"budget": 160, "certify_share": 0.3, "sigma": 0.02, "epsilon": 0.1}
NOISE = np.random.default_rng(0).normal(0.0, 0.02, 1000)
SOLVERS = ["adam", "sgd", "lbfgs"]


def _loss(config, number):
    solver = 0.1 * SOLVERS.index(config["solver"])
    bowl = config["x"] ** 2 + 0.1 * math.log10(config["lr"] / 0.01) ** 2
    depth = 0.02 * abs(config["depth"] - 4)
    return float(bowl + solver + depth + 0.1 / config["epochs"] + NOISE[number])


def _in_tune(folder):
    fidelity = Fidelity("epochs", levels=LEVELS)
    search = SpaceSearch(fidelity, metric="loss", mode="min", seed=SEED, seed_key=None, **OPTIONS)
    space = {
        "x": tune.uniform(-1, 1),
        "lr": tune.loguniform(1e-4, 1.0),
        "solver": tune.choice(SOLVERS),
        "depth": tune.randint(1, 9),
        "epochs": tune.randint(1, 10),
        "constant": 1,
    }

    def result(config, number):
        return {"loss": _loss(config, number)}

    return in_tune(search, space, folder, 1, result), search


def _in_optuna():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    configs = []

    def objective(trial):
        config = {
            "x": trial.suggest_float("x", -1, 1),
            "lr": trial.suggest_float("lr", 1e-4, 1.0, log=True),
            "solver": trial.suggest_categorical("solver", SOLVERS),
            "depth": trial.suggest_int("depth", 1, 8),
            "epochs": trial.suggest_int("epochs", 1, 9),
        }
        configs.append(config)
        return _loss(config, len(configs))

    sampler = SearchSampler(Fidelity("epochs", levels=LEVELS), seed=SEED, **OPTIONS)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective)
    return configs, sampler.recommendation(study)


def test_one_worker_makes_the_same_pulls_in_both(tmp_path):
    """Ray's searches are compared with the engine in test_experiment_contract."""
    by_tune, search = _in_tune(tmp_path)
    in_optuna, from_optuna = _in_optuna()
    assert len(by_tune) > 30
    assert in_optuna == by_tune
    answer = search.recommendation()
    for field in ("arm", "cost", "tried", "certified"):
        assert getattr(answer, field) == getattr(from_optuna, field)
    assert from_optuna.interval == pytest.approx(answer.interval)
    assert answer.config == from_optuna.params
