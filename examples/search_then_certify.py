"""Search a whole space on a budget, then learn what the best configuration is really worth.

LightGBM is tuned to tell benign tumours from malignant ones. Each training has its own random half
of the data to learn from, and is scored on the other half: another split, another loss. Boosting
rounds are the fidelity, and a configuration that is worth it goes on from the rounds it has had.
`SearchSampler` searches with a part of the budget. With the rest, as far as it takes, it trains the
best few again on new splits, since the loss that made a configuration the best was a lucky one.
"""

from __future__ import annotations

import argparse
import importlib.util
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from mfhpo_optuna import SearchSampler, plot_race, seed_of, training_of

ROUNDS = 81  # of a whole training
FRESH = 60  # splits on which promises are checked in the end
cells, is_benign = load_breast_cancer(return_X_y=True)


@dataclass
class Training:
    """A model that can be trained further, on a split of its own."""

    split: int
    model: lightgbm.Booster | None = None

    def loss_after(self, rounds: int, **settings: Any) -> float:
        """Log-loss on one half of the data after so many rounds of boosting on the other."""
        x_train, x_test, y_train, y_test = train_test_split(
            cells, is_benign, test_size=0.5, random_state=self.split
        )
        done = 0 if self.model is None else self.model.current_iteration()
        self.model = lightgbm.train(
            {"objective": "binary", "num_threads": 1, "verbose": -1, **settings},
            lightgbm.Dataset(x_train, y_train),
            num_boost_round=rounds - done,
            init_model=self.model,
        )
        return float(log_loss(y_test, self.model.predict(x_test)))


trainings: dict[str, Training] = {}  # a study with several processes would keep them in files


def objective(trial: optuna.Trial) -> float:
    settings = {
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.3, log=True),
        "num_leaves": trial.suggest_int("num_leaves", 2, 31, log=True),
        "min_data_in_leaf": trial.suggest_int("min_data_in_leaf", 1, 40, log=True),
        "feature_fraction": trial.suggest_float("feature_fraction", 0.1, 1.0),
        "lambda_l2": trial.suggest_float("lambda_l2", 0.01, 100.0, log=True),
    }
    rounds = trial.suggest_int("rounds", 3, ROUNDS)  # the sampler decides this one
    training = trainings.setdefault(training_of(trial), Training(split=seed_of(trial)))
    return training.loss_after(rounds, **settings)


def check(what: str, promised: float, params: dict[str, Any]) -> None:
    """Print what is promised of a configuration, and what it is worth on splits not yet seen."""
    losses = [Training(1_000_000 + split).loss_after(ROUNDS, **params) for split in range(FRESH)]
    error = np.std(losses) / np.sqrt(FRESH)
    print(
        f"  {what} promises {promised:.4f}; {FRESH} fresh splits give "
        f"{np.mean(losses):.4f} ± {error:.4f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--trainings", type=int, default=200, help="budget, in whole ones (default: 200)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the search (default: 0)")
    options = parser.parse_args()

    optuna.logging.set_verbosity(optuna.logging.WARNING)  # the sampler's line of progress is enough
    sampler = SearchSampler(
        "rounds",
        budget=options.trainings * ROUNDS,
        certify_share=0.6,  # losses are noisy here: to tell the best few apart takes many
        top=4,
        epsilon=0.04,  # losses that differ by less are as good as equal
        checkpoints=True,
        seed=options.seed,
    )
    study = optuna.create_study(study_name="tumours", direction="minimize", sampler=sampler)
    study.optimize(objective)  # stops by itself

    answer = sampler.recommendation(study)
    print(f"\n{answer}\n")

    if answer.certificate is not None:
        luckiest = answer.certificate.luckiest_result
        print("What was promised, and what is true:")
        check(f"the luckiest, {luckiest.name},", luckiest.claim, luckiest.params)
        check("the certificate", answer.mean, answer.params)

    if importlib.util.find_spec("plotly") is not None:
        plot_race(study).write_html("race.html")
        print("\nrace.html shows how it went; open it in a browser.")


if __name__ == "__main__":
    main()
