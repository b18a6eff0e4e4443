"""The same search in Optuna, in Ray Tune and by the bare policy: the same pulls and answer."""

import math
import zlib
from dataclasses import replace

import numpy as np
import optuna
import pytest
from ray import tune

from mfhpo import Fidelity, Observation
from mfhpo.search import BudgetedSearch, ModelSearch, Numeric, OneOf, SearchSpace
from mfhpo_optuna import SearchSampler
from mfhpo_ray import SpaceSearch
from tests.ray.searchers.searching import in_tune

LEVELS = (1, 3, 9)
SEED = 5
OPTIONS = {"budget": 160, "certify_share": 0.3, "sigma": 0.02, "epsilon": 0.1}
NOISE = np.random.default_rng(0).normal(0.0, 0.02, 1000)
SOLVERS = ["adam", "sgd", "lbfgs"]
DEPTHS = Numeric(tuple((depth - 0.5) / 8.0 for depth in range(1, 9)))
KINDS = {"x": Numeric(), "lr": Numeric(), "solver": OneOf(3), "depth": DEPTHS}
LAST = {"x": 1 - 1e-12, "lr": 1 - 1e-12, "solver": 3 - 1e-12, "depth": 1 - 1e-12}


def _loss(config, number):
    solver = 0.1 * SOLVERS.index(config["solver"])
    bowl = config["x"] ** 2 + 0.1 * math.log10(config["lr"] / 0.01) ** 2
    depth = 0.02 * abs(config["depth"] - 4)
    return float(bowl + solver + depth + 0.1 / config["epochs"] + NOISE[number])


def _bare():
    search = ModelSearch(tuple(map(float, LEVELS)), seed=SEED)
    search.space = SearchSpace(KINDS)
    race = BudgetedSearch(search, sign=-1.0, **OPTIONS)
    arms = {}
    configs = []
    while pulls := race.ask():
        [pull] = pulls
        if pull.arm not in arms:
            place = race.point_of(pull.arm) or {
                name: np.random.default_rng([SEED, pull.arm, zlib.crc32(name.encode())]).random()
                * (3 if name == "solver" else 1)
                for name in KINDS
            }
            # The end of a range belongs to its last value.
            place = {name: min(value, LAST[name]) for name, value in place.items()}
            lr = math.exp(math.log(1e-4) + place["lr"] * (math.log(1.0) - math.log(1e-4)))
            solver, depth = int(place["solver"]), 1 + int(place["depth"] * 8)
            x = -1.0 + place["x"] * 2.0
            arms[pull.arm] = {"x": x, "lr": lr, "solver": SOLVERS[solver], "depth": depth}
            point = {"x": (x + 1.0) / 2.0, "lr": math.log(lr / 1e-4) / math.log(1.0 / 1e-4)}
            point |= {"solver": float(solver), "depth": (depth - 0.5) / 8.0}
            search.describe(pull.arm, point)
        configs.append({**arms[pull.arm], "epochs": LEVELS[pull.fidelity]})
        if pull.fidelity == len(LEVELS) - 1:
            # The model may propose what was there already.
            same = [arm for arm in search.finished_arms() if arms[arm] == arms[pull.arm]]
            if same and same[0] != pull.arm:
                race.withdraw(pull.arm)
                pull = replace(pull, arm=same[0])
        race.tell(pull, Observation(-_loss(configs[-1], len(configs))))
    return configs, race


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


def test_one_worker_makes_the_same_pulls_everywhere(tmp_path):
    bare, race = _bare()
    by_tune, search = _in_tune(tmp_path)
    in_optuna, from_optuna = _in_optuna()
    assert race.finished
    assert len(bare) > 30
    assert by_tune == bare
    assert in_optuna == bare
    answer, expected = search.recommendation(), race.recommend()
    assert answer.trials == len(bare)
    for field in ("certified", "arm", "cost"):
        assert getattr(answer, field) == getattr(expected, field)
    assert answer.mean == pytest.approx(-expected.mean)
    for field in ("arm", "cost", "tried"):
        assert getattr(answer, field) == getattr(from_optuna, field)
    assert from_optuna.interval == pytest.approx(answer.interval)
    assert answer.config == from_optuna.params
