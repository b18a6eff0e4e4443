"""What a model sees of Tune's spaces, and the configurations that come of its places."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray import tune

from mfhpo.search import Numeric, OneOf
from mfhpo_ray.searchers.candidates import Parameters, place_of, value_at

NUMBERS = {
    "uniform": tune.uniform(-2, 3),
    "loguniform": tune.loguniform(1e-3, 10),
    "quniform": tune.quniform(-1, 1, 0.25),
    "qloguniform": tune.qloguniform(0.5, 32, 0.5),
    "randn": tune.randn(2, 3),
    "qrandn": tune.qrandn(0, 2, 0.5),
    "randint": tune.randint(-3, 4),
    "lograndint": tune.lograndint(1, 100),
    "qrandint": tune.qrandint(0, 20, 5),
    "qlograndint": tune.qlograndint(2, 64, 2),
}
EXACT = {"quniform", "randint", "lograndint", "qrandint", "qlograndint", "qloguniform", "qrandn"}


@given(name=st.sampled_from(sorted(NUMBERS)), place=st.floats(0, 1))
def test_a_value_is_where_it_was_placed(name, place):
    domain = NUMBERS[name]
    value = value_at(place, domain)
    again = place_of(value, domain)
    assert 0.0 <= again <= 1.0
    back = value_at(again, domain)
    if name in EXACT:
        assert back == pytest.approx(value, rel=1e-12)
        assert type(back) is type(domain.sample())
    else:
        assert back == pytest.approx(value, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", NUMBERS)
def test_uniform_places_are_distributed_as_tune_draws(name):
    domain = NUMBERS[name]
    ours = np.array([value_at(place, domain) for place in (np.arange(4000) + 0.5) / 4000])
    theirs = np.array(domain.sample(size=4000, random_state=np.random.default_rng(0)))
    grid = np.quantile(ours, [0.05, 0.25, 0.5, 0.75, 0.95])
    # 4000 draws are within .026 of a distribution function with probability .995.
    for point in grid:
        assert abs(np.mean(ours <= point) - np.mean(theirs <= point)) < 0.026


def test_places_by_hand():
    assert place_of(1, tune.lograndint(1, 4)) == pytest.approx(math.log(2) / 2 / math.log(4))
    assert place_of(10, tune.qrandint(0, 20, 5)) == pytest.approx(2.5 / 5)
    assert place_of(2.0, tune.randn(2, 3)) == 0.5
    assert place_of(7, tune.randint(0, 5)) is None
    assert place_of("a", tune.uniform(0, 1)) is None
    assert value_at(0.999, tune.quniform(0, 1, 0.5)) == 1.0


NESTED = {
    "model": tune.choice(
        [
            {"kind": "svm", "C": tune.loguniform(0.1, 10), "kernel": tune.choice(["rbf", "poly"])},
            {"kind": "net", "layers": [tune.randint(1, 9), tune.randint(1, 9)]},
            {"kind": "net", "layers": [tune.randint(1, 9)]},
            "linear",
        ]
    ),
    "step": tune.choice([tune.uniform(0, 1), "auto"]),
    "train": {"batch": tune.grid_search([16, 32]), "shuffle": True},
    "pair": (tune.uniform(0, 1), 2),
}


def test_what_is_open_below_choices_has_names_and_conditions():
    parameters = Parameters(NESTED)
    layers = Numeric(tuple((index + 0.5) / 8 for index in range(8)))
    assert parameters.kinds == {
        "model": OneOf(4),
        "model[0]/C": Numeric(),
        "model[0]/kernel": OneOf(2),
        "model[1]/layers/0": layers,
        "model[1]/layers/1": layers,
        "model[2]/layers/0": layers,
        "step": OneOf(2),
        "step[0]": Numeric(),
        "train/batch": OneOf(2),
        "pair/0": Numeric(),
    }
    point = {"model": 2.0, "model[2]/layers/0": 0.3, "step": 1.0, "train/batch": 0.0, "pair/0": 0.5}
    config, own = parameters.draw(point, key=[0])
    assert config == {
        "model": {"kind": "net", "layers": [3]},
        "step": "auto",
        "train": {"batch": 16, "shuffle": True},
        "pair": (0.5, 2),
    }
    assert own == {**point, "model[2]/layers/0": 2.5 / 8}


@given(st.integers(0, 10_000))
def test_what_is_drawn_has_a_place_and_comes_back_from_it(seed):
    parameters = Parameters(NESTED)
    config, point = parameters.draw(None, key=[seed])
    assert parameters.draw(None, key=[seed]) == (config, point)
    assert set(point) <= set(parameters.kinds)
    again, place = parameters.draw(point, key=[0])
    assert place == pytest.approx(point)
    if isinstance(config["model"], dict) and "layers" in config["model"]:
        assert again["model"] == config["model"]
    assert again["train"] == config["train"]
    assert again["pair"] == pytest.approx(config["pair"])
