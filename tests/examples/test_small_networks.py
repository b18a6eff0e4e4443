import pickle
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(params=["NumpyNetwork", "TorchNetwork"])
def network_class(request, monkeypatch):
    if request.param == "TorchNetwork":
        pytest.importorskip("torch")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    import small_networks

    yield getattr(small_networks, request.param)
    del sys.modules["small_networks"]


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_networks_learn_and_go_on_from_a_checkpoint(network_class, activation):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5))
    y = (x[:, 0] > 0.0).astype(np.int64) + (x[:, 1] > 0.0)
    network = network_class([5, 16, 16, 3], activation, [False, True], rng)
    for _ in range(200):
        network.descend(x, y, rate=0.3)
    assert np.mean(network.predict(x) == y) > 0.95
    again = pickle.loads(pickle.dumps(network))
    for one in (network, again):
        one.descend(x, y, rate=0.3)
    np.testing.assert_array_equal(again.predict(x), network.predict(x))


def test_what_skips_a_layer_is_added_to_its_output(network_class):
    # With weights of zero below it, only what skips the second layer can tell rows apart.
    x = np.array([[1.0, -1.0], [-1.0, 1.0]])
    predicted = []
    for skips in ([False, False], [True, True]):
        network = network_class([2, 2, 2, 2], "tanh", skips, np.random.default_rng(0))
        for layer in range(2):
            silence(network, layer)
        predicted.append(set(network.predict(x).tolist()))
    assert [len(classes) for classes in predicted] == [1, 2]


def silence(network, layer):
    if hasattr(network, "weights"):
        network.weights[layer][:] = 0.0
        network.biases[layer][:] = 0.0
    else:
        network.layers[layer].weight.data.zero_()
        network.layers[layer].bias.data.zero_()
