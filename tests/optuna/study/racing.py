"""Races of studies that several test files share."""

from __future__ import annotations

import numpy as np
import optuna

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
