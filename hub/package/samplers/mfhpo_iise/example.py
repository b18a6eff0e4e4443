"""IISESampler on a small problem; prints what it found."""

import numpy as np
import optuna
import optunahub

IISESampler = optunahub.load_module("samplers/mfhpo_iise").IISESampler
rng = np.random.default_rng(0)


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 27)  # the sampler decides this one
    return x**2 + 0.2 / epochs + 0.05 * float(rng.normal())


sampler = IISESampler("epochs", arms=8, epsilon=0.05, seed=0)
study = optuna.create_study(sampler=sampler)
study.optimize(objective)
print(sampler.recommendation(study))
