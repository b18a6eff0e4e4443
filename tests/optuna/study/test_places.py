"""Between Optuna's values and places from 0 to 1: worked out by hand, and there and back again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mfhpo.search import Numeric, OneOf
from mfhpo_optuna.study.places import kind_of, place_of, point_of, value_at

COLOURS = CategoricalDistribution(["red", "green", None])


@pytest.mark.parametrize(
    ("value", "distribution", "place"),
    [
        (2.0, FloatDistribution(1.0, 5.0), 0.25),
        (1.0, FloatDistribution(1.0, 5.0), 0.0),
        (5.0, FloatDistribution(1.0, 5.0), 1.0),
        (0.1, FloatDistribution(0.001, 10.0, log=True), 0.5),
        # Each of three steps has a third of the range, and lies in the middle of it.
        (0.0, FloatDistribution(0.0, 1.0, step=0.5), 1 / 6),
        (0.5, FloatDistribution(0.0, 1.0, step=0.5), 1 / 2),
        (1.0, FloatDistribution(0.0, 1.0, step=0.5), 5 / 6),
        (0, IntDistribution(0, 1), 1 / 4),
        (1, IntDistribution(0, 1), 3 / 4),
        (6, IntDistribution(2, 8, step=2), 5 / 8),
        (1, IntDistribution(1, 8, log=True), math.log(2.0) / math.log(17.0)),
        ("red", COLOURS, 0.0),
        (None, COLOURS, 2.0),
    ],
)
def test_places_worked_out_by_hand(value, distribution, place):
    assert place_of(value, distribution) == pytest.approx(place)
    assert value_at(place_of(value, distribution), distribution) == pytest.approx(value)


@st.composite
def values(draw: st.DrawFn) -> tuple[object, BaseDistribution]:
    kind = draw(st.sampled_from(["float", "log", "stepped", "int", "log int", "choice"]))
    if kind == "choice":
        n = draw(st.integers(2, 9))
        return draw(st.integers(0, n - 1)), CategoricalDistribution(range(n))
    if kind in ("float", "log"):
        low = draw(st.floats(1e-6, 1e3))
        high = low * draw(st.floats(1.001, 1e6))
        return draw(st.floats(low, high)), FloatDistribution(low, high, log=kind == "log")
    low = draw(st.integers(1, 50))
    if kind == "log int":
        high = low + draw(st.integers(1, 1000))
        return draw(st.integers(low, high)), IntDistribution(low, high, log=True)
    step, steps = draw(st.integers(1, 5)), draw(st.integers(1, 40))
    chosen = draw(st.integers(0, steps))
    if kind == "int":
        return low + chosen * step, IntDistribution(low, low + steps * step, step=step)
    unit = step / 8.0  # exact in binary, so that the ends of ranges are, too
    return (low + chosen * unit, FloatDistribution(low, low + steps * unit, step=unit))


@settings(max_examples=100)
@given(values())
def test_there_and_back_again(value_and_distribution):
    value, distribution = value_and_distribution
    place = place_of(value, distribution)
    if isinstance(distribution, CategoricalDistribution):
        assert place in range(len(distribution.choices))
    else:
        assert 0.0 <= place <= 1.0
    assert value_at(place, distribution) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    "distribution",
    [
        FloatDistribution(0.1, 3.0),
        FloatDistribution(0.1, 3.0, log=True),
        FloatDistribution(0.1, 3.0, step=0.1),
        IntDistribution(1, 9),
        IntDistribution(1, 9, log=True),
        COLOURS,
    ],
)
@pytest.mark.parametrize("place", [-0.5, 0.0, 0.3, 1.0 - 1e-16, 1.0, 1.7])
def test_every_place_has_a_value_of_the_distribution(distribution, place):
    place = max(place, 0.0) if distribution is COLOURS else place
    value = value_at(place, distribution)
    assert distribution._contains(distribution.to_internal_repr(value))


def test_kinds():
    assert kind_of(FloatDistribution(0.0, 1.0)) == Numeric()
    assert kind_of(IntDistribution(1, 3)) == Numeric((1 / 6, 0.5, 5 / 6))
    assert kind_of(FloatDistribution(0.0, 1.0, step=0.5)) == Numeric((1 / 6, 0.5, 5 / 6))
    assert kind_of(COLOURS) == OneOf(3)


@pytest.mark.parametrize(
    ("many", "n"),
    [
        (IntDistribution(1, 500), 500),
        (IntDistribution(1, 100_000), 1000),
        # Small whole numbers are all among them: of large ones, steps are finer than 1 / 999.
        (IntDistribution(1, 100_000, log=True), None),
        (FloatDistribution(0.0, 10.0, step=0.001), 1000),
    ],
)
def test_of_many_values_as_many_are_told_as_matter(many, n):
    """The ends among them, for there the best values often are, and each its own value's place."""
    places = kind_of(many).places
    values = [value_at(place, many) for place in places]
    assert (values[0], values[-1]) == (many.low, many.high)
    assert [place_of(value, many) for value in values] == list(places)
    assert len(places) == n if n else values[:40] == list(range(1, 41))
    assert len(places) <= 1000


@pytest.mark.parametrize(
    "single",
    [FloatDistribution(2.0, 2.0), IntDistribution(3, 3), CategoricalDistribution(["only"])],
)
def test_what_has_one_value_is_nothing_to_choose(single):
    assert kind_of(single) is None
    value = value_at(0.0, single)
    assert point_of({"a": value, "x": 0.25}, {"a": single, "x": FloatDistribution(0.0, 1.0)}) == {
        "x": 0.25
    }


def test_a_point_has_what_was_asked_for_alone():
    """Parameters that are known, but not asked for here, and the reverse, are left out."""
    distributions = {"x": FloatDistribution(0.0, 4.0), "late": IntDistribution(0, 1)}
    assert point_of({"x": 1.0, "other": 3}, distributions) == {"x": 0.25}
