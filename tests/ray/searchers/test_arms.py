"""Arms of a search: given, or drawn from a space."""

import json

import numpy as np
import pytest
from ray import tune

from tests.ray.searchers.searching import SPACE, experiment_of, make


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
    known = experiment_of(search).runner.configurations
    assert len(known) == 2
    assert known[0] == {"a": 1, "twice": 18}  # at the target


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


def test_what_is_shown_of_arms_is_saved_with_them():
    search = make(arms=[{"act": ("__ref_ph", "1")}])
    search.suggest("a")
    search.on_trial_complete("a", {"loss": 0.1, "config/act": max})
    again = make(arms=[{"act": ("__ref_ph", "1")}])
    again.set_state(json.loads(json.dumps(search.get_state())))
    assert again.recommendation().config == {"act": max}


def test_what_tune_draws_anew_in_each_trial_is_named():
    search = make(arms=[{"x": 0.1}, {"x": 0.2}])
    space = {"b": ("__fn_ph", "1"), "twice": ("__fn_ph", "2"), "data": ("__ref_ph", "3")}
    assert search.set_search_properties(None, None, space)
    for number in range(3):
        config = search.suggest(str(number))
        assert config.keys() == {"x", "epochs", "seed"}
        ran = {"config/b": number, "config/twice": 2 * config["x"], "config/data": max}
        result = {"loss": config["x"], **ran}
        if number < 2:
            search.on_trial_complete(str(number), result)
            assert search.recommendation().config["b"] in (0, 1)
        else:
            with pytest.warns(UserWarning, match=r"param_space\['b'\] is drawn anew in each trial"):
                search.on_trial_complete(str(number), result)
    answer = search.recommendation()
    twice = 2 * answer.config["x"]
    assert answer.config == {"x": twice / 2, "b": "drawn anew in each trial", "twice": twice}
