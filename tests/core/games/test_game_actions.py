import itertools

import numpy as np
import pytest

from mfhpo.games.actions import Actions
from mfhpo.search import Numeric, OneOf

HALF = np.sqrt(0.5)


def mixed():
    return Actions(
        {
            "left": {"rate": Numeric(), "mode": OneOf(3)},
            "right": {"workers": Numeric((0.0, 0.5, 1.0))},
        }
    )


def test_features_by_hand():
    actions = mixed()
    # .7 of three choices is the last one; .3 is nearest to .5 of the three places.
    features = actions.features(np.array([[0.2, 0.7, 0.3]]))
    assert features == pytest.approx(np.array([[0.2, 0.0, 0.0, HALF, 0.5]]))
    same = actions.space.features([{"workers": 0.5, "rate": 0.2, "mode": 2}])
    assert same == pytest.approx(features)
    actions.own[0] = np.array([[0.2, 0.7], [0.9, 0.1]])
    own = actions.own_features[0]
    assert own == pytest.approx(np.array([[0.2, 0.0, 0.0, HALF], [0.9, HALF, 0.0, 0.0]]))
    assert actions.own_features[1] == pytest.approx(np.array([[0.0], [0.5], [1.0]]))


def test_profiles_are_all_combinations():
    actions = Actions({"a": {"x": Numeric((0.0, 0.4, 1.0))}, "b": {"kind": OneOf(2)}})
    assert actions.shape == (3, 2)
    assert actions.is_finite
    expected = [[x, kind] for x in (0.0, 0.4, 1.0) for kind in (0.25, 0.75)]
    assert actions.profiles.tolist() == expected


def test_too_many_profiles_are_quasi_random_ones():
    players = {f"p{index}": {f"x{index}": Numeric()} for index in range(3)}
    actions = Actions(players, seed=4)
    assert actions.shape is None
    assert not actions.is_finite
    assert actions.profiles.shape == (512, 3)
    assert (actions.profiles >= 0.0).all()
    assert (actions.profiles <= 1.0).all()
    # As even as quasi-random points are: 64 in each eighth of the cube.
    eighths = (actions.profiles >= 0.5) @ np.array([1, 2, 4])
    assert np.bincount(eighths).tolist() == [64] * 8
    assert Actions(players, seed=4).profiles.tolist() == actions.profiles.tolist()
    assert Actions(players, seed=5).profiles.tolist() != actions.profiles.tolist()


def test_actions_around_a_profile():
    actions = mixed()
    finer = actions.around(np.array([0.5, 0.1, 0.5]), step=0.5)
    # A grid of ten rates by three modes; four rates near .5, half a distance away; all modes.
    left = {tuple(row) for row in finer.own[0].round(6).tolist()}
    rates = {0.5, *(round(0.5 + share / 18.0, 6) for share in (-1.0, -0.5, 0.5, 1.0))}
    modes = {0.1, *np.round([1.0 / 6.0, 0.5, 5.0 / 6.0], 6)}
    grid = {tuple(row) for row in actions.own[0].round(6).tolist()}
    assert left - grid == set(itertools.product(rates, modes)) - grid
    # Half of a distance from the middle of three there is nothing else.
    assert {tuple(row) for row in finer.own[1].tolist()} == {(0.0,), (0.5,), (1.0,)}
    assert len(finer.own_features[0]) == len(finer.own[0])
    assert finer.shape == actions.shape
    assert len(actions.own_features[0]) == len(actions.own[0]) == 30
