"""Which small neural network reads handwritten digits best? An architecture search that certifies.

Width, depth, activation and skip connections make the architecture. Each trial draws a split of the
data, initial weights and an order of the rows from its seed, trains for so many epochs, and reports
the accuracy on the other half of the data: a noisy value. Epochs are the fidelity. The learning
rate falls to zero over the epochs of the trial, however few, so that a short run is a whole one.

`MFSearch` chooses architecture, epochs and seed of every trial, and ends the run by itself.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from typing import Any

# Ray reads these when it is imported: no statistics of its usage are sent, and it is quieter.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS", "0")

import numpy as np
import ray
from ray import tune
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from small_networks import NumpyNetwork

from mfhpo_ray import MFSearch, recommendation

SPACE = {
    "width": tune.choice([16, 32, 64]),
    "depth": tune.choice([2, 4, 6]),
    "activation": tune.choice(["relu", "tanh"]),
    "skip": tune.choice([False, True]),
    "epochs": tune.choice([9, 27]),
}
BATCH, RATE = 30, 0.15  # rows of a step; learning rate of the first step
pixels, digit = load_digits(return_X_y=True)


def train(config: dict[str, Any]) -> None:
    """A trial: train a network on one half of the data; report its accuracy on the other."""
    seed, epochs, width, depth = (config[key] for key in ("seed", "epochs", "width", "depth"))
    rng = np.random.default_rng(seed)
    x, x_test, y, y_test = train_test_split(pixels / 16, digit, test_size=0.5, random_state=seed)
    skips = [config["skip"] and layer > 0 for layer in range(depth)]
    network = NumpyNetwork([64, *[width] * depth, 10], config["activation"], skips, rng)
    rows = np.concatenate([rng.permutation(len(x)) for _ in range(epochs)])
    steps = len(rows) // BATCH
    for step, batch in enumerate(np.array_split(rows, steps)):
        network.descend(x[batch], y[batch], RATE * (1 - step / steps))
    tune.report({"accuracy": float(np.mean(network.predict(x_test) == y_test))})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few architectures, large tolerance")
    parser.add_argument("--storage", help="folder or URI for the results, else a temporary one")
    options = parser.parse_args()
    # Accuracies that differ by less than epsilon are as good as equal here.
    arms, epsilon = (4, 0.05) if options.quick else (16, 0.02)

    search = MFSearch("epochs", arms=arms, epsilon=epsilon, seed=0)
    # A cluster of this machine alone, unless another one's address is in RAY_ADDRESS.
    address = os.environ.get("RAY_ADDRESS", "local")
    ray.init(address, include_dashboard=False, log_to_driver=False)
    tuner = tune.Tuner(
        train,
        param_space=SPACE,
        tune_config=tune.TuneConfig(
            metric="accuracy",
            mode="max",
            search_alg=search,
            scheduler=search.scheduler(),
            num_samples=-1,  # until the search says that it is over
            reuse_actors=True,  # a new process for each trial would take longer than the trial
        ),
        run_config=tune.RunConfig(storage_path=options.storage or tempfile.mkdtemp(), verbose=0),
    )
    print(f"\n{recommendation(tuner.fit())}")


if __name__ == "__main__":
    main()
