import numpy as np
import pytest
from scipy.stats import loguniform, norm, poisson, randint, rv_discrete, uniform

from mfhpo.experiment import DistributionSpace
from mfhpo.search import Numeric, OneOf

HALVES = rv_discrete(values=([0.5, 1.0, 2.5], [0.3, 0.3, 0.4]))


def drawn(part, place, seed=0):
    params, point = DistributionSpace({"a": part}).draw(
        None if place is None else {"a": place}, [seed]
    )
    return params["a"], point.get("a")


@pytest.mark.parametrize(
    ("part", "place", "value"),
    [
        (loguniform(1, 100), 0.5, 10.0),
        (uniform(2, 3), 0.0, 2.0),
        (uniform(2, 3), 1.0, 5.0),
        (norm(1, 2), 0.5, 1.0),
        (randint(1, 5), 0.0, 1),
        (randint(1, 5), 0.3, 2),
        (randint(1, 5), 1.0, 4),
        (HALVES, 0.1, 0.5),
        (HALVES, 0.5, 1.0),
        (HALVES, 1.0, 2.5),
        ([1, 10, 100, 1000], 0.3, 10),
        ([1, 10, 100, 1000], 1.0, 1000),
        (["x", "y", None], 2.0, None),
        ([True, False], 1.0, False),
        (np.array([3, 1]), 1.0, 1),
    ],
)
def test_value_at_a_place(part, place, value):
    found, _ = drawn(part, place)
    assert found == pytest.approx(value, abs=1e-6)
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "part",
    [loguniform(1, 100), norm(1, 2), randint(1, 5), poisson(3), HALVES, [1, 10, 100], ["x", "y"]],
)
def test_place_of_a_value_gives_the_value(part):
    for seed in range(20):
        value, place = drawn(part, None, seed)
        again, same = drawn(part, place)
        assert again == pytest.approx(value) if not isinstance(value, str) else again == value
        assert same == pytest.approx(place)


def test_kinds():
    parameters = DistributionSpace({"a": [1, 2.5, 9], "b": [2, 1], "c": ["x"], "d": randint(0, 2)})
    assert parameters.kinds == {
        "a": Numeric((1 / 6, 0.5, 5 / 6)), "b": OneOf(2), "d": Numeric((0.25, 0.75))
    }  # fmt: skip
    assert len(DistributionSpace({"a": poisson(3)}).kinds["a"].places) > 10
    assert DistributionSpace({"a": randint(3, 4)}).kinds == {}
    halves = DistributionSpace({"a": HALVES})
    assert halves.kinds["a"].places == pytest.approx((0.15, 0.45, 0.8))


def test_draws_follow_the_distribution():
    parameters = DistributionSpace({"a": loguniform(1, 100), "b": ["x", "y", "y"], "c": poisson(3)})

    settings = [parameters.draw(None, [seed])[0] for seed in range(2000)]
    # Five standard errors.
    assert np.mean([one["a"] < 10 for one in settings]) == pytest.approx(0.5, abs=0.06)
    assert np.mean([one["b"] == "x" for one in settings]) == pytest.approx(1 / 3, abs=0.06)
    assert np.mean([one["c"] for one in settings]) == pytest.approx(3.0, abs=0.2)


def test_alternatives():
    parameters = DistributionSpace([{"a": [1, 2], "b": ["x"]}, {"a": uniform(0, 1)}])
    assert parameters.names == {"a", "b"}
    assert parameters.kinds["space"] == OneOf(2)
    params, point = parameters.draw({"space": 1.0, "space[0].a": 0.9}, [0])
    assert set(params) == {"a"}
    assert set(point) == {"space", "space[1].a"}
