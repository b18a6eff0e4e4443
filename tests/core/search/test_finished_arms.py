import math

import numpy as np
import pytest

from mfhpo.problem import Observation, Pull
from mfhpo.search import BudgetedSearch, HalvingSearch, ModelSearch
from tests.core.search.played import plane, valley


def from_scratch(search):
    """What is kept up to date, worked out of all arms."""
    valued = set().union(*search._values)
    return (
        sorted(search._values[search.target].keys() - search._out - search._merged),
        search._points.keys() - valued,
        {arm for arm, _, _ in search._history} - search._points.keys(),
    )


def kept(search):
    return search.finished_arms(), search._without_value, search._unknown


@pytest.mark.parametrize("kind", [ModelSearch, HalvingSearch])
def test_they_are_known_without_looking_through_all_arms(kind):
    rng = np.random.default_rng(0)
    search = kind(costs=(1.0, 3.0, 9.0))
    left = 0
    for _ in range(400):
        arm, level = int(rng.integers(40)), int(rng.integers(3))
        what = rng.random()
        if what < 0.3:
            search.describe(arm, {"x": float(rng.random())})
        elif what < 0.6:
            search.tell(Pull(arm, level), Observation(float(rng.random())))
        elif what < 0.95:
            search.tell(Pull(arm, level), Observation(math.nan))
        else:
            search.merge(arm)
        assert kept(search) == from_scratch(search)
        left = max(left, len(search._out & search._values[search.target].keys()))
    assert left > 0  # some had values at the target before they left


def race_with_values(n):
    race = BudgetedSearch(ModelSearch((1.0,), initial=4), budget=1000.0)
    race.search.space = plane()
    rng = np.random.default_rng(0)
    for arm in range(n):
        point = {"x": rng.random(), "y": rng.random()}
        race.search.describe(arm, point)
        race.tell(Pull(arm, 0), Observation(valley(point, 2)))
    return race


def test_an_arm_that_was_withdrawn_is_neither_leader_nor_contender():
    race = race_with_values(8)
    leader = race.recommend().arm
    race.withdraw(leader)
    assert leader not in race.search.finished_arms()
    assert race.recommend().arm != leader
    assert leader not in race.search.contenders(8)
