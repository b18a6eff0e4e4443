import math
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from mfhpo_optuna import draw_arms
from mfhpo_optuna.study.distributions import from_unit, kind_of, place_of, value_at

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
def values(draw):
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
    "distribution", [FloatDistribution(0.1, 3.0), IntDistribution(1, 9), COLOURS]
)
def test_every_place_has_a_value_of_the_distribution(distribution):
    for place in (-0.5, 0.0, 0.3, 1.0 - 1e-16, 1.0, 1.7):
        value = value_at(max(place, 0.0) if distribution is COLOURS else place, distribution)
        assert distribution._contains(distribution.to_internal_repr(value))


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


# Numbers in [0, 1) become values; hypercubes of them are stratified.

UNITS = st.floats(0.0, 1.0, exclude_max=True)
CHOICES = st.lists(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    min_size=1,
    max_size=8,
    unique_by=repr,
)


HUGE, TINY = st.floats(-1e300, 1e300), st.floats(1e-300, 1e300)
DISTRIBUTIONS = st.one_of(
    st.builds(
        lambda low, step, n: IntDistribution(low, low + step * n, step=step),
        *(st.integers(-(10**9), 10**9), st.integers(1, 7), st.integers(0, 10**6)),
    ),
    st.builds(
        lambda low, n: IntDistribution(low, low + n, log=True),
        *(st.integers(1, 10**6), st.integers(0, 10**9)),
    ),
    st.tuples(HUGE, HUGE).map(lambda ends: FloatDistribution(*sorted(ends))),
    st.tuples(TINY, TINY).map(lambda ends: FloatDistribution(*sorted(ends), log=True)),
    st.builds(
        lambda low, step, n: FloatDistribution(low / 10, low / 10 + step * n, step=step),
        *(st.integers(-1000, 1000), st.sampled_from([0.001, 0.1, 0.25, 1.0, 3.0])),
        st.integers(0, 1000),
    ),
    CHOICES.map(CategoricalDistribution),
)


@pytest.mark.filterwarnings("ignore:The distribution is specified by")
@settings(max_examples=30, deadline=None)
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
    space = {"a": FloatDistribution(-3.0, 5.0), "b": FloatDistribution(1e-5, 1e-1, log=True)}
    arms = draw_arms(space, n, seed)
    assert len(arms) == n
    units = {
        "a": [(arm["a"] + 3.0) / 8.0 for arm in arms],
        "b": [math.log(arm["b"] / 1e-5) / math.log(1e4) for arm in arms],
    }
    for values in units.values():
        for position, unit in enumerate(sorted(values)):
            assert position / n - 1e-9 <= unit <= (position + 1) / n + 1e-9


@pytest.mark.parametrize(
    ("space", "size"),
    [
        ({"a": IntDistribution(1, 4, log=True), "b": CategoricalDistribution("xyz")}, 12),
        ({"a": IntDistribution(0, 6, step=3), "b": FloatDistribution(2.0, 2.0)}, 3),
        ({name: FloatDistribution(0, 1, step=0.5) for name in "abc"}, 27),
    ],
    ids=["log-int", "stepped-int", "stepped-float"],
)
@pytest.mark.parametrize("seed", range(2))
def test_a_finite_space_that_fits_is_returned_whole(space, size, seed):
    arms = draw_arms(space, 32, seed)
    assert len({tuple(arm.items()) for arm in arms}) == len(arms) == size
