"""Some trials of an ordinary study run away. A limit of time, enforced from outside, ends them.

TPE tunes a support vector machine on data in their own units: with a large C it may iterate for
hours, in C code that neither Ctrl-C nor `study.optimize(timeout=...)` interrupts. Both studies
below have the same seed and the same seconds; one of them gives each trial half a second.
"""

from __future__ import annotations

import argparse
import time

import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from mfhpo_optuna import time_limited

LIMIT = 0.5
x, y = load_breast_cancer(return_X_y=True)


def objective(trial: optuna.Trial) -> float:
    """Accuracy of a support vector machine."""
    model = SVC(
        C=trial.suggest_float("C", 1e-3, 1e4, log=True),
        kernel=trial.suggest_categorical("kernel", ["linear", "poly", "rbf"]),
        gamma=trial.suggest_float("gamma", 1e-6, 1.0, log=True),
    )
    return float(cross_val_score(model, x, y).mean())


def tune(title: str, limit: float, for_seconds: float) -> None:
    sampler = optuna.samplers.TPESampler(seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial({"C": 1.0, "kernel": "rbf", "gamma": 1e-3})
    began = time.monotonic()
    with time_limited(objective, limit) as limited:
        study.optimize(limited, timeout=for_seconds)
    seconds = time.monotonic() - began
    stopped = len(study.get_trials(states=[optuna.trial.TrialState.PRUNED]))
    longest = max(trial.user_attrs["mfhpo:seconds"] for trial in study.trials)
    print(
        f"{title:20} best {study.best_value:.4f} of {len(study.trials):3} trials, {stopped:2} "
        f"stopped, the longest after {longest:4.1f} s; {seconds:4.1f} s in all"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each study (default: 8)")
    seconds = parser.parse_args().seconds
    if not seconds >= 2.0:
        parser.error(f"--seconds must be at least 2, or nothing may end in time, got {seconds:g}.")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # So that this example ends, a trial is given up here once it has used all the time there is.
    tune("without a limit", limit=seconds, for_seconds=seconds)
    tune(f"limit of {LIMIT:g} s", limit=LIMIT, for_seconds=seconds)


if __name__ == "__main__":
    main()
