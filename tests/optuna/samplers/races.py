"""The samplers, and races for them, that several test files share."""

from __future__ import annotations

import numpy as np
import optuna

from mfhpo_optuna import (
    IISESampler,
    MFEliminationSampler,
    MFGradSampler,
    MFLUCBSampler,
    MFSampler,
    MFTopTwoSampler,
    MFUCBSampler,
)

ARMS = [{"x": x} for x in (-0.9, -0.5, 0.0, 0.6)]
PULL = "mfhpo:pull"
CERTIFICATE = "mfhpo:certificate"

BEST_ARM = {
    "IISE": IISESampler,
    "LUCB-C": MFLUCBSampler,
    "top-two": MFTopTwoSampler,
    "grad": MFGradSampler,
}
REWARD = {"UCB": MFUCBSampler, "elimination": MFEliminationSampler}
CLASSES = BEST_ARM | REWARD | {"choice": MFSampler}


def noise(trial, scale=0.05):
    return scale * np.random.default_rng(trial.number).normal()


def bowl(trial, sign=1.0):
    """A bowl whose k-th value has the k-th noise, whatever the numbers of the trials."""
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    trials = trial.study.get_trials(deepcopy=False)
    done = sum(t.state.is_finished() and PULL in t.user_attrs for t in trials)
    return sign * (x**2 + 0.1 / epochs + 0.05 * np.random.default_rng(done).normal())


def run(sampler, objective=bowl, n_trials=3000, direction="minimize", catch=(), **options):
    study = optuna.create_study(sampler=sampler, direction=direction, **options)
    study.optimize(objective, n_trials=n_trials, catch=catch)
    return study


def pulls(study):
    return [trial for trial in study.trials if PULL in trial.user_attrs]


def sequence(study):
    return [(tuple(t.user_attrs[PULL].values()), t.params) for t in pulls(study)]
