"""IISEPruner on a small problem; prints what it found."""

import optuna
import optunahub

IISEPruner = optunahub.load_module("pruners/mfhpo_iise").IISEPruner


def objective(trial: optuna.Trial) -> float:
    height = trial.suggest_float("height", 0, 1)
    for epoch in range(1, 28):
        value = height - 0.4 / epoch
        trial.report(value, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


sampler = optuna.samplers.RandomSampler(seed=0)
study = optuna.create_study(direction="maximize", sampler=sampler, pruner=IISEPruner())
study.optimize(objective, n_trials=40)
stopped = study.get_trials(states=[optuna.trial.TrialState.PRUNED])
print(f"stopped {len(stopped)} of {len(study.trials)} trials; best {study.best_params}")
