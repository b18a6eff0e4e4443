import itertools

import numpy as np
import pytest

from benchmarks.hpo.problems.networks import Networks, trained_networks

ARCHITECTURE = {"depth": 3, "width_1": 8, "width_2": 24, "width_3": 8}


@pytest.mark.parametrize(
    ("activation", "normalisation", "skip"),
    [*itertools.product(["tanh", "sigmoid"], ["none", "batch", "layer"], ["no", "yes"])],
)
def test_gradients_are_those_of_finite_differences(activation, normalisation, skip):
    given = {"activation": activation, "normalisation": normalisation, "skip": skip}
    networks = Networks(ARCHITECTURE | given, 64, [np.random.default_rng(seed) for seed in (0, 1)])
    rng = np.random.default_rng(2)
    x = rng.random((2, 100, 64), dtype=np.float32)
    wanted = np.eye(10, dtype=np.float32)[rng.integers(10, size=(2, 100))]

    def loss():
        return -(networks.backpropagate(x, wanted) * wanted).sum(2, dtype=float).mean(1)

    start = networks.values.copy()
    loss()
    gradients = networks.gradients.copy()
    for direction in (gradients, *rng.standard_normal((2, *start.shape), dtype=np.float32)):
        step = 0.005 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        networks.values[:] = start + step
        above = loss()
        networks.values[:] = start - step
        below = loss()
        np.testing.assert_allclose((above - below) / 2, (gradients * step).sum(1), 0.01, 2e-6)


def test_networks_are_the_same_alone_and_together_and_on_the_way():
    given = ARCHITECTURE | {"activation": "relu", "normalisation": "batch", "skip": "yes"}
    together = trained_networks(given, [1, 4], seeds=[3, 5])
    alone = trained_networks(given, [4], seeds=[5])
    assert together.shape == (3, 2, 2)
    assert together[0, 1, 1] == alone[0, 0, 0]
    assert together[1, 1, 1] == pytest.approx(alone[1, 0, 0], rel=1e-4)
    assert (together[2, 0] < together[2, 1]).all()  # seconds add up
    assert (together[1, 0] > together[1, 1]).all()  # the log-loss falls
