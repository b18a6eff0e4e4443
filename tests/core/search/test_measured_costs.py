import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.search.prices import MeasuredCosts


def learned(guess, paid, *, continues=False):
    measured = MeasuredCosts(guess, continues=continues)
    for start, level, cost in paid:
        measured.add(start, level, cost)
    return measured


def test_the_guess_holds_until_something_was_paid():
    measured = learned((1.0, 3.0, 9.0), [])
    assert measured.costs() == (1.0, 3.0, 9.0)
    assert not measured.any_known
    assert not measured.is_unknown(2)


@pytest.mark.parametrize(
    ("continues", "paid", "costs"),
    [
        # Between: ten times the guess at the top, the guess below; geometrically half-way the mean.
        (False, [(-1, 0, 0.5), (-1, 0, 1.5), (-1, 2, 90.0)], (1.0, 3.0 * 5.5, 90.0)),
        # 10 for setting up and .5 for each unit: the third costs 14.5, not 3 * 11.5.
        (False, [(-1, 0, 10.5), (-1, 1, 11.5)], (10.5, 11.5, 14.5)),
        # A dear arm at the second level: the line would say 5 + 2 * 6 = 17, the guess 9 * 5 / 3.
        (False, [(-1, 0, 1.0), (-1, 1, 5.0)], (1.0, 5.0, 15.0)),
        # A dearer level is never cheaper.
        (False, [(-1, 0, 5.0), (-1, 1, 4.0)], (5.0, 5.0, 5.0)),
        # Dear arms stay behind: what the others add is not lost in the first level's mean.
        (True, [(-1, 0, 10.0)] * 9 + [(-1, 0, 0.1), (0, 1, 0.2), (1, 2, 0.6)], (9.01, 9.21, 9.81)),
        # 10 for each trial and 1 for each unit: steps of 11, 12 and, to come, 16.
        (True, [(-1, 0, 11.0), (0, 1, 12.0)], (11.0, 23.0, 39.0)),
    ],
)
def test_costs_by_hand(continues, paid, costs):
    measured = learned((1.0, 3.0, 9.0), paid, continues=continues)
    assert measured.costs() == pytest.approx(costs)


def test_steps_made_at_once_share_what_was_paid_where_nothing_else_is_known():
    measured = learned((1.0, 3.0, 9.0), [(-1, 2, 18.0)], continues=True)
    assert measured.costs() == pytest.approx((2.0, 6.0, 18.0))
    measured.add(-1, 0, 5.0)
    assert measured.costs() == pytest.approx((5.0, 9.0, 21.0))


def test_from_scratch_everything_is_set_up_once():
    """10 for each trial and 1 for each unit: 10 + 27 at the top, not the sum of four steps."""
    paid = [(-1, 0, 11.0), (0, 1, 12.0), (1, 2, 16.0), (2, 3, 28.0)]
    measured = learned((1.0, 3.0, 9.0, 27.0), paid, continues=True)
    assert measured.costs()[-1] == pytest.approx(67.0)
    assert [measured.from_scratch(level) for level in range(4)] == pytest.approx(
        [11.0, 23.0, 39.0, 37.0]
    )
    measured.add(-1, 3, 40.0)  # a replicate says what it really is, of steps it says nothing
    assert measured.from_scratch(3) == 40.0
    assert measured.costs()[-1] == pytest.approx(67.0)


def test_a_level_is_unknown_while_a_single_lower_one_was_paid_for():
    measured = learned((1.0, 3.0, 9.0), [(-1, 0, 1.0)])
    assert [measured.is_unknown(level) for level in range(3)] == [False, True, True]
    measured.add(-1, 1, 3.0)
    assert not any(measured.is_unknown(level) for level in range(3))
    above = learned((1.0, 3.0, 9.0), [(-1, 2, 9.0)])
    assert not any(above.is_unknown(level) for level in range(3))


@given(
    guess=st.lists(st.floats(0.01, 1e4), min_size=1, max_size=6, unique=True).map(sorted),
    entries=st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 5), st.floats(0.0, 1e6))),
    continues=st.booleans(),
)
def test_whatever_was_paid_costs_are_positive_and_increase(guess, entries, continues):
    top = len(guess) - 1
    paid = [
        (start if continues else -1, level, cost)
        for start, level, cost in entries
        if start < level <= top
    ]
    measured = learned(tuple(guess), paid, continues=continues)
    costs = np.array(measured.costs())
    assert np.isfinite(costs).all()
    assert (costs > 0.0).all()
    assert (np.diff(costs) > 0.0).all()
