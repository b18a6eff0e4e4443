"""What can go wrong around a race: storage, restarts, limits and stops that others set."""

import enum
import json

import numpy as np
import pytest
from ray import cloudpickle

from tests.ray.searchers.searching import Memory, make


class Activation(str, enum.Enum):
    RELU = "relu"
    TANH = "tanh"


class Block:
    def __init__(self, width):
        self.width = width


def _restored(arms, others=None):
    search = make(arms=arms())
    search.suggest("a")
    search.on_trial_complete("a", {"loss": 0.1})
    again = make(arms=(others or arms)())
    again.set_state(json.loads(json.dumps(search.get_state())))
    return again


OBJECTS = {
    "texts that are members of an enum": lambda: [{"a": Activation.RELU}, {"a": Activation.TANH}],
    "NumPy's numbers in a list": lambda: [{"w": [np.float64(0.5)]}, {"w": [np.float64(0.6)]}],
    "arrays in a list": lambda: [{"w": [np.zeros(3)]}, {"w": [np.ones(3)]}],
    "functions and objects": lambda: [{"f": lambda x: x}, {"f": Block(3)}],
    "tuples": lambda: [{"hidden": (1, 2)}, {"hidden": (2, 1)}],
}


@pytest.mark.parametrize("arms", OBJECTS.values(), ids=OBJECTS.keys())
def test_arms_of_any_kind_are_restored(arms):
    again = _restored(arms)
    assert again.recommendation().trials == 1
    copied = cloudpickle.loads(cloudpickle.dumps(again))
    assert copied.recommendation().trials == 1


@pytest.mark.parametrize(
    ("arms", "others"),
    [
        (lambda: [{"f": Block(1)}], lambda: [{"f": 1}]),
        (lambda: [{"w": [1, 2]}], lambda: [{"w": [1, 2, 3]}]),
        (lambda: [{"w": [1]}], lambda: [{"v": [1]}]),
    ],
)
def test_other_arms_are_refused_where_that_can_be_seen(arms, others):
    with pytest.raises(ValueError, match="arms: .*, but .* in what was saved"):
        _restored(arms, others)


@pytest.fixture
def again():
    search, again = make(), make()
    search.set_max_concurrency(1)
    search.suggest("a")
    again.set_state(search.get_state())
    return again


def test_a_trial_is_waited_for_if_it_is_run_again(again):
    again.connect(Memory())
    again.evaluations.note_resources("a", {"CPU": 1})
    assert again.suggest("b") is None
    again.on_trial_complete("a", {"loss": 0.5})
    assert isinstance(again.suggest("b"), dict)


def test_a_trial_that_is_not_run_again_is_not_waited_for(again):
    again.connect(Memory())
    assert isinstance(again.suggest("b"), dict)
