import itertools
import math
import warnings
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mfhpo import Bounded, Gaussian, Pull, SubGaussian
from mfhpo.knowledge.confidence import share_of_look
from mfhpo.racing.race import ArmWithdrawnWarning
from tests.core.certification import races
from tests.core.certification.races import PATTERN, tell

race_of = partial(races.race_of, races.by_looks)


def tell_pattern(race, means, spreads, arms=None):
    """Five values of each: its mean, and around it the pattern times its spread."""
    for step in PATTERN:
        for arm in range(len(means)) if arms is None else arms:
            tell(race, arm, means[arm] + spreads[arm] * step)


def tell_all(race, arm, values):
    for value in values:
        tell(race, arm, value)


def fail(race, arm):
    """Fail until the candidate leaves; return how often that was."""
    for count in itertools.count(1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tell(race, arm, None)
        if caught:
            assert [warning.category for warning in caught] == [ArmWithdrawnWarning]
            return count


def ahead(race, arms):
    """What the next look takes, and the number of looks, once these are evaluated."""
    pulls = [Pull(arm, 0) for arm in arms]
    return race.policy.rule.missing(race.policy.known, pulls), race.policy.rule.looks_with(
        race.policy.known, pulls
    )


def asked_of(race, *under_way):
    return race.ask([Pull(arm, 0) for arm in under_way]).arm


def answer_of(race):
    return race.certificate("all", "by hand")


def half_widths(answer):
    return [
        (result.interval[1] - result.interval[0]) / 2.0
        for result in answer.candidates
        if result.evaluations
    ]


def standings(race):
    return [result.standing for result in answer_of(race).candidates]


# Figures by hand. Quantiles of Student's t with three decimals are those of printed tables.


def test_noise_of_those_that_are_left_and_levels_of_all():
    race = race_of(3, delta=0.2, epsilon=0.0)
    tell_pattern(race, [1.0, 0.0, -50.0], [1.0, 1.0, 1.0])
    first = answer_of(race)
    assert standings(race) == ["best so far", "not told apart", "worse"]
    tell_pattern(race, [1.0, 0.0, -50.0], [1.0, 1.0, 1.0], arms=[0, 1])
    second = answer_of(race)
    # 20 / 9 of each, 9 degrees; 0.05 among the 2 comparisons of the start.
    assert second.within == pytest.approx(2.262 * math.sqrt(2 * 20 / 9 / 10) - 1.0, abs=1e-3)
    quantile = stats.t.isf(0.05 / 6, 9)
    assert half_widths(second)[:2] == pytest.approx([quantile * math.sqrt(2 / 9)] * 2)
    assert second.candidates[2] == first.candidates[2]
    assert second.candidates[2].evaluations == 5


@pytest.mark.parametrize("planned", [None, 1, 2, 3])
def test_looks_take_all_of_delta_and_no_more(planned):
    shares = [share_of_look(look, planned) for look in range(1, 60)]
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) > 0.0


def test_the_last_look_that_is_planned_takes_nine_tenths_of_what_is_left():
    race = race_of(2, delta=0.2, epsilon=0.0)
    race.policy.rule.planned_looks = 1
    tell_pattern(race, [0.0, 1.0], [1.0, 1.0])
    # The pattern's variance is 10 / 4; 0.18 in all: of two arms on two sides, or of one difference.
    widths, within = half_widths(answer_of(race)), answer_of(race).within
    assert widths == pytest.approx([stats.t.isf(0.045, 4) * math.sqrt(2.5 / 5)] * 2)
    assert within == pytest.approx(stats.t.isf(0.18, 4) * math.sqrt(2 * 2.5 / 5) - 1.0, abs=1e-9)
    tell_pattern(race, [0.0, 1.0], [1.0, 1.0])
    assert half_widths(answer_of(race)) == pytest.approx(
        [stats.t.isf(0.2 * 0.05 / 4, 9) * math.sqrt(20 / 9 / 10)] * 2
    )


@pytest.mark.parametrize("sigma", [None, Gaussian()])
def test_variances_of_their_own(sigma):
    race = race_of(2, delta=0.2, epsilon=0.0, sigma=sigma)
    tell_pattern(race, [0.0, 1.0], [1.0, 2.0])
    answer = answer_of(race)
    # 5 - 1 degrees: t = 1.533 at 0.1, 2.776 at 0.1 / 4. The pair has (2.5 + 10) / 2.
    assert answer.within == pytest.approx(1.533 * math.sqrt(2 * 6.25 / 5) - 1.0, abs=1e-3)
    expected = [2.776 * math.sqrt(2.5 / 5), 2.776 * math.sqrt(10 / 5)]
    assert half_widths(answer) == pytest.approx(expected, abs=1e-3)

    tell_pattern(race, [0.0, 1.0], [1.0, 2.0])
    answer = answer_of(race)
    # 9 degrees: t = 1.833 at 0.05.
    assert answer.within == pytest.approx(1.833 * math.sqrt(2 * 50 / 9 / 10) - 1.0, abs=1e-3)
    quantile = stats.t.isf(0.05 / 4, 9)
    expected = [quantile * math.sqrt(20 / 9 / 10), quantile * math.sqrt(80 / 9 / 10)]
    assert half_widths(answer) == pytest.approx(expected)


@pytest.mark.parametrize("sigma", [2.0, SubGaussian(2.0), Bounded(-1.0, 3.0)])
def test_declared_noise(sigma):
    # exp(-r^2 n / (2 sigma^2)) = level for a mean, exp(-r^2 n / (4 sigma^2)) for a difference.
    race = race_of(3, delta=0.2, epsilon=0.0, sigma=sigma)
    for n, tail in ((5, 20), (10, 40)):
        tell_pattern(race, [1.0, 0.5, 0.25], [0.125] * 3)
        answer = answer_of(race)
        assert answer.within == pytest.approx(2.0 * math.sqrt(4 * math.log(tail) / n) - 0.5)
        expected = 2.0 * math.sqrt(2 * math.log(3 * tail) / n)
        if not isinstance(sigma, Bounded):
            assert half_widths(answer) == pytest.approx([expected] * 3)
            continue
        for one in answer.candidates:  # no mean lies outside the declared range
            low, high = max(one.mean - expected, -1.0), min(one.mean + expected, 3.0)
            assert one.interval == pytest.approx((low, high))


def test_certified_from_the_tolerance_that_holds_on():
    within = 1.53321 * math.sqrt((2.5 + 10.0) / 5) - 1.0
    for epsilon, certified in ((within + 1e-4, True), (within - 1e-4, False)):
        race = race_of(2, delta=0.2, epsilon=epsilon)
        tell_pattern(race, [0.0, 1.0], [1.0, 2.0])
        answer = answer_of(race)
        assert (answer.certified, answer.finished, race.finished) == (certified,) * 3
        assert answer.within == pytest.approx(within, abs=1e-4)
        assert answer.epsilon == epsilon
        assert standings(race) == ["not told apart", "certified" if certified else "best so far"]
        assert (answer.remaining == 0.0) == certified
    assert "2 arms are not told apart yet; the next look is after 10" in answer.reason


def test_how_many_more():
    # A radius of 2.209 and a lead of 1 with epsilon 0.5: the radius must shrink to 1.5, which
    # takes 5 (2.209 / 1.5)^2 = 10.8 evaluations, so the look at 20: 15 more of each.
    race = race_of(2, delta=0.2, epsilon=0.5)
    assert answer_of(race).remaining is None
    tell_pattern(race, [0.0, 1.0], [1.0, 2.0])
    assert answer_of(race).remaining == 30.0
    tell(race, 0, 0.0)
    assert answer_of(race).remaining == 29.0
    tie = race_of(2, epsilon=0.0)
    tell_pattern(tie, [0.0, 0.0], [1.0, 1.0])
    assert answer_of(tie).remaining == math.inf


def test_more_values_than_a_look_takes_do_not_count():
    race = race_of(2, delta=0.2, epsilon=0.5)
    tell_all(race, 0, [*PATTERN, 9.0, 10.0, 11.0, 12.0, 13.0, 1e6])
    assert race.policy.rule.looks == 0
    tell_all(race, 1, [1.0 + 2.0 * step for step in PATTERN])
    answer = answer_of(race)
    assert race.policy.rule.looks == 1
    assert (answer.winner, answer.candidates[0].mean, answer.candidates[0].evaluations) == (1, 0, 5)
    assert answer.within == pytest.approx(1.533 * math.sqrt(2 * 6.25 / 5) - 1.0, abs=1e-3)
    assert answer.evaluations == 16
    tell_all(race, 1, [1.0 + 2.0 * step for step in PATTERN])
    answer = answer_of(race)
    assert race.policy.rule.looks == 2
    assert answer.candidates[0].mean == 5.5  # the eleventh value does not count
    assert answer.candidates[0].evaluations == 10


def test_missing_and_looks_with():
    race = race_of(2, epsilon=0.0)
    assert ahead(race, []) == (10, 0)
    assert ahead(race, [0, 0, 1]) == (7, 0)
    # One of them is ahead: what it has beyond the look is of no use to the other.
    assert ahead(race, [0] * 8) == (5, 0)
    # Where those under way will do, the look after it is meant.
    assert ahead(race, [0, 1] * 5) == (10, 1)
    assert (ahead(race, [0, 1] * 6)[0], ahead(race, [0, 1] * 10)[1]) == (8, 2)
    tell_pattern(race, [0.0, 0.0], [1.0, 1.0])
    assert ahead(race, []) == (10, 1)
    tell(race, 0, 0.0)
    assert ahead(race, [1, 1]) == (7, 1)
    assert ahead(race, [0] * 4 + [1] * 5)[1] == 2
    assert race.policy.rule.looks == 1


def test_a_failure_makes_a_look_due():
    race = race_of(3, delta=0.2, epsilon=0.0)
    tell_pattern(race, [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], arms=[0, 1])
    tell_all(race, 2, [400.0, -300.0])
    assert race.policy.rule.looks == 0
    fail(race, 2)
    answer = answer_of(race)
    assert race.policy.rule.looks == 1
    assert answer.within == pytest.approx(2.132 * math.sqrt(2 * 2.5 / 5) - 1.0, abs=1e-3)
    assert answer.winner == 1
    assert standings(race) == ["not told apart", "best so far", "failed"]
    assert (answer.candidates[2].evaluations, answer.candidates[2].mean) == (2, 50.0)
    assert math.isinf(answer.candidates[2].interval[1])


def test_one_is_left():
    race = race_of(2, epsilon=9.0)
    tell_all(race, 0, [-2.0, -1.0])
    fail(race, 1)
    answer = answer_of(race)
    assert (race.finished, answer.certified, answer.winner, answer.mean) == (False, False, 0, -1.5)
    assert math.isinf(answer.within)
    assert answer.reason == "the winner's value at the target is still being measured"
    assert standings(race) == ["best so far", "failed"]
    assert (asked_of(race), race.policy.rule.missing(race.policy.known)) == (0, 3)
    tell_all(race, 0, PATTERN[2:])
    answer = answer_of(race)
    assert (race.finished, answer.certified, answer.mean) == (True, False, 0.0)
    assert answer.reason.startswith("every other arm left without being compared")
    assert asked_of(race) == 0  # what is evaluated beyond the end changes nothing
    # Level .025 of .05 for two means on two sides, 4 degrees.
    expected = stats.t.isf(0.025 / 4, 4) * math.sqrt(2.5 / 5)
    assert half_widths(answer) == pytest.approx([expected])
    tell_all(race, 0, PATTERN)
    assert race.policy.rule.looks == 1


def test_a_failed_leader_gives_back_what_it_had_beaten():
    # 2 was beaten by the leader alone. It may be the best of those that give values, and here is.
    race = race_of(4, sigma=1.0, epsilon=0.5)
    tell_pattern(race, [10.0, 8.25, 8.0, 8.25], [0.125] * 4)
    assert standings(race) == ["certified", "not told apart", "worse", "not told apart"]
    fail(race, 0)
    assert not race.finished
    assert standings(race)[2] == "not told apart"
    while not race.finished:
        arm = asked_of(race)
        tell(race, arm, [0.0, 7.0, 8.0, 7.0][arm])
    assert answer_of(race).winner == 2


def test_what_holds_is_about_those_that_are_left():
    race = race_of(3, delta=0.2, epsilon=1.2)
    tell_pattern(race, [1.0, 0.5, 0.0], [1.0] * 3)
    # Level .1 among 2 comparisons, 4 degrees: t = 2.132.
    assert answer_of(race).within == pytest.approx(2.132 - 0.5, abs=1e-3)
    fail(race, 1)
    answer = answer_of(race)
    assert (answer.certified, answer.winner) == (True, 0)
    assert answer.within == pytest.approx(2.132 - 1.0, abs=1e-3)


def test_equal_values_may_hide_others():
    # That their noise is not hidden is known from another one that failed.
    race = race_of(3, epsilon=0.0)
    tell_all(race, 2, [0.25, 0.75])
    fail(race, 2)
    tell_all(race, 0, [0.25] * 5)
    tell_all(race, 1, [0.3] * 5)
    answer = answer_of(race)
    assert race.policy.rule.looks == 1
    assert standings(race)[:2] == ["not told apart", "best so far"]
    # No arm that was looked at varies.
    assert math.isinf(answer.within)
    assert half_widths(answer)[:2] == [math.inf, math.inf]
    tell_all(race, 0, [0.25] * 10)
    tell_all(race, 1, [*[0.3] * 4, 0.05, *[0.3] * 10])
    answer = answer_of(race)
    assert race.policy.rule.looks == 2
    # Of the second the variance is .00625; .9 of its values are equal, and one differs by .25.
    # All of the first are equal: they may differ as the second one's do.
    level = 0.05 / 4 / 2
    unseen = 1.0 - level**0.1
    variance = 0.00625 + unseen * (0.9 + 1.0) * 0.0625
    radius = stats.t.isf(level, 9) * math.sqrt(variance / 10)
    assert answer.within == pytest.approx(radius - 0.025)


@st.composite
def tables(draw):
    largest = draw(st.sampled_from([1, 3, 200]))
    values = st.lists(st.integers(-largest, largest), min_size=3, max_size=12)
    return draw(st.lists(values, min_size=2, max_size=4))


def race_on(table, order, scale=1.0, shift=0.0, **options):
    race = race_of(len(table), **options)
    rest = [iter(values) for values in table]
    for arm in order:
        tell(race, arm, scale * next(rest[arm]) + shift)
    return race


# What a declared sigma of 2 says of values up to 200 may be contradicted.
@pytest.mark.filterwarnings("ignore::mfhpo.NoiseContradictedWarning")
@settings(max_examples=25)
@given(
    tables(),
    st.sampled_from([None, Gaussian(), 2.0]),
    st.sampled_from([None, 0.0, 1.0]),
    st.sampled_from([2.0**-20, -0.25, -1.0, 8.0]),  # powers of 2 are exact
    st.integers(-1000, 1000),
    st.randoms(use_true_random=False),
)
def test_order_unit_direction_and_shift_do_not_matter(table, sigma, epsilon, scale, shift, random):
    order = [arm for arm, values in enumerate(table) for _ in values]
    one = race_on(table, order, delta=0.3, sigma=sigma, epsilon=epsilon)
    random.shuffle(order)
    same = race_on(table, order, delta=0.3, sigma=sigma, epsilon=epsilon)
    assert repr(answer_of(same)) == repr(answer_of(one))
    assert (asked_of(same), ahead(same, [])) == (asked_of(one), ahead(one, []))
    other = race_on(
        table,
        order,
        scale,
        shift,
        maximise=scale > 0.0,
        delta=0.3,
        sigma=abs(scale) * sigma if isinstance(sigma, float) else sigma,
        epsilon=None if epsilon is None else abs(scale) * epsilon,
    )
    here, there = answer_of(one), answer_of(other)
    assert (here.winner, here.reason) == (there.winner, there.reason)
    assert one.policy.rule.looks == other.policy.rule.looks
    assert standings(one) == standings(other)
    close = {"rel": 1e-6, "abs": 1e-6 * abs(scale), "nan_ok": True}
    assert there.within == pytest.approx(abs(scale) * here.within, **close)
    assert there.epsilon == pytest.approx(abs(scale) * here.epsilon, **close)
    for result, moved in zip(here.candidates, there.candidates, strict=True):
        assert moved.evaluations == result.evaluations
        assert moved.mean == pytest.approx(scale * result.mean + shift, **close)
        bounds = tuple(sorted(scale * bound + shift for bound in result.interval))
        assert moved.interval == pytest.approx(bounds, **close)
