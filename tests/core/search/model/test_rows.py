from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfhpo.search.model import rows
from mfhpo.search.model.rows import Scale, Told, scores

# Whole numbers, so that values differ by more than rounding does.
whole = st.lists(st.integers(-1000, 1000).map(float), min_size=1, max_size=30)


def test_by_hand():
    """Best 9, median 5: gaps of 0, 4 and 8 are 0, .2 and .4 of five times the median gap."""
    logarithms = -np.log([1.4, 1.2, 1.0])
    expected = (logarithms - logarithms.mean()) / logarithms.std()
    assert scores(np.array([1.0, 5.0, 9.0])) == pytest.approx(expected)


def test_where_half_are_the_best_the_mean_gap_counts():
    """The mean gap is 8/4 = 2; gaps of 8 and 0 are a two-point scale."""
    scored = scores(np.array([9.0, 1.0, 9.0, 9.0]))
    # Three of four alike: the odd one lies sqrt(3) below the mean, whatever the gap.
    assert scored == pytest.approx([3**-0.5, -(3**0.5), 3**-0.5, 3**-0.5])


@given(whole)
def test_the_order_and_the_ties_stay(values):
    array = np.array(values)
    scored = scores(array)
    assert scored.shape == array.shape
    assert np.isfinite(scored).all()
    assert scored.mean() == pytest.approx(0.0, abs=1e-9)
    assert scored.std() == pytest.approx(float(len(set(values)) > 1))
    order = np.argsort(array)
    steps, scored_steps = np.diff(array[order]), np.diff(scored[order])
    assert (scored_steps[steps == 0.0] == 0.0).all()
    assert (scored_steps[steps > 0.0] > 0.0).all()


@given(whole, st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_units_and_origin_do_not_matter(values, a, b):
    array = np.array(values)
    if len(set(values)) > 1:
        assert scores(a * array + b) == pytest.approx(scores(array), abs=1e-5)


def test_values_that_are_all_the_same_say_nothing():
    for value in (0.0, 0.1, -3.0, 1e12, -1e149):
        assert scores(np.full(7, value)).tolist() == [0.0] * 7


def test_the_hopeless_by_hand():
    """Median gap 1: gaps of 5 (e - 1) and 5 (e**9 - 1) have the logarithms 1 and 9 = 2 + 7."""
    values = np.array([0.0, -1.0, -1.0, -5.0 * (np.e - 1.0), -5.0 * (np.e**9 - 1.0)])
    shortened = -np.array([0.0, np.log(1.2), np.log(1.2), 1.0, 2.0 + np.log(8.0)])
    expected = (shortened - shortened.mean()) / shortened.std()
    assert scores(values) == pytest.approx(expected)


HISTORY = [(0, 0, 1.0), (1, 0, 3.0), (1, 1, 5.0), (2, 0, None), (0, 0, 3.0), (3, 1, 9.0)]


def told(history, n_levels=2):
    read = Told(n_levels)
    read.read(history)
    return read


def test_arms_have_a_row_at_each_level_by_hand():
    """Level 0 has the means 2 and 3, level 1 the values 5 and 9: two of each are 1 apart from 0."""
    both = told(HISTORY).rows(2)
    assert both.arms.tolist() == [0, 1, 1, 3, 2]
    assert both.levels.tolist() == [0, 0, 1, 1, 1]
    assert both.counts.tolist() == [2, 1, 1, 1, 1]
    assert both.values == pytest.approx([-1.0, 1.0, -1.0, 1.0, -1.0])
    lowest = told(HISTORY).rows(1, without={0})
    assert lowest.arms.tolist() == [1, 2]
    assert lowest.levels.tolist() == [0, 0]
    assert lowest.values == pytest.approx([0.0, 0.0])


def test_nothing_told_is_no_row():
    assert told([]).rows(2).values.size == 0
    assert told([(4, 0, None)]).rows(2).values.tolist() == [0.0]


@given(st.integers(0, len(HISTORY)))
def test_a_history_may_grow(n):
    read = told(HISTORY[:n])
    read.read(HISTORY)
    assert str(read.rows(2)) == str(told(HISTORY).rows(2))


def test_half_of_the_rows_are_the_latest_however_far_others_have_come():
    """Five of the ten are new ones below the target; the best ten at the target are older."""
    at_target = [(arm, 1, float(-arm)) for arm in range(30)]
    begun = [(arm, 0, 0.0) for arm in range(30, 35)]
    some = told([*at_target, *begun]).rows(2).most_telling(20)
    assert sorted(some.arms) == [*range(10), *range(25, 35)]


@pytest.mark.parametrize("n_levels", [2, 5, 7, 10])
@pytest.mark.parametrize("failed", [False, True])
def test_the_best_are_kept_and_some_at_all_levels(n_levels, failed):
    """However many levels there are, and however many arms fail at last."""
    history = [(arm, level, float(-arm)) for arm in range(250) for level in range(n_levels)]
    history += [(arm, 0, None) for arm in range(250, 400 if failed else 250)]
    some = told(history, n_levels).rows(n_levels).most_telling(200)
    assert some.values.size == 200
    assert set(some.arms[some.levels == n_levels - 1]) >= set(range(25))
    _, n_rows = np.unique(some.arms, return_counts=True)
    assert set(n_rows) == {1, n_levels}
    assert (n_rows > 1).sum() == min(25, 50 // (n_levels - 1))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_from_what_is_remembered_the_same_arms_are_chosen(seed):
    """Those of the first rows are kept, too: gaps between values are measured by them."""
    rng = np.random.default_rng(seed)
    levels = [range(1 + (rng.random() < 0.3)) for _ in range(300)]
    history = [(arm, level, float(rng.normal())) for arm in range(300) for level in levels[arm]]
    with patch.object(rows, "_MOST_TOLD", 160):
        some = told(history).rows(2)
    assert len(some.values) <= 160
    every = told(history).rows(2)
    assert set(every.most_telling(60).arms) <= set(some.most_telling(60).arms)
    for level in range(2):
        first = [each.arms[each.levels == level][:20].tolist() for each in (some, every)]
        assert first[0] == first[1]


@given(
    values=st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30),
    asked=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=5),
)
def test_scores_are_turned_back_into_values(values, asked):
    scale = Scale.of(np.array(values))
    inside = np.minimum(np.array(asked), scale.best)
    inside = np.maximum(inside, scale.best - 50.0 * scale.near)
    back = scale.values(scale.scores(inside))
    assert back == pytest.approx(inside, abs=1e-6 * (scale.near + abs(scale.best)))
    ordered = np.sort(inside)
    assert (np.diff(scale.scores(ordered)) >= 0.0).all()
    better = scale.values(scale.scores(np.array([scale.best])) + 0.1)
    assert better[0] >= scale.best
