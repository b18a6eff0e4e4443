import pytest

from mfhpo.problem import Observation, Pull
from mfhpo.search import Begin, HalvingSearch
from tests.core.search.played import loaded

NEW = Begin(0, None)


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


def test_workers_take_different_first_arms():
    search = HalvingSearch(costs=(1.0, 3.0), initial=4)
    told(search, 0, [0.3, 0.1, 0.4, 0.2])
    pending = [Pull(2, 1)]
    assert search.ask(4, pending) == Pull(0, 1)
    pending.append(Pull(0, 1))
    # Two of four are under way; a third of four is one, and it is under way.
    assert search.ask(4, pending) == NEW


def after_the_first():
    search = HalvingSearch(costs=(1.0, 3.0, 9.0), initial=2)
    told(search, 0, [0.5, 0.4])
    for level in (1, 2):
        search.tell(Pull(0, level), Observation(0.5))
    return search


def test_the_best_third_goes_up():
    search = after_the_first()
    assert search.ask(2) == NEW
    told(search, 0, [0.6], first=2)
    assert search.ask(3) == Pull(2, 1)
    search.tell(Pull(2, 1), Observation(0.9))
    # One of three is the third of level 0; level 1 has two arms, and none of two goes up.
    assert search.ask(3) == NEW
    told(search, 0, [0.7, 0.1, 0.2], first=3)
    # Arms 3 and 2 are the best two of six, and arm 2 is up already.
    assert search.ask(6) == Pull(3, 1)
    search.tell(Pull(3, 1), Observation(0.8))
    told(search, 0, [0.75, 0.1, 0.1], first=6)
    # Level 1 has three arms, level 0 has nine with arm 6 the best; the higher level goes first.
    assert search.ask(9) == Pull(2, 2)
    assert search.ask(9, [Pull(2, 2)]) == Pull(6, 1)


def test_a_mean_of_several_values_decides():
    search = after_the_first()
    told(search, 0, [0.6, 0.55, 0.1, 0.1], first=2)
    search.tell(Pull(2, 0), Observation(0.2))  # now .4, behind arm 3 and arm 0
    assert search.ask(6) == Pull(3, 1)


def test_one_level_has_no_promotions():
    search = HalvingSearch(costs=(2.0,), initial=2)
    told(search, 0, [0.1, 0.2, 0.3])
    assert search.ask(3) == NEW
    assert search.leader() == 2


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
    assert search.ask(9) == Begin(1, None)
    told(search, 1, [7.0, 8.0, 9.0], first=9)
    assert search.ask(12) == Pull(11, 2)


def test_an_arm_that_fails_is_tried_again_and_leaves_after_three():
    search = after_the_first()
    told(search, 0, [0.6, 0.55, 0.1, 0.1], first=2)
    for _ in range(3):
        assert search.ask(6) == Pull(2, 1)
        search.tell(Pull(2, 1), Observation(None))
    # Five are left at level 0, and a third of five is one: arm 3.
    assert search.ask(6) == Pull(3, 1)


def test_only_failures_in_a_row_count():
    search = after_the_first()
    told(search, 0, [0.6, 0.55, 0.1, 0.1], first=2)
    for value in (None, None, 0.6, None, None):
        search.tell(Pull(2, 0), Observation(value))
    assert search.ask(6) == Pull(2, 1)
    search.tell(Pull(2, 0), Observation(None))
    assert search.ask(6) == Pull(3, 1)


def test_a_state_holds_failures_and_merged_arms():
    search = after_the_first()
    told(search, 0, [0.9, 0.8, 0.7, 0.6, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], first=2)
    for _ in range(3):
        search.tell(Pull(2, 1), Observation(None))
    for _ in range(2):
        search.tell(Pull(4, 1), Observation(None))
    search.merge(3)
    for one in (search, loaded(HalvingSearch(costs=(1.0, 3.0, 9.0), initial=2), search)):
        assert one.ask(12) == Pull(4, 1)
        one.tell(Pull(4, 1), Observation(None))
        assert one.ask(12) == Pull(5, 1)


@pytest.mark.parametrize(
    ("costs", "options", "name"),
    [
        ((), {}, "costs"),
        ((0.0, 1.0), {}, "costs"),
        ((3.0, 1.0), {}, "costs"),
        ((1.0, 1.0), {}, "costs"),
        ((1.0, 3.0), {"initial": 1}, "initial"),
        ((1.0, 3.0), {"seed": -1}, "seed"),
    ],
)
def test_bad_arguments(costs, options, name):
    with pytest.raises(ValueError, match=f"{name} must"):
        HalvingSearch(costs, **options)


def test_levels_that_there_are_not():
    search = HalvingSearch(costs=(1.0, 3.0))
    for level in (-1, 2):
        with pytest.raises(ValueError, match="fidelity must be 0 to 1"):
            search.tell(Pull(0, level), Observation(0.0))
    with pytest.raises(ValueError, match="2 levels, this search 3"):
        HalvingSearch(costs=(1.0, 3.0, 9.0)).load_state_dict(search.state_dict())
