"""NashSampler on a small problem; prints what it found."""

import optuna
import optunahub

NashSampler = optunahub.load_module("samplers/mfhpo_nash").NashSampler


def objective(trial: optuna.Trial) -> tuple[float, float]:
    x = trial.suggest_float("x", 0, 1)
    y = trial.suggest_float("y", 0, 1)
    seconds = trial.suggest_int("seconds", 1, 9)  # the sampler decides this one
    late = (x - 0.5 * y) ** 2 + 0.01 / seconds
    costs = (y + 0.5 * x - 0.75) ** 2 + 0.01 / seconds
    return late, costs


sampler = NashSampler({"row": ["x"], "column": ["y"]}, fidelity="seconds", budget=90, seed=0)
study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
study.optimize(objective)
print(sampler.equilibrium(study))
