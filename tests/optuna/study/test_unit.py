"""Numbers in [0, 1) become values of any distribution; hypercubes of them are stratified."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from mfhpo_optuna import draw_arms
from mfhpo_optuna.study.places import from_unit

UNITS = st.floats(0.0, 1.0, exclude_max=True)
CHOICES = st.lists(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    min_size=1,
    max_size=8,
    unique_by=repr,
)


@st.composite
def ints(draw, largest=10**9):
    low = draw(st.integers(-largest, largest))
    step = draw(st.integers(1, 7))
    return IntDistribution(low, low + step * draw(st.integers(0, 10**6)), step=step)


@st.composite
def log_ints(draw):
    low = draw(st.integers(1, 10**6))
    return IntDistribution(low, low + draw(st.integers(0, 10**9)), log=True)


@st.composite
def floats(draw):
    low, high = sorted(draw(st.tuples(*[st.floats(-1e300, 1e300)] * 2)))
    return FloatDistribution(low, high)


@st.composite
def log_floats(draw):
    low, high = sorted(draw(st.tuples(*[st.floats(1e-300, 1e300)] * 2)))
    return FloatDistribution(low, high, log=True)


@st.composite
def stepped_floats(draw):
    low = draw(st.integers(-1000, 1000)) / 10
    step = draw(st.sampled_from([0.001, 0.1, 0.25, 1.0, 3.0]))
    return FloatDistribution(low, low + step * draw(st.integers(0, 1000)), step=step)


DISTRIBUTIONS = st.one_of(
    ints(),
    log_ints(),
    floats(),
    log_floats(),
    stepped_floats(),
    CHOICES.map(CategoricalDistribution),
)


@pytest.mark.filterwarnings("ignore:The distribution is specified by")
@settings(max_examples=60, deadline=None)
@example(0.0, IntDistribution(1, 9, log=True))
@example(math.nextafter(1.0, 0.0), IntDistribution(1, 9, log=True))
@given(UNITS, DISTRIBUTIONS)
def test_value_is_in_the_distribution(unit, distribution):
    value = from_unit(unit, distribution)
    assert distribution._contains(distribution.to_internal_repr(value))
    if isinstance(distribution, IntDistribution):
        assert type(value) is int
    if isinstance(distribution, FloatDistribution):
        assert type(value) is float
        assert distribution.low <= value <= distribution.high


@given(st.integers(1, 12), st.integers(1, 7), st.integers(-20, 20), st.integers(1, 9))
def test_finite_marginals_are_uniform(size, step, low, repeats):
    n = size * repeats
    units = [(i + 0.5) / n for i in range(n)]
    for distribution in (
        IntDistribution(low, low + step * (size - 1), step=step),
        FloatDistribution(low, low + step * 0.5 * (size - 1), step=step * 0.5),
        CategoricalDistribution(range(size)),
    ):
        counts = Counter(from_unit(unit, distribution) for unit in units)
        assert set(counts.values()) == {repeats}
        assert len(counts) == size


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20))
def test_log_int_marginal_has_the_mass_of_its_rounding_interval(low, extra):
    high, n = low + extra, 5000
    distribution = IntDistribution(low, high, log=True)
    counts = Counter(from_unit((i + 0.5) / n, distribution) for i in range(n))
    whole = math.log((high + 0.5) / (low - 0.5))
    for value in range(low, high + 1):
        mass = math.log((value + 0.5) / (value - 0.5)) / whole
        assert abs(counts[value] - n * mass) <= 1.5


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_drawn_arms_are_stratified_in_every_parameter(n, seed):
    space = {
        "a": FloatDistribution(-3.0, 5.0),
        "b": FloatDistribution(1e-5, 1e-1, log=True),
    }
    arms = draw_arms(space, n, seed)
    assert len(arms) == n
    units = {
        "a": [(arm["a"] + 3.0) / 8.0 for arm in arms],
        "b": [math.log(arm["b"] / 1e-5) / math.log(1e4) for arm in arms],
    }
    for values in units.values():
        for position, unit in enumerate(sorted(values)):
            assert position / n - 1e-9 <= unit <= (position + 1) / n + 1e-9


def test_draws_repeat_with_the_seed_and_only_with_it():
    space = {"x": FloatDistribution(0, 1), "y": IntDistribution(1, 1000, log=True)}
    assert draw_arms(space, 8, seed=3) == draw_arms(space, 8, seed=3)
    assert draw_arms(space, 8, seed=3) != draw_arms(space, 8, seed=4)


@pytest.mark.parametrize(
    "space",
    [
        {"a": IntDistribution(1, 4, log=True), "b": CategoricalDistribution("xyz")},
        {"a": IntDistribution(0, 6, step=3), "b": FloatDistribution(2.0, 2.0)},
        {name: FloatDistribution(0, 1, step=0.5) for name in "abc"},
    ],
    ids=["log-int", "stepped-int", "stepped-float"],
)
@pytest.mark.parametrize("seed", range(2))
def test_a_finite_space_that_fits_is_returned_whole(space, seed):
    sizes = {"a": 3, "b": 1, "c": 1}
    if isinstance(space["a"], IntDistribution):
        sizes |= {"a": 4, "b": 3} if space["a"].log else {}
    else:
        sizes = dict.fromkeys("abc", 3)
    arms = draw_arms(space, 32, seed)
    assert len({tuple(arm.items()) for arm in arms}) == len(arms) == math.prod(sizes.values())
