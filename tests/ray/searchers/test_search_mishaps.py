"""What can go wrong around a race: storage, restarts, limits and stops that others set."""

import enum
import json
import logging
import warnings

import numpy as np
import pytest
from ray import cloudpickle

from mfhpo import Fidelity
from mfhpo_ray import IISESearch, RCUCBSearch, ZoomingRCUCBSearch
from tests.ray.searchers.searching import ARMS, SPACE, Memory, make


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
    with pytest.raises(ValueError, match="which are not the 1 of the saved race"):
        _restored(arms, others)


def test_a_journal_of_other_arms_is_refused():
    search, journal = make(), Memory()
    search.connect(journal)
    search.suggest("a")
    search.on_trial_complete("a", {"loss": 0.1})
    other = make(arms=[{"x": arm["x"] / 2 + 0.01} for arm in ARMS])
    with pytest.raises(ValueError, match="in the experiment's storage: restore the search that"):
        other.connect(journal)


@pytest.fixture
def again():
    search, again = make(), make()
    search.set_max_concurrency(1)
    search.suggest("a")
    again.set_state(search.get_state())
    return again


def test_a_trial_is_waited_for_if_it_is_run_again(again):
    again.connect(Memory())
    again.note_resources("a", {"CPU": 1})
    assert again.suggest("b") is None
    again.on_trial_complete("a", {"loss": 0.5})
    assert isinstance(again.suggest("b"), dict)


def test_a_trial_that_is_not_run_again_is_not_waited_for(again):
    again.connect(Memory())
    assert isinstance(again.suggest("b"), dict)


def test_without_the_scheduler_what_is_waited_for_is_said_once(again, caplog):
    with caplog.at_level(logging.WARNING, logger="mfhpo_ray"):
        assert again.suggest("b") is again.suggest("b") is None
    [message] = caplog.messages
    assert message.startswith("1 trials of the saved experiment are w")


def test_a_stop_of_the_run_config_is_warned_of():
    search = IISESearch("epochs", 3, seed=0)
    with pytest.warns(UserWarning, match=r"RunConfig\(stop=\{'training_iteration': 3\}\) may end"):
        search.set_search_properties("loss", "min", dict(SPACE), stop={"training_iteration": 3})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.set_search_properties("loss", "min", dict(SPACE), stop={}, num_samples=-1)


def test_a_race_of_a_single_trial_is_warned_of():
    search = IISESearch("epochs", 3, seed=0)
    with pytest.warns(UserWarning, match=r"num_samples=1 .* give TuneConfig\(num_samples=-1\)"):
        search.set_search_properties("loss", "min", dict(SPACE), stop={}, num_samples=1)


def test_a_limit_beside_those_of_the_search_is_refused():
    for search in (RCUCBSearch(ARMS, limits=[1, 2]), ZoomingRCUCBSearch(ARMS, 5.0)):
        with pytest.raises(ValueError, match="limit=60 has no part: each trial has the limit"):
            search.scheduler(limit=60)


def test_prices_need_the_scheduler_which_tells_what_trials_hold():
    fidelity = Fidelity("epochs", levels=[1, 3, 9], costs="measured")
    told, alone = (make(fidelity=fidelity, prices={"CPU": 1}) for _ in range(2))
    for search in (told, alone):
        search.suggest("a")
    told.note_resources("a", {"CPU": 2})
    told.on_trial_complete("a", {"loss": 0.5, "time_total_s": 2.0})
    assert told.recommendation().cost == 4.0
    with pytest.raises(RuntimeError, match="prices"):
        alone.suggest("b")
