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

# Name -> how to make it, given the arguments that all have in common.
BEST_ARM = {
    "IISE": IISESampler,
    "LUCB-A": lambda *args, **options: MFLUCBSampler(*args, explore="A", **options),
    "LUCB-C": MFLUCBSampler,
    "LUCB-top": lambda *args, **options: MFLUCBSampler(*args, explore="top", **options),
    "top-two": MFTopTwoSampler,
    "grad": MFGradSampler,
    "choice": MFSampler,
}
REWARD = {
    "UCB": MFUCBSampler,
    "elimination": MFEliminationSampler,
    "choice-per-cost": lambda *args, **options: MFSampler(*args, aim="reward per cost", **options),
    "choice-per-pull": lambda *args, **options: MFSampler(*args, aim="reward per pull", **options),
}
CLASSES = {
    "IISE": IISESampler,
    "LUCB": MFLUCBSampler,
    "top-two": MFTopTwoSampler,
    "grad": MFGradSampler,
    "UCB": MFUCBSampler,
    "elimination": MFEliminationSampler,
    "choice": MFSampler,
}


def bowl(trial, sign=1.0, scale=0.05):
    """A bowl whose k-th value has the k-th noise, whatever the numbers of the trials."""
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    trials = trial.study.get_trials(deepcopy=False)
    done = sum(t.state.is_finished() and PULL in t.user_attrs for t in trials)
    noise = scale * np.random.default_rng(done).normal()
    return sign * (x**2 + 0.1 / epochs + noise)


def run(sampler, objective=bowl, n_trials=3000, direction="minimize"):
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(objective, n_trials=n_trials)
    return study


def pulls(study):
    return [trial for trial in study.trials if PULL in trial.user_attrs]


def sequence(study):
    return [(tuple(t.user_attrs[PULL].values()), t.params) for t in pulls(study)]
