"""RCUCBSampler on a small problem; prints what it found."""

import time

import optuna
import optunahub

from mfhpo.censored import Linear
from mfhpo_optuna import seed_of, time_limited

RCUCBSampler = optunahub.load_module("samplers/mfhpo_rcucb").RCUCBSampler


def score(trial: optuna.Trial) -> float:
    model = trial.suggest_categorical("model", ["quick", "slow"])
    hangs = model == "slow" and seed_of(trial) % 3 == 0
    time.sleep(10 if hangs else 0.001)
    return {"quick": 0.3, "slow": 0.9}[model]


sampler = RCUCBSampler(
    [{"model": "quick"}, {"model": "slow"}],
    limits=[0.1, 0.2],
    cost=Linear(0.1),
    reward_range=(0, 1),
    horizon=25,
    seed=0,
)
study = optuna.create_study(study_name="models", direction="maximize", sampler=sampler)
study.optimize(time_limited(score), n_trials=25)
print(sampler.recommendation(study))
