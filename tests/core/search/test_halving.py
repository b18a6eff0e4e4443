import math

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from mfhpo.problem import Observation, Pull
from mfhpo.search import HalvingSearch
from mfhpo.search.promotions import plan_for_given


def told(search, level, values, first=0):
    for arm, value in enumerate(values, first):
        search.tell(Pull(arm, level), Observation(value))


def test_the_first_arms_go_up_by_thirds():
    search = HalvingSearch(costs=(1.0, 3.0, 9.0), initial=9)
    told(search, 0, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    for arm in (8, 7, 6):
        assert search.ask(9) == Pull(arm, 1)
        search.tell(Pull(arm, 1), Observation(-float(arm)))  # the order turns round
    for arm in (6, 7):
        assert search.ask(9) == Pull(arm, 2)
        search.tell(Pull(arm, 2), Observation(0.0))
    assert search.ask(9).fidelity < 2


def after_the_first():
    search = HalvingSearch(costs=(1.0, 3.0, 9.0), initial=2)
    told(search, 0, [0.5, 0.4])
    for level in (1, 2):
        search.tell(Pull(0, level), Observation(0.5))
    return search


def test_the_best_third_goes_up():
    search = after_the_first()
    assert search.ask(2) == Pull(2, 0)
    told(search, 0, [0.6], first=2)
    assert search.ask(3) == Pull(2, 1)
    search.tell(Pull(2, 1), Observation(0.9))
    # One of three is the third of level 0; level 1 has two arms, and none of two goes up.
    assert search.ask(3) == Pull(3, 0)
    told(search, 0, [0.7, 0.1, 0.2], first=3)
    # Arms 3 and 2 are the best two of six, and arm 2 is up already.
    assert search.ask(6) == Pull(3, 1)
    search.tell(Pull(3, 1), Observation(0.8))
    told(search, 0, [0.75, 0.1, 0.1], first=6)
    # Level 1 has three arms, level 0 has nine with arm 6 the best; the higher level goes first.
    assert search.ask(9) == Pull(2, 2)
    assert search.ask(9, [Pull(2, 2)]) == Pull(6, 1)


def reversed_pair(n):
    """Level 0 orders arms the other way round than level 1 does, level 1 as level 2 does."""
    search = HalvingSearch(costs=(1.0, 3.0, 9.0), initial=2)
    for level, sign in enumerate((-1.0, 1.0, 1.0)):
        told(search, level, [sign * arm for arm in range(n)])
    return search


@pytest.mark.parametrize(("n", "low", "high"), [(1, 0.5, 0.5), (4, -0.25, 0.75), (6, -0.4, 0.8)])
def test_agreement_by_hand(n, low, high):
    """With n arms, the correlation has weight n / (n + 4), and .5 the rest; one arm has none."""
    search = reversed_pair(n)
    if n == 1:
        low = high = 0.5 * 4 / 5
    assert search.agreement(0) == pytest.approx(low)
    assert search.agreement(1) == pytest.approx(high)


def test_a_level_that_disagrees_is_skipped():
    search = reversed_pair(6)
    assert search.grace_level() == 1
    # Level 1 has six arms, all of them at the target; arms that are at level 0 stay there.
    told(search, 0, [9.0, 9.1, 9.2], first=6)
    assert search.ask(9) == Pull(9, 1)
    told(search, 1, [7.0, 8.0, 9.0], first=9)
    assert search.ask(12) == Pull(11, 2)


def test_who_fails_three_times_leaves_and_merged_arms_do_not_go_up():
    search = after_the_first()
    told(search, 0, [0.9, 0.8, 0.7, 0.6, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], first=2)
    for _ in range(3):
        search.tell(Pull(2, 1), Observation(None))
    for _ in range(2):
        search.tell(Pull(4, 1), Observation(None))
    search.merge(3)
    assert search.ask(12) == Pull(4, 1)
    search.tell(Pull(4, 1), Observation(None))
    assert search.ask(12) == Pull(5, 1)


def given(n, allowance, costs=(1.0, 3.0, 9.0), continues=False, **options):
    search = HalvingSearch(costs=costs, continues=continues, **options)
    search.give([{}] * n)
    search.allowance = allowance
    return search


@pytest.mark.parametrize(
    ("n", "allowance", "continues", "plan"),
    [
        # 27 at the first level take 27 of 100, at the second 81, which is more than 60: 73 are left
        # for 27 r * 3 + 27 r^2 * 9, so that r = .406 of each level goes up.
        (27, 100.0, False, {0: 27, 1: 11, 2: 4}),
        # Continued, they pay 2 and 6: 73 = 54 r + 162 r^2, and r = .525.
        (27, 100.0, True, {0: 27, 1: 14, 2: 7}),
        # Ten at the second level take 30 of 60, and the other 30 bring a third to the target.
        (10, 60.0, False, {0: 10, 1: 10, 2: 3}),
        # All at the target take 54 of 100.
        (6, 100.0, False, {0: 6, 1: 6, 2: 6}),
        # Two at each level above would take 24, one takes 12, and the other 8 pay for 8 of 27.
        (27, 20.0, False, {0: 8, 1: 1, 2: 1}),
        # 60 % of 46 would pay for 27, but two above take 24, and 22 are left.
        (27, 46.0, False, {0: 22, 1: 2, 2: 2}),
        (27, math.inf, False, {0: 27, 1: 9, 2: 3}),
    ],
)
def test_the_plan_for_given_arms_by_hand(n, allowance, continues, plan):
    assert plan_for_given(given(n, allowance, continues=continues)) == plan


@settings(deadline=None)
@hypothesis.given(
    n=st.integers(2, 300),
    allowance=st.floats(1.0, 3000.0),
    continues=st.booleans(),
    costs=st.sampled_from([(1.0,), (1.0, 2.0), (1.0, 3.0, 9.0), (1.0, 4.0, 20.0, 100.0)]),
)
def test_a_plan_falls_from_level_to_level_and_is_paid(n, allowance, continues, costs):
    search = given(n, allowance, costs, continues)
    plan = plan_for_given(search)
    counts = list(plan.values())
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] >= 1
    assert counts[0] <= max(n, 2)
    first = max(level for level in plan if plan[level] == counts[0])
    prices = [search.price_from(level - 1 if level > first else -1, level) for level in plan]
    paid = sum(plan[level] * prices[level] for level in plan if level >= first)
    least = 2.0 * prices[0] + sum(prices[1:])
    rounded = sum(0.5 * prices[level] for level in plan if level > first)
    assert paid <= max(allowance + rounded, least) + 1e-6


def test_workers_do_not_wait_for_a_level_to_be_complete():
    search = given(12, 40.0, (1.0, 9.0))  # 12, and 28 / 9 at the target: 3
    for arm in range(8):
        search.tell(Pull(arm, 0), Observation(float(arm)))
    pending = [Pull(arm, 0) for arm in range(8, 12)]
    # 8 of 12 have ended: two thirds of three go up.
    for arm in (7, 6):
        assert search.ask(12, pending) == Pull(arm, 1)
        pending.append(Pull(arm, 1))
    assert search.ask(12, pending) is None
