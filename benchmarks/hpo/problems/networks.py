"""Small networks that read digits, in NumPy: those of all seeds are trained at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.hpo.problems.scikit_learn import split
from benchmarks.hpo.space import Configuration
from mfhpo.knowledge.arrays import FloatArray

Array: TypeAlias = npt.NDArray[np.float32]

_CLASSES = 10
_BATCH = 128
_RATE, _MOMENTUM = 0.05, 0.9
_EPSILON = 1e-5  # added to variances
_RENEWED = 0.1  # share of the running statistics, a step

_Function: TypeAlias = Callable[[Array], Array]
_ACTIVATIONS: Mapping[str, tuple[_Function, _Function]] = {  # each with its slope, by its output
    "relu": (lambda z: np.maximum(z, 0.0, out=z), lambda output: (output > 0.0).astype(np.float32)),
    "tanh": (lambda z: np.tanh(z, out=z), lambda output: 1.0 - output * output),
    "sigmoid": (
        lambda z: 0.5 + 0.5 * np.tanh(0.5 * z),
        lambda output: output * (1.0 - output),
    ),
}
_ALONG = {"none": None, "batch": 1, "layer": 2}  # the axis whose mean becomes 0, and variance 1


def trained_networks(
    architecture: Configuration, epochs: Sequence[float], seeds: Sequence[int]
) -> FloatArray:
    """Train one architecture with every seed, and test it on the way.

    Batches of 128, momentum of 0.9 and a constant rate of 0.05, so that a training of few epochs is
    the beginning of a longer one.

    Parameters
    ----------
    architecture
        ``depth`` (hidden layers), ``width_1`` to ``width_<depth>``, ``activation`` ("relu",
        "tanh", "sigmoid"), ``normalisation`` ("none", "batch", "layer"), and ``skip`` ("no",
        "yes": each layer but the first adds its input to its output, as many features as both
        have) where there is more than one layer.
    epochs
        After which the networks are tested, increasing.
    seeds
        Of the split of the data, the initial weights, and the order of rows.

    Returns
    -------
    numpy.ndarray
        Accuracy in percent, log-loss in nats, and seconds of CPU time until then, shape
        (3, epochs, seeds). The seconds are those of all networks, divided by their number; tests
        take none.

    Examples
    --------
    >>> small = {"depth": 1, "width_1": 24, "activation": "relu", "normalisation": "batch"}
    >>> accuracy, log_loss, seconds = trained_networks(small, epochs=[1, 9], seeds=[0, 1, 2])
    >>> accuracy.shape, bool((accuracy[0] < 90.0).all()), bool((accuracy[1] > 90.0).all())
    ((2, 3), True, True)
    """
    parts = [split("digits", seed) for seed in seeds]
    x, x_test = (np.stack([part[k] / 16 for part in parts]).astype(np.float32) for k in (0, 1))
    y, y_test = (np.stack([part[k] for part in parts]).astype(np.int64) for k in (2, 3))
    rngs = [np.random.default_rng(seed) for seed in seeds]
    network = Networks(architecture, x.shape[-1], rngs)
    networks, rows = y.shape
    wanted = np.eye(_CLASSES, dtype=np.float32)[y]
    found, seconds = [], 0.0
    for epoch in range(1, int(epochs[-1]) + 1):
        began = time.process_time()
        order = np.stack([rng.permutation(rows) for rng in rngs])
        shuffled = (np.take_along_axis(array, order[..., None], axis=1) for array in (x, wanted))
        x_epoch, wanted_epoch = shuffled
        for start in range(0, rows - _BATCH + 1, _BATCH):
            batch = slice(start, start + _BATCH)
            network.descend(x_epoch[:, batch], wanted_epoch[:, batch])
        seconds += time.process_time() - began
        if epoch in epochs:
            logs = network.log_probabilities(x_test)
            accuracy = 100.0 * (logs.argmax(-1) == y_test).mean(1)
            loss = -np.take_along_axis(logs, y_test[..., None], axis=2).mean((1, 2))
            found.append([accuracy, loss, np.full(networks, seconds / networks)])
    return np.moveaxis(np.array(found, dtype=np.float64), 1, 0)


class Networks:
    """Networks of one architecture, one for each generator; arrays have an axis for them first.

    Parameters
    ----------
    architecture
        As for `trained_networks`.
    features
        Number of what is given for each row.
    rngs
        For the initial weights.

    Attributes
    ----------
    values, gradients
        All parameters, and the last gradient by them, shape (networks, parameters); one array
        each, so that a step is few calls.
    """

    def __init__(
        self, architecture: Configuration, features: int, rngs: Sequence[np.random.Generator]
    ) -> None:
        depth = architecture["depth"]
        sizes = [features, *(architecture[f"width_{k}"] for k in range(1, depth + 1)), _CLASSES]
        shapes = [shape for n, m in pairwise(sizes) for shape in ((n, m), (1, m), (1, m))]
        length = sum(n * m for n, m in shapes)
        self.values, self.gradients, self._velocities = (
            np.zeros((len(rngs), length), dtype=np.float32) for _ in range(3)
        )
        parameters = _views(self.values, shapes)
        gradients = _views(self.gradients, shapes)
        gain = 2.0 if architecture["activation"] == "relu" else 1.0
        for layer in range(depth + 1):
            weights, _, scale = parameters[3 * layer : 3 * layer + 3]
            n, m = weights.shape[1:]
            spread = (gain / n) ** 0.5 if layer < depth else n**-0.5
            weights[:] = spread * np.stack([rng.standard_normal((n, m)) for rng in rngs])
            scale[:] = 1.0
        self._layers = [
            _Layer(
                parameters[3 * layer : 3 * layer + 3],
                gradients[3 * layer : 3 * layer + 3],
                activation=architecture["activation"],
                normalisation=architecture["normalisation"],
                skips=layer > 0 and architecture["skip"] == "yes",
            )
            for layer in range(depth)
        ]
        self._last, self._last_shift, _ = parameters[-3:]
        self._last_gradient, self._last_shift_gradient, _ = gradients[-3:]

    def log_probabilities(self, x: Array) -> Array:
        """Of the classes, shape (networks, rows, classes)."""
        for layer in self._layers:
            x = layer.forward(x, learns=False)
        return _log_softmax(x @ self._last + self._last_shift)

    def descend(self, x: Array, wanted: Array) -> None:
        """One step down the gradient of the log-loss."""
        self.backpropagate(x, wanted)
        self._velocities *= _MOMENTUM
        self._velocities -= _RATE * self.gradients
        self.values += self._velocities

    def backpropagate(self, x: Array, wanted: Array) -> Array:
        """Write the gradients of the mean log-loss; returns what the networks make of the rows.

        Parameters
        ----------
        x, wanted
            Features, and probabilities of the classes that are right, shape (networks, rows, ...).

        Returns
        -------
        numpy.ndarray
            Logarithms of probabilities, shape (networks, rows, classes).
        """
        for layer in self._layers:
            x = layer.forward(x, learns=True)
        logs = _log_softmax(x @ self._last + self._last_shift)
        gradient = (np.exp(logs) - wanted) / wanted.shape[1]
        np.matmul(x.swapaxes(1, 2), gradient, out=self._last_gradient)
        gradient.sum(1, keepdims=True, out=self._last_shift_gradient)
        gradient = gradient @ self._last.swapaxes(1, 2)
        for layer in reversed(self._layers[1:]):
            gradient = layer.below(gradient, layer.backward(gradient))
        self._layers[0].backward(gradient)
        return logs


class _Layer:
    """A hidden layer of each network: weights, perhaps normalisation, activation, shortcut."""

    def __init__(
        self,
        parameters: Sequence[Array],
        gradients: Sequence[Array],
        activation: str,
        normalisation: str,
        skips: bool,
    ) -> None:
        self._weights, self._shift, self._scale = parameters
        self._weights_gradient, self._shift_gradient, self._scale_gradient = gradients
        self._activation, self._slope = _ACTIVATIONS[activation]
        self._along = _ALONG[normalisation]
        self._skipped = min(self._weights.shape[1:]) if skips else 0
        self._mean, self._variance = np.zeros_like(self._shift), np.ones_like(self._shift)

    def forward(self, x: Array, learns: bool) -> Array:
        """What comes out; what `backward` needs is kept."""
        self._x = x
        z = x @ self._weights
        if self._along is not None:
            z = self._normalised(z, learns) * self._scale
        z += self._shift
        self._output = self._activation(z)
        if not self._skipped:
            return self._output
        result = self._output.copy()
        result[..., : self._skipped] += x[..., : self._skipped]
        return result

    def _normalised(self, z: Array, learns: bool) -> Array:
        if not learns and self._along == _ALONG["batch"]:
            z -= self._mean
            z /= np.sqrt(self._variance + _EPSILON)
            return z
        mean = z.mean(self._along, keepdims=True)
        z -= mean
        variance = np.square(z).mean(self._along, keepdims=True)
        if self._along == _ALONG["batch"]:
            self._mean += _RENEWED * (mean - self._mean)
            self._variance += _RENEWED * (variance - self._variance)
        self._inverse = 1.0 / np.sqrt(variance + _EPSILON)
        z *= self._inverse
        self._normal = z
        return z

    def backward(self, gradient: Array) -> Array:
        """Gradients by the parameters are written; the one by what `weights` gave is returned."""
        inner = gradient * self._slope(self._output)
        inner.sum(1, keepdims=True, out=self._shift_gradient)
        if self._along is not None:
            product = inner * self._normal
            product.sum(1, keepdims=True, out=self._scale_gradient)
            if self._along == _ALONG["batch"]:  # then the sums are there already
                means = self._shift_gradient, self._scale_gradient
                mean, sloped = (part * (self._scale / inner.shape[1]) for part in means)
            else:
                weights = self._scale.swapaxes(1, 2) / inner.shape[2]
                mean, sloped = inner @ weights, product @ weights
            inner *= self._scale
            inner -= mean
            inner -= self._normal * sloped
            inner *= self._inverse
        np.matmul(self._x.swapaxes(1, 2), inner, out=self._weights_gradient)
        return inner

    def below(self, gradient: Array, inner: Array) -> Array:
        """The gradient by what went in, from what went into `backward` and came out of it."""
        result: Array = inner @ self._weights.swapaxes(1, 2)
        if self._skipped:
            result[..., : self._skipped] += gradient[..., : self._skipped]
        return result


def _views(flat: Array, shapes: Sequence[tuple[int, int]]) -> list[Array]:
    """Parts of shape (networks, n, m) of an array of shape (networks, length)."""
    ends = np.cumsum([n * m for n, m in shapes])
    return [
        flat[:, end - n * m : end].reshape(len(flat), n, m)
        for end, (n, m) in zip(ends, shapes, strict=True)
    ]


def _log_softmax(scores: Array) -> Array:
    scores = scores - scores.max(-1, keepdims=True)
    return np.asarray(scores - np.log(np.exp(scores).sum(-1, keepdims=True)))
