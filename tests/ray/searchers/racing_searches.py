"""Searches of a small space that several tests share."""

import numpy as np
from ray import tune

from mfhpo_ray import SpaceSearch
from tests.ray.searchers.searching import EPOCHS

SPACE = {
    "x": tune.uniform(-1, 1),
    "model": tune.choice([{"kind": "flat"}, {"kind": "deep", "depth": tune.randint(1, 6)}]),
    "epochs": tune.randint(1, 10),
    "data": "digits",
}


def true_loss(config):
    model = config["model"]
    return float((config["x"] - 0.3) ** 2 + 0.1 * abs(model.get("depth", 6) - 3))


def loss(config, scale=0.02):
    noise = scale * np.random.default_rng(config["seed"]).normal()
    return float(true_loss(config) + 0.1 / config["epochs"] + noise)


def make(**options):
    arguments = {"fidelity": EPOCHS, "metric": "loss", "mode": "min", "space": SPACE, "seed": 0}
    return SpaceSearch(**{**arguments, "budget": 200, "epsilon": 0.1, **options})
