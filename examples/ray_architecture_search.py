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
from collections.abc import Callable
from itertools import pairwise
from typing import Any

# Ray reads these when it is imported: no statistics of its usage are sent, and it is quieter.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS", "0")

import numpy as np
import numpy.typing as npt
import ray
from ray import tune
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mfhpo_ray import MFSearch, recommendation

FloatArray = npt.NDArray[np.float64]

SPACE = {
    "width": tune.choice([16, 32, 64]),
    "depth": tune.choice([2, 4, 6]),
    "activation": tune.choice(["relu", "tanh"]),
    "skip": tune.choice([False, True]),
    "epochs": tune.choice([9, 27]),
}
BATCH, RATE = 30, 0.15  # rows of a step; learning rate of the first step
Function = Callable[[FloatArray], FloatArray]
ACTIVATIONS: dict[str, tuple[Function, Function]] = {  # each with its slope, given its output
    "relu": (lambda z: np.maximum(z, 0.0), lambda output: np.sign(output)),
    "tanh": (np.tanh, lambda output: 1.0 - output**2),
}
pixels, digit = load_digits(return_X_y=True)


class Network:
    """Hidden layers of one width, and a softmax; what skips a layer is added to its output."""

    def __init__(
        self, width: int, depth: int, activation: str, skip: bool, rng: np.random.Generator
    ) -> None:
        sizes = [64, *[width] * depth, 10]
        self.weights = [rng.normal(size=(n, m)) / n**0.5 for n, m in pairwise(sizes)]
        self.biases = [np.zeros(m) for m in sizes[1:]]
        self.activation, self.slope = ACTIVATIONS[activation]
        self.skips = [skip and 0 < layer < depth for layer in range(depth + 1)]

    def forward(self, x: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """What goes into each layer, and what comes out; at last the classes' probabilities."""
        inputs, outputs = [x], []
        for layer, weights in enumerate(self.weights[:-1]):
            outputs.append(self.activation(inputs[-1] @ weights + self.biases[layer]))
            inputs.append(outputs[-1] + inputs[-1] if self.skips[layer] else outputs[-1])
        scores = np.exp(inputs[-1] @ self.weights[-1] + self.biases[-1])
        return inputs, [*outputs, scores / scores.sum(axis=1, keepdims=True)]

    def descend(self, x: FloatArray, y: npt.NDArray[np.int64], rate: float) -> None:
        """One step down the gradient of the log-loss."""
        inputs, outputs = self.forward(x)
        gradient = (outputs[-1] - np.eye(10)[y]) / len(y)  # by the scores before the softmax
        for layer in reversed(range(len(self.weights))):
            skipped = gradient if self.skips[layer] else 0.0
            if layer < len(self.weights) - 1:
                gradient = gradient * self.slope(outputs[layer])
            below = gradient @ self.weights[layer].T + skipped
            self.weights[layer] -= rate * inputs[layer].T @ gradient
            self.biases[layer] -= rate * gradient.sum(axis=0)
            gradient = below


def train(config: dict[str, Any]) -> None:
    """A trial: train a network on one half of the data; report its accuracy on the other."""
    architecture = dict(config)
    seed, epochs = architecture.pop("seed"), architecture.pop("epochs")
    rng = np.random.default_rng(seed)
    x, x_test, y, y_test = train_test_split(pixels / 16, digit, test_size=0.5, random_state=seed)
    network = Network(**architecture, rng=rng)
    rows = np.concatenate([rng.permutation(len(x)) for _ in range(epochs)])
    steps = len(rows) // BATCH
    for step, batch in enumerate(np.array_split(rows, steps)):
        network.descend(x[batch], y[batch], RATE * (1 - step / steps))
    probabilities = network.forward(x_test)[1][-1]
    tune.report({"accuracy": float(np.mean(probabilities.argmax(axis=1) == y_test))})


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
