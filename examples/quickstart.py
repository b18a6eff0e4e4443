"""Is a handwritten digit odd? Tune LightGBM on that, until the best configuration is certified.

Every trial trains on one random half of the data and scores the other half, so that its value is
noisy. How many trees it may grow is the sampler's decision: few are cheap, 270 are the target.
"""

from __future__ import annotations

from typing import Any

import lightgbm
import optuna
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from mfhpo_optuna import IISESampler, plot_race

X, DIGITS = load_digits(return_X_y=True)
Y = DIGITS % 2


def evaluate(params: dict[str, Any], trees: int, split: int) -> float:
    """Log-loss of a model on the half of the data that it was not trained on."""
    x_train, x_test, y_train, y_test = train_test_split(X, Y, test_size=0.5, random_state=split)
    model = lightgbm.LGBMClassifier(n_estimators=trees, n_jobs=1, verbose=-1, **params)
    model.fit(x_train, y_train)
    return float(log_loss(y_test, model.predict_proba(x_test)))


def objective(trial: optuna.Trial) -> float:
    trees = trial.suggest_int("trees", 10, 270)  # the sampler decides this one
    # Fewer trees take larger steps. That keeps cheap models close to the full one.
    learning = trial.suggest_float("learning", 2.0, 20.0, log=True)
    params = {
        "learning_rate": learning / trees,
        "num_leaves": trial.suggest_int("num_leaves", 3, 31, log=True),
        "min_child_samples": trial.suggest_int("min_child_samples", 1, 30, log=True),
        "colsample_bytree": trial.suggest_float("colsample_bytree", 0.1, 1.0),
        "reg_lambda": trial.suggest_float("reg_lambda", 0.01, 10.0, log=True),
    }
    return evaluate(params, trees, split=trial.number)


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = IISESampler("trees", arms=24, delta=0.05, epsilon=0.005, progress=True, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective)  # stops by itself
    print(sampler.recommendation(study))
    plot_race(study).write_html("race.html", include_plotlyjs=True)


if __name__ == "__main__":
    main()
