"""Small networks for examples, in PyTorch if it is installed, else in NumPy, with one interface.

`network_class()` says which; either is made, trained by steps and asked in the same way.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


class Network(Protocol):
    """Hidden layers and a softmax; what skips a layer is added to its output.

    It is made of the sizes of its layers, the name of an activation ("relu", "tanh"), whether each
    hidden layer is skipped, which needs an input as wide as its output, and a generator.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str,
        skips: Sequence[bool],
        rng: np.random.Generator,
    ) -> None: ...

    def descend(self, x: FloatArray, y: Labels, rate: float) -> None:
        """One step down the gradient of the log-loss, on a batch of rows and their classes."""

    def predict(self, x: FloatArray) -> Labels:
        """The class of each row."""


def network_class() -> type[Network]:
    """PyTorch's networks if it is installed, else NumPy's."""
    return TorchNetwork if importlib.util.find_spec("torch") is not None else NumpyNetwork


Function = Callable[[FloatArray], FloatArray]
ACTIVATIONS: dict[str, tuple[Function, Function]] = {  # each with its slope, given its output
    "relu": (lambda z: np.maximum(z, 0.0), lambda output: np.sign(output)),
    "tanh": (np.tanh, lambda output: 1.0 - output**2),
}


class NumpyNetwork:
    """Written out: each layer's output on the way up, gradients on the way down."""

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str,
        skips: Sequence[bool],
        rng: np.random.Generator,
    ) -> None:
        self.weights = [rng.normal(size=(n, m)) / n**0.5 for n, m in pairwise(sizes)]
        self.biases = [np.zeros(m) for m in sizes[1:]]
        self.activation = activation
        self.skips = [*skips, False]

    def forward(self, x: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """What goes into each layer, and what comes out; at last the classes' probabilities."""
        activation, _ = ACTIVATIONS[self.activation]
        inputs, outputs = [x], []
        for layer, weights in enumerate(self.weights[:-1]):
            outputs.append(activation(inputs[-1] @ weights + self.biases[layer]))
            inputs.append(outputs[-1] + inputs[-1] if self.skips[layer] else outputs[-1])
        scores = np.exp(inputs[-1] @ self.weights[-1] + self.biases[-1])
        return inputs, [*outputs, scores / scores.sum(axis=1, keepdims=True)]

    def descend(self, x: FloatArray, y: Labels, rate: float) -> None:
        """One step down the gradient of the log-loss."""
        _, slope = ACTIVATIONS[self.activation]
        inputs, outputs = self.forward(x)
        gradient = (outputs[-1] - np.eye(outputs[-1].shape[1])[y]) / len(y)
        for layer in reversed(range(len(self.weights))):
            skipped = gradient if self.skips[layer] else 0.0
            if layer < len(self.weights) - 1:
                gradient = gradient * slope(outputs[layer])
            below = gradient @ self.weights[layer].T + skipped
            self.weights[layer] -= rate * inputs[layer].T @ gradient
            self.biases[layer] -= rate * gradient.sum(axis=0)
            gradient = below

    def predict(self, x: FloatArray) -> Labels:
        """The class of each row."""
        return np.asarray(self.forward(x)[1][-1].argmax(axis=1))


class TorchNetwork:
    """The same in PyTorch, which finds the gradients."""

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str,
        skips: Sequence[bool],
        rng: np.random.Generator,
    ) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(int(rng.integers(2**31)))
        self.layers = torch.nn.ModuleList(torch.nn.Linear(n, m) for n, m in pairwise(sizes))
        self.activation = activation
        self.skips = list(skips)

    def scores(self, x: FloatArray) -> Any:
        """Of the classes, before the softmax."""
        import torch

        activation = getattr(torch, self.activation)
        hidden = torch.as_tensor(x, dtype=torch.float32)
        *layers, last = self.layers
        for layer, skips in zip(layers, self.skips, strict=True):
            output = activation(layer(hidden))
            hidden = output + hidden if skips else output
        return last(hidden)

    def descend(self, x: FloatArray, y: Labels, rate: float) -> None:
        """One step down the gradient of the log-loss."""
        import torch

        self.layers.zero_grad()
        torch.nn.functional.cross_entropy(self.scores(x), torch.as_tensor(y)).backward()
        torch.optim.SGD(self.layers.parameters(), lr=rate).step()

    def predict(self, x: FloatArray) -> Labels:
        """The class of each row."""
        return np.asarray(self.scores(x).argmax(1))
