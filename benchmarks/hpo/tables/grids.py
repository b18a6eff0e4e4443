"""What is recorded: the configurations of each table, and how they are trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.hpo.problem import FidelitySpace
from benchmarks.hpo.problems import NAS
from benchmarks.hpo.problems.networks import trained_networks
from benchmarks.hpo.problems.scikit_learn import MODELS, trainings
from benchmarks.hpo.space import Condition, Configuration
from mfhpo.knowledge.arrays import FloatArray


def _powers(base: float, low: float, high: float, count: int) -> tuple[float, ...]:
    return tuple(float(base**exponent) for exponent in np.linspace(low, high, count))


GRIDS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "logistic_regression": {"alpha": _powers(10, -5, 0, 11), "eta0": _powers(10, -5, 0, 11)},
    "svm": {"C": _powers(2, -10, 10, 11), "gamma": _powers(2, -10, 10, 11)},
    "random_forest": {
        "max_depth": (1, 3, 7, 18, 50),
        "min_samples_split": (2, 16, 128),
        "max_features": (0.0, 0.33, 0.67, 1.0),
        "min_samples_leaf": (1, 7, 20),
    },
    "gradient_boosting": {
        "learning_rate": _powers(2, -10, 0, 6),
        "max_depth": (1, 3, 7, 18),
        "colsample_bytree": (0.1, 0.4, 1.0),
        "reg_lambda": _powers(2, -10, 10, 5),
    },
    "mlp": {
        "depth": (1, 2, 3),
        "width": (16, 64, 256),
        "batch_size": (16, 64, 256),
        "alpha": _powers(10, -8, 0, 3),
        "learning_rate_init": _powers(10, -5, 0, 6),
    },
}
"""By model and parameter, the values that are tried; all of them are in its space."""

_WIDTHS = (8, 24, 64)
ARCHITECTURES: Mapping[str, tuple[Any, ...]] = {
    "depth": (1, 2, 3, 4),
    "width_1": _WIDTHS,
    "width_2": _WIDTHS,
    "width_3": _WIDTHS,
    "width_4": _WIDTHS,
    "activation": ("relu", "tanh", "sigmoid"),
    "normalisation": ("none", "batch", "layer"),
    "skip": ("no", "yes"),
}
"""Those of small networks: 2,133, for what is in layers that are not there does not count."""

_IN_LAYERS = {
    "width_2": Condition("depth", (2, 3, 4)),
    "width_3": Condition("depth", (3, 4)),
    "width_4": Condition("depth", (4,)),
    "skip": Condition("depth", (2, 3, 4)),
}
_EPOCHS = FidelitySpace("epochs", (3, 9, 27, 81), continues=True)


@dataclass(frozen=True)
class Recording:
    """A table that is to be made.

    Parameters
    ----------
    grid, conditions, fidelity
        As in `Table`.
    train
        Called with a configuration, the levels and the seeds; returns accuracy in percent,
        log-loss in nats and CPU seconds, shape (3, levels, seeds).
    seeds
        How many, if nobody says otherwise.
    """

    grid: Mapping[str, tuple[Any, ...]]
    fidelity: FidelitySpace
    train: Callable[[Configuration, Sequence[float], Sequence[int]], FloatArray]
    seeds: int
    conditions: Mapping[str, Condition] = field(default_factory=dict)


def recording_of(name: str) -> Recording:
    """How the table of a problem is recorded."""
    if name == NAS:
        return Recording(ARCHITECTURES, _EPOCHS, trained_networks, 5, _IN_LAYERS)
    model, _, data_set = name.partition(" ")
    train = partial(_trained_with_seeds, model, data_set)
    return Recording(GRIDS[model], MODELS[model].fidelity, train, 10)


def _trained_with_seeds(
    model: str,
    data_set: str,
    configuration: Configuration,
    levels: Sequence[float],
    seeds: Sequence[int],
) -> FloatArray:
    found = [trainings(model, data_set, configuration, levels, seed) for seed in seeds]
    return np.moveaxis(np.array(found), 0, -1).swapaxes(0, 1)
