"""Which small neural network reads handwritten digits best? Search a space of cells, then certify.

The depth decides which layers there are, and so which widths; a layer as wide as the one below it
may be skipped. Each training has its own split of the data, its own initial weights and its own
order of rows, all from its seed, so that its accuracy is a noisy value. Epochs are the fidelity: an
architecture that is worth more of them goes on from its checkpoint, a file. `SearchSampler`
searches with a part of the budget. With the rest, as far as it takes, it trains the best few again.

Networks are PyTorch's if that is installed, else NumPy's.
"""

from __future__ import annotations

import argparse
import importlib.util
import pickle
import tempfile
from pathlib import Path

import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from small_networks import network_class

from mfhpo_optuna import SearchSampler, plot_race, training_of

EPOCHS = 27  # of a whole training
BATCH = 32  # rows of a step
pixels, digit = load_digits(return_X_y=True)


class Training:
    """A network that can be trained further, on a split of its own."""

    def __init__(self, sizes: list[int], activation: str, skips: list[bool], seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.network = network_class()(sizes, activation, skips, self.rng)
        self.epochs, self.seed = 0, seed

    def accuracy_after(self, epochs: int, rate: float) -> float:
        """The share of one half of the data that is read well after training on the other."""
        x_train, x_test, y_train, y_test = train_test_split(
            pixels / 16, digit, test_size=0.5, random_state=self.seed
        )
        for _ in range(self.epochs, epochs):
            for batch in np.array_split(self.rng.permutation(len(x_train)), len(x_train) // BATCH):
                self.network.descend(x_train[batch], y_train[batch], rate)
        self.epochs = epochs
        return float(np.mean(self.network.predict(x_test) == y_test))


def objective(trial: optuna.Trial, checkpoints: Path) -> float:
    depth = trial.suggest_int("depth", 1, 3)
    widths = [trial.suggest_int(f"width_{k}", 16, 64, step=16) for k in range(1, depth + 1)]
    skips = [
        width == below and trial.suggest_categorical(f"skip_{k}", [False, True])
        for k, (below, width) in enumerate(zip([0, *widths], widths, strict=False), 1)
    ]
    activation = trial.suggest_categorical("activation", ["relu", "tanh"])
    rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
    epochs = trial.suggest_int("epochs", 1, EPOCHS)  # the sampler decides this one
    seed = trial.suggest_int("seed", 0, 2**31 - 1)  # and this one

    checkpoint = checkpoints / f"{training_of(trial)}.pkl"
    if checkpoint.exists():
        training: Training = pickle.loads(checkpoint.read_bytes())
    else:
        training = Training([pixels.shape[1], *widths, 10], activation, skips, seed)
    accuracy = training.accuracy_after(epochs, rate)
    checkpoint.write_bytes(pickle.dumps(training))
    return accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--trainings", type=int, default=100, help="budget, in whole ones (default: 100)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the search (default: 0)")
    options = parser.parse_args()

    optuna.logging.set_verbosity(optuna.logging.WARNING)  # the sampler's line of progress is enough
    print(f"Networks are of class {network_class().__name__}.")
    sampler = SearchSampler(
        "epochs",
        replicate="seed",
        budget=options.trainings * EPOCHS,
        certify_share=0.5,  # to tell the best few apart takes many trainings
        top=4,
        epsilon=0.005,  # accuracies that differ by less are as good as equal
        checkpoints=True,
        seed=options.seed,
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    with tempfile.TemporaryDirectory() as folder:  # of workers on several machines: a shared one
        study.optimize(lambda trial: objective(trial, Path(folder)))  # stops by itself

    print(f"\n{sampler.recommendation(study)}")
    if importlib.util.find_spec("plotly") is not None:
        plot_race(study).write_html("race.html")
        print("\nrace.html shows how it went; open it in a browser.")


if __name__ == "__main__":
    main()
