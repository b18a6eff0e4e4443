"""Is a handwritten digit odd? Tune LightGBM on that until the best configuration is certified.

Each trial trains on a random half of the digits and is scored on the other half, so its value is
noisy: another split, another value. The sampler decides the split, and gives the same one to all
configurations, so that a hard split is hard for all of them. The number of trees is the fidelity,
with 90 as the target.
"""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from mfhpo_optuna import MFSampler, plot_race

TARGET = 90
pixels, digit = load_digits(return_X_y=True)


def evaluate(split: int, trees: int, learning: float, **settings: Any) -> float:
    """Log-loss on one half of the data after training on the other."""
    x_train, x_test, y_train, y_test = train_test_split(
        pixels, digit % 2, test_size=0.5, random_state=split
    )
    model = lightgbm.LGBMClassifier(
        n_estimators=trees, learning_rate=learning / trees, n_jobs=1, verbose=-1, **settings
    )
    model.fit(x_train, y_train)
    return float(log_loss(y_test, model.predict_proba(x_test)))


def objective(trial: optuna.Trial) -> float:
    return evaluate(
        split=trial.suggest_int("split", 0, 2**31 - 1),  # the sampler decides this one
        trees=trial.suggest_int("trees", 10, TARGET),  # and this one
        learning=trial.suggest_float("learning", 2.0, 12.0, log=True),
        num_leaves=trial.suggest_int("num_leaves", 3, 31, log=True),
        min_child_samples=trial.suggest_int("min_child_samples", 1, 30, log=True),
        colsample_bytree=trial.suggest_float("colsample_bytree", 0.1, 1.0),
        reg_lambda=trial.suggest_float("reg_lambda", 0.01, 10.0, log=True),
    )


def compare(what: str, trial: optuna.trial.FrozenTrial) -> None:
    """Print what a trial promises, and what its configuration is worth on splits not yet seen."""
    params = trial.params | {"trees": TARGET}
    losses = [evaluate(**params | {"split": 1_000_000 + i}) for i in range(100)]
    print(
        f"  {what} promises {trial.value:.4f} with {trial.params['trees']} trees; 100 fresh splits "
        f"with {TARGET} trees give {np.mean(losses):.4f} ± {np.std(losses) / 10:.4f}"
    )


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # the sampler's line of progress is enough
    # Losses that differ by less than epsilon are as good as equal here.
    sampler = MFSampler("trees", arms=24, replicate="split", epsilon=0.01, progress=True, seed=0)
    study = optuna.create_study(direction="minimize", sampler=sampler)
    study.optimize(objective)  # stops by itself

    print(f"\n{sampler.recommendation(study)}\n")

    certified = study.best_trial  # added by the sampler: the mean of many trials
    luckiest = min(study.trials[: certified.number], key=lambda trial: trial.value or np.inf)
    same = certified.params.items() <= (luckiest.params | {"trees": TARGET}).items()
    print(
        f"The luckiest trial, plain Optuna's best, is of {'the same' if same else 'another'} arm:"
    )
    compare(f"trial {luckiest.number}", luckiest)
    compare("the certificate", certified)

    plot_race(study).write_html("race.html")
    print("\nrace.html shows how it went; open it in a browser.")


if __name__ == "__main__":
    main()
