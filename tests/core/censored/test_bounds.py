import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar

from benchmarks.papers.rcucb_instances import Deadline
from mfhpo import Observation
from mfhpo.censored import RCUCB, Linear
from mfhpo.censored.gain import GainEstimates
from mfhpo.censored.upper_bounds import _observed, bounds_on_gain, highest_mean
from tests.core.censored.naive import largest_means, record

TOP = 1.0


def bound_of(weights, values, level, top=TOP):
    parts = (np.array([part]) for part in (weights, values, sum(weights), top, level))
    return float(highest_mean(*parts)[0])


def least_divergence(shares, values, mean, top):
    """The least KL(p, q) among q on values up to `top` with at least this mean, by its dual."""
    if mean <= shares @ values:
        return 0.0
    if mean >= top:
        return math.inf

    def dual(multiplier):
        inside = 1.0 - multiplier * (values - mean)
        return -float(shares[shares > 0.0] @ np.log(inside[shares > 0.0]))

    most = 1.0 / (top - mean)
    found = minimize_scalar(
        dual, bounds=(0.0, most * (1.0 - 1e-13)), method="bounded", options={"xatol": 1e-13 * most}
    )
    return max(-float(found.fun), 0.0)


def by_the_dual(weights, values, level):
    shares, places = np.array(weights) / sum(weights), np.array(values)
    mean = float(shares @ places)
    if mean >= TOP:
        return TOP
    last = TOP - 1e-12 * (1.0 + abs(mean))
    if least_divergence(shares, places, last, TOP) <= level:
        return last
    return float(
        brentq(lambda m: least_divergence(shares, places, m, TOP) - level, mean, last, xtol=1e-13)
    )


@st.composite
def observed(draw):
    size = draw(st.integers(1, 6))
    weight = st.sampled_from([0.0, 1e-6, 0.3]) | st.floats(0.01, 500.0)
    value = st.sampled_from([TOP, 0.999, 0.0, -9.0]) | st.floats(-3.0, TOP)
    weights = draw(st.lists(weight, min_size=size, max_size=size))
    assume(sum(weights) > 0.0)
    return weights, draw(st.lists(value, min_size=size, max_size=size))


levels = st.floats(1e-4, 5.0)


class TestTheHighestMean:
    @given(seen=observed(), level=levels)
    def test_as_by_the_dual(self, seen, level):
        assert bound_of(*seen, level) == pytest.approx(by_the_dual(*seen, level), abs=1e-6)

    @given(
        weights=st.lists(
            st.sampled_from([0.0, 0.3]) | st.floats(0.01, 50.0), min_size=4, max_size=4
        ),
        worst=st.floats(1e4, 1e9),
        level=st.floats(1e-3, 5.0),
    )
    def test_of_a_penalty_that_dwarfs_the_rewards(self, weights, worst, level):
        values = [-worst, 0.2, 0.7, TOP]
        assume(sum(weights) > 0.0)
        expected = largest_means(
            np.array([weights]), np.array([values]), np.array([level]), TOP
        ).tolist()
        close = 1e-6 * max(1.0, abs(expected[0]))
        assert [bound_of(weights, values, level)] == pytest.approx(expected, abs=close)


LIMITS = (1.0, 2.0)
COST = Linear(0.1)  # gains from -.2 to 1
PENALTY = Linear(0.5)  # .5 and 1


def estimates_of(rewards, seconds, limit=2.0, **options):
    estimates = GainEstimates(1, LIMITS, **({"cost": COST, "penalty": PENALTY} | options))
    for reward, took in zip(rewards, seconds, strict=True):
        record(estimates, 0, limit, reward, took if took <= limit else math.inf)
    return estimates


def bounds_of(estimates, point, delta=0.1):
    lows, highs = estimates.bounds(0, np.full(len(LIMITS), delta))
    return lows[point], highs[point]


def weights_of(estimates, point):
    weights, values = _observed(estimates.tallies.cells[0, [point]], estimates.rule)
    return weights[0], values[0]


# What a second costs; beyond .25 the bins are no longer equidistant.
slopes = st.sampled_from([0.0, 0.1, 0.25, 10.0, 1e4]) | st.floats(0.0, 3.0)

outcomes = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 3.0)), min_size=1, max_size=30
).map(lambda pairs: tuple(zip(*pairs, strict=True)))


@given(seen=outcomes, slope=slopes, fine=slopes, level=st.floats(1e-3, 3.0))
def test_spreading_only_raises_the_bound(seen, slope, fine, level):
    estimates = estimates_of(*seen, cost=Linear(slope), penalty=Linear(fine))
    for point, limit in enumerate(LIMITS):
        weights, values = weights_of(estimates, point)
        worths = [
            reward - slope * took if took <= limit else -fine * limit
            for reward, took in zip(*seen, strict=True)
        ]
        exact = bound_of([1.0] * len(worths), worths, level)
        close = 1e-9 * (1.0 + slope + fine)
        assert bound_of(weights.tolist(), values.tolist(), level) >= exact - close


class TestBoundsOnTheGain:
    def test_nothing_known(self):
        # Everything between the penalty, or the cost, of the limit and a reward of 1 for nothing.
        estimates = estimates_of([], [])
        assert bounds_of(estimates, 0) == (-0.5, 1.0)
        assert bounds_of(estimates, 1) == (-1.0, 1.0)
        dear = estimates_of([], [], cost=Linear(2.0), reward_range=(5.0, 7.0))
        assert bounds_of(dear, 0) == (5.0 - 2.0, 7.0)
        assert bounds_of(dear, 1) == (5.0 - 4.0, 7.0)

    @given(seen=outcomes, delta=st.floats(0.001, 0.5))
    def test_as_by_the_dual(self, seen, delta):
        estimates = estimates_of(*seen)
        weights, values = weights_of(estimates, 1)
        n = float(weights.sum())
        level = (math.log(2.0 / delta) + math.log(n + 1.0) + 1.0) / n
        low, high = bounds_of(estimates, 1, delta)
        assert high == pytest.approx(by_the_dual(weights, values, level), abs=1e-6)
        # The lower one is the upper one of what is lost, and no gain is below -1.
        mirrored = by_the_dual(weights, -values, level)
        assert low == pytest.approx(-mirrored, abs=1e-6)

    def test_a_penalty_never_suffered_might_come(self):
        # 100 good pulls, none stopped; but a stop costs 10: P(stop) <= 1 - exp(-level).
        estimates = estimates_of([1.0] * 100, [0.0] * 100, penalty=Deadline(0.0, 1.5, 5.0))
        level = (math.log(2.0 / 0.05) + math.log(101.0) + 1.0) / 100.0
        kept = math.exp(-level)
        low, high = bounds_of(estimates, 1, 0.05)
        assert low == pytest.approx(kept * 1.0 + (1.0 - kept) * -10.0, abs=1e-6)
        assert high == pytest.approx(1.0, abs=1e-6)
        exact = bounds_on_gain(estimates.tallies, estimates.rule, 0, np.array([1]), np.array([0.0]))
        assert exact == (pytest.approx([1.0]), pytest.approx([1.0]))


def misses_at_any_time(seed, rounds, delta):
    """Whether an interval, and one that forgets the penalty, ever missed; its width at the end."""
    # The longest pulls are rarely stopped, but dearly: the gains are very skewed.
    limits, penalty = (0.5, 1.0), Deadline(slope=0.1, deadline=0.5, fine=12.0)
    policy = RCUCB(2, limits, cost=COST, penalty=penalty, reward_range=(0.0, 1.0), delta=delta)
    rng = np.random.default_rng(seed)
    # Seconds .4 or .8, or 2, too long for either; rewards 1 or 0.
    late, slow, good = (0.04, 0.07), (0.5, 0.3), (0.8, 0.7)
    truth = np.array(
        [
            [
                (1.0 - s - b) * (p - 0.04) - (s + b) * 0.05,
                (1.0 - s - b) * (p - 0.04) + s * (p - 0.08) - b * 12.0,
            ]
            for b, s, p in zip(late, slow, good, strict=True)
        ]
    )
    missed = refuted = False
    for _ in range(rounds):
        [pull] = policy.ask()
        arm = pull.arm
        chance = rng.random()
        took = 2.0 if chance < late[arm] else 0.8 if chance < late[arm] + slow[arm] else 0.4
        if took > pull.limit:
            observation = Observation(None, cost=pull.limit, censored_at=pull.limit)
        else:
            observation = Observation(float(rng.random() < good[arm]), cost=took)
        policy.tell(pull, observation)
        gains = policy.estimate(arm)
        counts = policy.plays[arm].sum(), policy.plays[arm, 1]
        for point in range(2):
            low, high = policy.interval(arm, point)
            missed |= not low <= truth[arm, point] <= high
            if counts[point]:
                half = math.sqrt(math.log(8.0 / delta) / (2.0 * counts[point]))
                refuted |= abs(gains[point] - truth[arm, point]) > half
    low, high = policy.interval(0, 0)
    return missed, refuted, high - low


@pytest.mark.slow
def test_intervals_hold_at_all_times_while_the_policy_chooses():
    delta, seeds = 0.1, 30
    runs = [misses_at_any_time(seed, 200, delta) for seed in range(seeds)]
    missed, refuted, widths = zip(*runs, strict=True)
    most = delta * seeds + 4.0 * math.sqrt(delta * (1.0 - delta) * seeds)
    assert sum(missed) <= most
    # The same data refute an interval for gains within a range of 1: the test can fail.
    assert sum(refuted) > most
    assert max(widths) < 0.8
