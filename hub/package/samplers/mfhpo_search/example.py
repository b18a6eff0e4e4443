"""SearchSampler on a small problem; prints what it found."""

import numpy as np
import optuna
import optunahub

SearchSampler = optunahub.load_module("samplers/mfhpo_search").SearchSampler
rng = np.random.default_rng(0)


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 27)  # the sampler decides this one
    return (x - 0.3) ** 2 + 0.2 / epochs + 0.01 * float(rng.normal())


sampler = SearchSampler("epochs", budget=1500, seed=0)
study = optuna.create_study(sampler=sampler)
study.optimize(objective)
print(sampler.recommendation(study))
