"""Trainings that portfolios are made from: of forests, elastic nets and LightGBM.

Data and splits are those of `benchmarks.hpo.problems.scikit_learn`; parameters have the names and
the values that scikit-learn gives them.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.problem import FidelitySpace
from benchmarks.hpo.problems.scikit_learn import split
from benchmarks.hpo.space import Configuration
from benchmarks.hpo.tables.grids import Recording
from mfhpo.knowledge.arrays import FloatArray

FOLDER = Path(__file__).with_name("tables")
_ONCE = FidelitySpace("all of the data", (1.0,), continues=False)
_SEEDS = {"elastic_net": 5, "random_forest": 3}
_ROUNDS, _PATIENCE = 300, 20  # of boosting; so many without a gain end it
_OF_LIGHTGBM = {"deterministic": True, "force_row_wise": True, "num_threads": 1, "verbose": -1}
_STOPPED_BY = 0.2  # share of the training data that early stopping looks at

_GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "random_forest": {
        "max_features": (0.05, 0.1, 0.2, 0.35, 0.6, 1.0),
        "min_samples_leaf": (1, 3, 8, 20),
        "max_samples": (0.3, 0.6, 1.0),
    },
    "elastic_net": {
        "C": tuple(float(f"{10**power:.3g}") for power in np.linspace(-3, 3, 13)),
        "l1_ratio": (0.0, 0.25, 0.5, 0.75, 1.0),
    },
}


def _forest(given: Configuration, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, random_state=seed, **given)


def _elastic_net(given: Configuration, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(solver="saga", max_iter=100, random_state=seed, **given)


MODELS: dict[str, Callable[[Configuration, int], Any]] = {
    "random_forest": _forest,
    "elastic_net": _elastic_net,
}


def recording_of(name: str) -> Recording:
    """Return how a table is recorded, such as that of "elastic_net wine"."""
    model, _, data_set = name.partition(" ")
    return Recording(_GRIDS[model], _ONCE, partial(_trainings, model, data_set), _SEEDS[model])


def _trainings(
    model: str,
    data_set: str,
    configuration: Configuration,
    levels: Sequence[float],
    seeds: Sequence[int],
) -> FloatArray:
    """Accuracy in percent, log-loss and CPU seconds, shape (3, levels, seeds)."""
    from sklearn.metrics import log_loss
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = np.empty((3, 1, len(seeds)))
    for place, seed in enumerate(seeds):
        train, held_out, target, held_out_target = split(data_set, seed)
        learner = make_pipeline(StandardScaler(), MODELS[model](configuration, seed))
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a hundred iterations need not converge
            learner.fit(train, target)
        seconds = time.process_time() - began
        accuracy = 100.0 * np.mean(learner.predict(held_out) == held_out_target)
        loss = log_loss(held_out_target, learner.predict_proba(held_out))
        found[:, 0, place] = accuracy, loss, seconds
    return found


def accuracy_of_lightgbm(configuration: Configuration, data_set: str, seeds: int) -> float:
    """The mean accuracy over splits, in percent; early stopping chooses the rounds."""
    import lightgbm
    from sklearn.model_selection import train_test_split

    found = []
    given = {name: value for name, value in configuration.items() if name != "n_estimators"}
    for seed in range(seeds):
        train, held_out, target, held_out_target = split(data_set, seed)
        fit, stop, fit_target, stop_target = train_test_split(
            train, target, test_size=_STOPPED_BY, stratify=target, random_state=seed
        )
        n = len(np.unique(target))
        settings = {"objective": "multiclass", "num_class": n} if n > 2 else {"objective": "binary"}
        data = lightgbm.Dataset(fit, fit_target)
        model = lightgbm.train(
            {**settings, **given, **_OF_LIGHTGBM, "seed": seed},
            data,
            num_boost_round=_ROUNDS,
            valid_sets=[lightgbm.Dataset(stop, stop_target, reference=data)],
            callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
        )
        scores = np.asarray(model.predict(held_out))
        labels = scores.argmax(axis=1) if n > 2 else scores > 0.5
        found.append(100.0 * np.mean(labels == held_out_target))
    return float(np.mean(found))
