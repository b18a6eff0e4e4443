"""Was the best trial good, or lucky? Ask a finished study, whatever sampler has made it.

A digit recogniser is tuned on random splits of 300 images, so that every trial's accuracy is partly
luck, and the best of 60 trials is mostly the luckiest. `certify` evaluates the best few again, as
often as it takes to tell which of them is best and what it is worth.
"""

from __future__ import annotations

import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from mfhpo_optuna import certify, seed_of

pixels, digit = load_digits(return_X_y=True)
pixels, digit = pixels[:300], digit[:300]


def accuracy(split: int, **settings: float) -> float:
    """Of an SVM that was trained on half of the images, on the other half."""
    x_train, x_test, y_train, y_test = train_test_split(
        pixels, digit, test_size=0.5, random_state=split
    )
    return float(SVC(**settings).fit(x_train, y_train).score(x_test, y_test))


def objective(trial: optuna.Trial) -> float:
    return accuracy(
        split=seed_of(trial),  # another split in every trial: else there is no noise to be seen
        C=trial.suggest_float("C", 0.01, 100.0, log=True),
        gamma=trial.suggest_float("gamma", 1e-5, 1e-1, log=True),
    )


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=4), study_name="digits"
    )
    study.optimize(objective, n_trials=60)

    answer = certify(study, objective, epsilon=0.02)
    print(answer)

    for what, params, promised in (
        ("the best trial", study.best_params, study.best_value),
        ("the certificate", answer.params, answer.mean),
    ):
        fresh = [accuracy(split=1_000_000 + i, **params) for i in range(200)]
        print(f"{what} promises {promised:.4f}; 200 fresh splits give {np.mean(fresh):.4f}")


if __name__ == "__main__":
    main()
