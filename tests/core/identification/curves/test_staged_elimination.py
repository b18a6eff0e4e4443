import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.identification.curves.curves import PhasedCurves
from mfhpo.identification.curves.declared_bounds import (
    BoundedCurves,
    BoundedElimination,
    checked_bounds,
    gains_of,
)

NAN = math.nan
GAINS = [(0.0, 0.4), (0.0, 0.1), (0.0, 0.0)]


def begin(race, *firsts):
    curves = []
    for arm, first in enumerate(firsts):
        race.enter(arm)
        curves.append(np.array([first, NAN, NAN]))
        race.observe(arm, curves[-1], 0)
    return curves


def show(race, arm, curve, stage, value):
    curve[stage] = value
    return race.observe(arm, curve, stage)


def test_an_arm_that_is_let_go_stays_out_and_its_upper_end_is_remembered():
    race = BoundedElimination(GAINS)
    first, second = begin(race, 0.3, 0.1)
    assert race.let_go() == []
    show(race, 0, first, 1, 0.6)
    assert race.let_go() == [1]  # .5 at best, against .6
    race.enter(1)
    assert race.active == {0}
    assert show(race, 1, second, 1, 0.9) == []  # a result that came late changes nothing
    assert race.active == {0}
    assert race.let_go() == []


def test_the_answer_stands_up_to_arms_that_were_let_go_by_one_that_failed():
    race = BoundedElimination(GAINS)
    first, _, _third = begin(race, 0.5, 0.35, 0.1)
    show(race, 0, first, 1, 0.8)
    assert race.let_go() == [1, 2]  # .75 and .5 at best, against .8
    race.fail(0)
    race.enter(3)
    race.observe(3, np.array([0.3, 0.5, 0.6]), 2)
    answer = race.recommend(cost=5.0, finished=True, complete=True)
    assert (answer.arm, answer.certified) == (3, False)
    assert "by at most 0.15" in answer.reason  # .75 against .6
    assert answer.compared == 3
    assert (answer.cost, answer.pulls) == (5.0, 3)
    race.enter(4)
    race.observe(4, np.array([0.5, 0.7, 0.75]), 2)
    assert race.let_go() == [3]
    assert race.recommend(5.0, True, True).certified


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 100)),
        max_size=40,
        unique_by=lambda entry: entry[:2],
    )
)
def test_whoever_curves_one_by_one_would_stop_is_let_go(observations):
    """In any order of the observations, and no others, by the rule applied to every arm."""
    race = BoundedElimination(GAINS, noise=0.02)
    seen = {arm: np.full(3, NAN) for arm in range(6)}
    for arm in range(6):
        race.enter(arm)
    for arm, stage, value in observations:
        if arm in race.out:
            continue
        seen[arm][stage] = value / 100
        race.observe(arm, seen[arm], stage)
        gone = set(race.let_go())
        if race.contradicting:
            return
        stops = BoundedCurves(GAINS, 0.02).stops
        expected = {a for a in seen if stops(a, seen[a], list(seen.items()))}
        assert gone <= expected
        assert expected <= race.out


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(-50, 50)),
        min_size=1,
        max_size=40,
    )
)
def test_phases_agree_with_means_and_quantiles_computed_anew(observations):
    curves = PhasedCurves(3)
    values = {arm: [[], [], []] for arm in range(5)}
    seen = [[], [], []]
    for arm, stage, value in observations:
        new = np.full(3, NAN)
        new[stage] = value
        curves.begin(new)
        curves.add(arm, new)
        values[arm][stage].append(value)
        seen[stage].append(value)
    widths = [np.ptp(np.quantile(at or [0.0], [0.1, 0.9])) for at in seen[:-1]]
    first = next((stage for stage, width in enumerate(widths) if width), None)
    if first is not None:
        assert curves.tolerance(first) == pytest.approx(2.0 * widths[first])
    for stage in range(3):
        means = {arm: np.mean(values[arm][stage]) for arm in values if values[arm][stage]}
        for arm in range(6):
            others = {other: mean for other, mean in means.items() if other != arm}
            own = np.mean([*values.get(arm, [[], [], []])[stage], 0.0])
            best = max(others.values(), default=-math.inf)
            is_beaten = own < best and own + curves.tolerance(stage) <= best
            assert curves.stops(arm, stage, 0.0) == is_beaten


def test_bounds_are_sorted_and_mirrored():
    bounds = checked_bounds({3: (-0.1, 0.0), 1: (-0.4, 0.1)}, int)
    assert list(bounds) == [1, 3]
    assert gains_of(bounds, (1, 3, 9), sign=-1.0).tolist() == [[-0.1, 0.4], [0.0, 0.1], [0.0, 0.0]]
    gains = gains_of(lambda step: 1 / step, (2, 4, 9))
    assert gains.tolist() == [[-0.5, 0.5], [-0.25, 0.25], [0.0, 0.0]]
