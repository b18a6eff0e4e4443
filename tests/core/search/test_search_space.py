import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.search import Numeric, OneOf, SearchSpace

HALF = np.sqrt(0.5)

numbers = st.sampled_from([Numeric(), Numeric((0.0, 0.35, 0.9)), Numeric((0.5,))])
parameters = st.one_of(numbers, st.integers(1, 7).map(OneOf))
spaces = st.dictionaries(st.sampled_from("abcdef"), parameters, min_size=1).map(SearchSpace)
inside = st.floats(0.0, 1.0, exclude_max=True)


def cubes(space):
    width = len(space.parameters)
    return st.lists(st.lists(inside, min_size=width, max_size=width), min_size=1, max_size=6)


def test_features_by_hand():
    space = SearchSpace({"x": Numeric(), "kind": OneOf(3), "y": Numeric()})
    points = [{"x": 0.0, "kind": 2, "y": 1.0}, {"kind": 0, "x": 0.25}, {"y": 0.75}, {}]
    assert space.n_features == 5
    expected = [
        [0.0, 0.0, 0.0, HALF, 1.0],
        [0.25, HALF, 0.0, 0.0, 0.5],
        [0.5, 0.0, 0.0, 0.0, 0.75],
        [0.5, 0.0, 0.0, 0.0, 0.5],
    ]
    assert space.features(points) == pytest.approx(np.array(expected))


@given(st.data())
def test_features_of_a_place_are_those_of_its_configuration(data):
    space = data.draw(spaces)
    cube = np.array(data.draw(cubes(space)))
    points = [space.at(place) for place in cube]
    assert np.array_equal(space.features(points), space.cube_features(cube))


@given(st.data())
def test_a_configuration_comes_back_from_its_place(data):
    space = data.draw(spaces)
    point = space.at(np.array(data.draw(cubes(space))[0]))
    place = space.place(point, np.random.default_rng(0))
    assert space.at(place) == point
    assert ((place >= 0.0) & (place < 1.0)).all()


def test_places_in_between_are_none():
    whole = Numeric((0.1, 0.3, 0.5, 0.7, 0.9))
    space = SearchSpace({"layers": whole, "rate": Numeric()})
    cube = np.array([[0.0, 0.0], [0.19, 0.19], [0.21, 0.21], [0.5, 0.5], [1.0, 1.0]])
    expected = [0.1, 0.1, 0.3, 0.5, 0.9]
    assert space.cube_features(cube)[:, 0].tolist() == expected
    assert space.cube_features(cube)[:, 1].tolist() == cube[:, 1].tolist()
    assert [space.at(place)["layers"] for place in cube] == expected
    assert space.at(cube[1])["rate"] == 0.19


NESTED = SearchSpace(
    {"model": OneOf(2), "kernel": OneOf(2), "gamma": Numeric(), "depth": Numeric()}
)
NESTED_POINTS = [
    {"model": 0, "kernel": 0},
    {"model": 0, "kernel": 1, "gamma": 0.1},
    {"model": 1, "depth": 0.7},
    {"model": 1, "depth": 0.2},
]


def nested():
    space = SearchSpace(NESTED.parameters)
    space.learn_conditions(NESTED_POINTS)
    return space


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ([0.1, 0.1, 0.3, 0.4], [HALF, 0, HALF, 0, 0.5, 0.5]),
        ([0.1, 0.9, 0.3, 0.4], [HALF, 0, 0, HALF, 0.3, 0.5]),
        # No kernel, and so no gamma, although the place holds the kernel that has one.
        ([0.9, 0.9, 0.3, 0.4], [0, HALF, 0, 0, 0.5, 0.4]),
        ([0.9, 0.1, 0.3, 0.4], [0, HALF, 0, 0, 0.5, 0.4]),
    ],
)
def test_conditions_may_be_nested(place, expected):
    assert nested().cube_features(np.array([place]))[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        # What nobody has may be of choices that were not seen.
        ([{"model": 0}, {"model": 0}], [0.5, 0.2, 0.2]),
        # A choice that was not seen has every parameter.
        ([{"model": 0}, {"model": 1, "gamma": 0.5}], [0.5, 0.2, 0.2]),
        # What nothing explains applies always: it was there and not under one choice.
        ([{"model": 0}, {"model": 0, "gamma": 0.1}, {"model": 1}], [0.2, 0.2, 0.2]),
        ([{"x": 0.5, "model": 0}, {"x": 0.5, "model": 0, "gamma": 0.1}], [0.2, 0.2, 0.2]),
        # So does a parameter that came up later, which configurations from before lack.
        (
            [{"model": 0}, {"model": 1}, {"model": 0, "gamma": 0.3}, {"model": 1, "gamma": 0.3}],
            [0.2, 0.2, 0.2],
        ),
    ],
)
def test_to_which_choices_a_parameter_applies(points, expected):
    space = SearchSpace({"x": Numeric(), "model": OneOf(3), "gamma": Numeric()})
    space.learn_conditions(points)
    looks = space.cube_features(np.array([[0.5, place, 0.2] for place in (0.1, 0.5, 0.9)]))
    assert looks[:, -1].tolist() == expected


LAYERS = Numeric((0.0, 0.5, 1.0))


def test_a_number_may_be_the_parent():
    space = SearchSpace({"layers": LAYERS, "first": Numeric(), "second": Numeric()})
    space.learn_conditions(
        [{"layers": 0.0, "first": 0.1}, {"layers": 1.0, "first": 0.9, "second": 0.3}]
    )
    places = np.array([[0.0, 0.2, 0.2], [0.4, 0.2, 0.2], [1.0, 0.2, 0.2]])
    # The one in between is nearer to neither; it is taken to have it.
    assert space.cube_features(places).tolist() == [
        [0.0, 0.2, 0.5],
        [0.5, 0.2, 0.2],
        [1.0, 0.2, 0.2],
    ]


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(30, 60))
def test_what_is_asked_for_by_a_few_questions_is_known(seed, depth, n):
    rng = np.random.default_rng(seed)
    names = ["a", "b", "layers"][:depth]
    space = SearchSpace(
        {"a": OneOf(3), "b": OneOf(2), "layers": LAYERS, "x": Numeric(), "gamma": Numeric()}
    )
    wanted = {name: int(rng.integers(2)) for name in names}
    places = rng.random((n + 200, 5))
    points = []
    for place in places:
        point = space.at(place)
        if any((point[name] > 0.0) != bool(wanted[name]) for name in names):
            del point["gamma"]
        points.append(point)
    space.learn_conditions(points[:n])
    right = (space.cube_features(places) == space.features(points)).all(axis=1)
    assert right[:n].all()
    assert right.mean() > 0.8
