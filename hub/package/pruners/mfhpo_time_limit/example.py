"""TimeLimitPruner on a small problem; prints what it found."""

import time

import optuna
import optunahub

TimeLimitPruner = optunahub.load_module("pruners/mfhpo_time_limit").TimeLimitPruner


def objective(trial: optuna.Trial) -> float:
    seconds = trial.suggest_float("seconds", 0.001, 0.02)
    for epoch in range(20):
        time.sleep(seconds)
        trial.report(epoch, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return seconds


study = optuna.create_study(pruner=TimeLimitPruner(limit=0.2))
study.optimize(objective, n_trials=10)
stopped = [trial for trial in study.trials if "mfhpo:censored_at" in trial.user_attrs]
print(f"stopped {len(stopped)} of {len(study.trials)} trials at 0.2 s")
