"""Arms of a search: given, or drawn from a space."""

import json

import numpy as np
import pytest
from ray import tune

from mfhpo_ray.searchers.arms import Arms
from tests.ray.searchers.searching import SPACE, make


def test_given_arms_are_raced_as_they_are():
    arms = [{"x": np.float64(0.5), "hidden": (32, 32), "act": max}, {"x": np.int64(0), "act": min}]
    search = make(arms=arms)
    config = search.suggest("a")
    assert config["hidden"] == (32, 32)
    assert config["act"] is max
    assert type(config["x"]) is float
    assert type(search.suggest("b")["x"]) is int


def test_given_arms_have_to_cover_the_space():
    space = {"x": tune.uniform(0, 1), "model": {"width": tune.choice([1, 2])}, "constant": 3}
    first = {"x": 0.5, "model": {"width": 1}}
    search = make(arms=[first, {"x": 0.5, "model": {"width": 2}}])
    assert search.set_search_properties(None, None, space)
    with pytest.raises(ValueError, match=r"arms\[1\].* has no 'model/width', which param_space"):
        make(arms=[first, {"x": 0.5}]).set_search_properties(None, None, space)


def test_a_space_of_its_own():
    config = make(arms=3, space={**SPACE, "data": "large"}).suggest("a")
    assert config["data"] == "large"
    assert -1 <= config["x"] <= 1
    # The Tuner may have constants, and the fidelity, but nothing else to draw.
    search, other = (make(arms=3, space={"x": tune.uniform(0, 1)}) for _ in range(2))
    allowed = {"data": "large", "epochs": tune.randint(1, 10)}
    assert search.set_search_properties(None, None, allowed)
    assert not other.set_search_properties(None, None, {"y": tune.uniform(0, 1)})


def test_fidelity_and_seed_do_not_make_arms_different():
    space = {
        "a": tune.choice([1, 2]),
        "epochs": tune.randint(1, 10),
        "seed": tune.randint(0, 10**6),
        "twice": tune.sample_from(lambda config: 2 * config["epochs"]),
    }
    search = make(arms=32, space=space)
    search.suggest("a")
    assert len(search._arms) == 2
    assert search._arms.config(0) == {"a": 1, "twice": 18}  # at the target


def test_objects_are_shown_as_what_they_are():
    """Tune puts placeholders in the place of objects, and the objects into the trials."""
    search = make(arms=4)
    space = {"act": tune.choice([("__ref_ph", "aaaaaaaa"), ("__ref_ph", "bbbbbbbb")])}
    assert search.set_search_properties(None, None, space)
    for number in range(2):
        config = search.suggest(str(number))
        assert config["act"][0] == "__ref_ph"  # Tune replaces it
        what = {"aaaaaaaa": max, "bbbbbbbb": min}[config["act"][1]]
        loss = 0.1 if what is max else 0.9
        search.on_trial_complete(str(number), {"loss": loss, "config/act": what})
    assert search.recommendation().config == {"act": max}


def test_arms_are_saved_with_what_is_shown_of_them():
    arms = Arms([{"act": ("__ref_ph", "1")}])
    arms.learn(0, {"config/act": max})
    again = Arms.from_state_dict(json.loads(json.dumps(arms.state_dict())))
    assert again.shown(0) == {"act": max}
    assert again.config(0) == {"act": ("__ref_ph", "1")}
    assert not again.is_known(1)
    assert again.equal_to({"act": ("__ref_ph", "1")}) == 0
