"""Studies to draw, and what the tests read from the figures of them."""

import warnings

import numpy as np
import optuna
from optuna.samplers import RandomSampler

from mfhpo_optuna import IISESampler, SearchSampler
from tests.optuna.samplers.races import REWARD

ARMS = [{"x": x} for x in (0.0, 0.1, 0.5, 1.0)]


def quadratic(trial):
    x = trial.suggest_float("x", -1.0, 1.0)
    epochs = trial.suggest_int("epochs", 1, 9)
    return float(x**2 + 0.05 / epochs + np.random.default_rng(trial.number).normal(0.0, 0.1))


def race(objective=quadratic, direction="minimize", n_trials=None, make=IISESampler, **options):
    if make not in REWARD.values():
        options = {"epsilon": 0.05} | options
    sampler = make(seed=0, **({"arms": ARMS, "fidelity": "epochs"} | options))
    return _played(sampler, objective, direction, n_trials)


def valley(trial):
    x = trial.suggest_float("x", -1.0, 1.0)
    epochs = trial.suggest_int("epochs", 1, 9)
    noise = np.random.default_rng(trial.number).normal(0.0, 0.05)
    return float((x - 0.3) ** 2 + 0.2 / epochs + noise)


def search(objective=valley, direction="minimize", n_trials=None, **options):
    """A search on a budget; drawn at random, configurations take no time."""
    options = {"budget": 300, "certify_share": 0.4, "sigma": 0.05} | options
    sampler = SearchSampler("epochs", proposer=RandomSampler(seed=0), seed=0, **options)
    return _played(sampler, objective, direction, n_trials)


def _played(sampler, objective, direction, n_trials):
    study = optuna.create_study(direction=direction, sampler=sampler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(objective, n_trials=n_trials, catch=(ArithmeticError,))
    return study


def trace(figure, name):
    """The trace that the legend shows under a name."""
    found = [t for t in figure.data if t.name == name and t.showlegend is not False]
    assert len(found) == 1, f"{name}: {[trace.name for trace in figure.data]}"
    return found[0]


def traces(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def lines(figure):
    """The lines of a figure's title."""
    return figure.layout.title.text.split("<br>")


def row_labels(figure, axis="y"):
    """The texts above the rows of a panel, the first one on top."""
    return [text.text for text in figure.layout.annotations if text.yref == axis]
