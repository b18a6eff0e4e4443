"""Arms of a search: given, drawn from a space, or drawn by another searcher."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import optuna
import pytest
from ray import tune
from ray.tune.search import Searcher
from ray.tune.search.optuna import OptunaSearch

from mfhpo_ray import IISESearch
from mfhpo_ray.searchers.arms import Arms
from tests.ray.searchers.searching import SPACE, Memory, bowl, make, run

# Given.


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
    search = make(arms=[{"x": 0.5, "model": {"width": 1}}, {"x": 0.5, "model": {"width": 2}}])
    assert search.set_search_properties(None, None, space)
    with pytest.raises(ValueError, match=r"arms\[1\].* has no 'model/width', which param_space"):
        make(arms=[{"x": 0.5, "model": {"width": 1}}, {"x": 0.5}]).set_search_properties(
            None, None, space
        )


# Drawn from a space.


def test_a_space_of_its_own():
    search = make(arms=3, space={**SPACE, "data": "large"})
    config = search.suggest("a")
    assert config["data"] == "large"
    assert -1 <= config["x"] <= 1
    # The Tuner may have constants, and the fidelity, but nothing else to draw.
    assert make(arms=3, space={"x": tune.uniform(0, 1)}).set_search_properties(
        None, None, {"data": "large", "epochs": tune.randint(1, 10)}
    )
    assert not make(arms=3, space={"x": tune.uniform(0, 1)}).set_search_properties(
        None, None, {"y": tune.uniform(0, 1)}
    )


def test_fidelity_and_seed_do_not_make_arms_different():
    space = {
        "a": tune.choice([1, 2]),
        "epochs": tune.randint(1, 10),
        "seed": tune.randint(0, 10**6),
        "twice": tune.sample_from(lambda config: 2 * config["epochs"]),
    }
    search = make(arms=32, space=space)
    search.suggest("a")
    assert len(search._known_arms()) == 2
    assert search._known_arms().config(0) == {"a": 1, "twice": 18}  # at the target


def test_a_space_that_leaves_nothing_open_is_refused():
    with pytest.raises(ValueError, match=r"arms=8 are to be drawn, but there is nothing .*'data'"):
        make(arms=8, space={"data": 3, "epochs": tune.randint(1, 10)}).suggest("a")
    with pytest.raises(ValueError, match="there is nothing to draw from"):
        make(arms=8).suggest("a")


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


# Drawn by another searcher.


class Counting(Searcher):
    def __init__(self, most: int = 100, every: int = 1, repeat: int = 1) -> None:
        super().__init__(metric="loss", mode="min")
        self.most, self.every, self.repeat = most, every, repeat
        self.asked = 0
        self.drawn = 0
        self.told: list[tuple[str, float | None, bool]] = []

    def suggest(self, trial_id: str) -> Any:
        self.asked += 1
        if self.drawn >= self.most:
            return self.FINISHED
        if self.asked % self.every:
            return None
        self.drawn += 1
        return {"x": 0.1 * ((self.drawn - 1) // self.repeat), "epochs": 77}

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
        self.told.append((trial_id, None if result is None else result["loss"], error))

    def save(self, checkpoint_path: str) -> None:
        with open(checkpoint_path, "w") as stream:
            json.dump([self.asked, self.drawn, self.told], stream)

    def restore(self, checkpoint_path: str) -> None:
        with open(checkpoint_path) as stream:
            self.asked, self.drawn, told = json.load(stream)
        self.told = [(name, loss, error) for name, loss, error in told]


def test_another_searcher_draws_each_arm_when_it_is_first_pulled():
    arms = Counting()
    search = make(arms=4, arm_search=arms, estimated_bias="eliminate")
    first = search.suggest("a")
    assert arms.drawn == 1
    assert first["epochs"] == 1  # not what the other searcher said
    search.on_trial_complete("a", {"loss": 0.25})
    assert [(loss, error) for _, loss, error in arms.told] == [(0.25, False)]
    run(search)
    assert arms.drawn == 4
    assert len(arms.told) == 4  # the first value of each, no more
    assert search.recommendation().config == {"x": 0.0}


def test_a_searcher_that_has_none_now_is_asked_again():
    arms = Counting(every=3)
    search = make(arms=4, arm_search=arms)
    assert [search.suggest(str(number)) is None for number in range(3)] == [True, True, False]


def test_a_searcher_that_ends_early_gives_fewer_arms():
    arms = Counting(most=2)
    search = make(arms=8, arm_search=arms)
    run(search)
    answer = search.recommendation()
    assert answer.certified
    assert answer.compared == 2
    assert set(answer.survivors) <= {a for a in range(8) if search._known_arms().is_known(a)}
    with pytest.raises(ValueError, match="has no configuration to begin with"):
        make(arms=8, arm_search=Counting(most=0)).suggest("a")


def test_equal_draws_are_merged_with_a_warning():
    search = make(arms=6, arm_search=Counting(repeat=2))
    with pytest.warns(UserWarning, match=r"were drawn equal, \{'x': 0.0\}: they are merged"):
        run(search)
    assert search.recommendation().compared == 3


@pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")
def test_a_searcher_is_told_that_an_arm_has_no_value():
    arms = Counting()
    search = make(arms=3, arm_search=arms)
    run(search, lambda config: math.nan if config["x"] == 0.0 else bowl(config))
    assert sorted((loss is None, error) for _, loss, error in arms.told) == [
        (False, False),
        (False, False),
        (True, True),
    ]


def test_optuna_draws_from_the_space_of_the_tuner():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=0, n_startup_trials=4)
    search = IISESearch("epochs", 12, arm_search=OptunaSearch(sampler=sampler), epsilon=0.1, seed=0)
    assert search.set_search_properties("loss", "min", {**SPACE, "data": 3})
    run(search)
    drawn = [search._known_arms().config(arm) for arm in range(12)]
    assert all(set(config) == {"x"} for config in drawn)
    assert search.recommendation().certified
    assert abs(search.recommendation().config["x"]) < 0.3


def test_arms_that_another_searcher_had_drawn_before_a_restart_are_not_forgotten():
    straight = make(arms=8, arm_search=Counting())
    run(straight)
    search = make(arms=8, arm_search=Counting())
    journal = Memory()
    search.connect(journal)
    for number in range(2):
        search.on_trial_complete(str(number), {"loss": bowl(search.suggest(str(number)))})
    snapshot = json.loads(json.dumps(search.get_state()))
    for number in range(2, 6):
        search.on_trial_complete(str(number), {"loss": bowl(search.suggest(str(number)))})
    once = make(arms=8, arm_search=Counting())
    once.set_state(snapshot)
    once.connect(journal)
    arms = Counting()
    again = make(arms=8, arm_search=arms)
    again.set_state(json.loads(json.dumps(once.get_state())))  # and killed once more
    again.connect(journal)
    run(again, prefix="later")
    assert [again._known_arms().config(arm) for arm in range(8)] == [
        straight._known_arms().config(arm) for arm in range(8)
    ]
    assert again.recommendation().compared == 8
    assert again.recommendation().certified
    assert len(arms.told) == arms.drawn == 8
    assert not any(error for _, _, error in arms.told)


# As they are written.


def test_arms_are_saved_with_what_is_shown_of_them():
    arms = Arms([{"act": ("__ref_ph", "1")}, None])
    arms.learn(0, {"config/act": max})
    again = Arms.from_state_dict(json.loads(json.dumps(arms.state_dict())))
    assert again.shown(0) == {"act": max}
    assert again.config(0) == {"act": ("__ref_ph", "1")}
    assert again.unknown == [1]
    assert again.equal_to({"act": ("__ref_ph", "1")}) == 0
