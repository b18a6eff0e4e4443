import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.rcucb_instances import ArmStreams, BetaExponentialInstance
from benchmarks.simulation.rcucb import play as play_at_once
from mfhpo import Observation, Pull
from mfhpo.censored import Linear, ZoomingRCUCB
from mfhpo.censored.gain import GainEstimates
from tests.core.censored.naive import record
from tests.core.censored.test_rcucb import (
    Naive,
    asked_and_told,
    check_same,
    tell_outcome,
)

FREE = {"cost": Linear(0.0), "penalty": Linear(0.0)}
COST, PENALTY = Linear(0.1), Linear(0.5)
CHARGES = {"cost": COST, "penalty": PENALTY}


def two_arms():
    return BetaExponentialInstance([[0.8, 0.2], [0.5, 0.5]], rates=[1.0, 3.0])


@pytest.mark.parametrize(
    ("options", "pulls"),
    [
        # Eq. 14 by hand: log(n T^2 / delta) = log(1000^2 / .05) = 16.811 for one arm, and
        # sqrt(2 * 16.811 / N) <= 1 from N = 33.6 on.
        ({"confidence": "published curves"}, 34),
        # One value, .5: the bound is 1 - .5 exp(-16.811 / N), at most .7 from N = 32.9 on.
        ({"smoothness": 0.2}, 33),
        # 2 log(64^2 / .05) / 64 = .5946^2: the 64th pull is the last for which T = 64.
        ({"confidence": "published curves", "smoothness": 0.595, "horizon": None}, 64),
    ],
)
def test_the_first_split_of_one_arm_that_always_gives_a_half_at_once(options, pulls):
    policy = ZoomingRCUCB(1, 1.0, **{"horizon": 1000} | FREE | options)
    for _ in range(pulls):
        assert len(policy.points(0)) == 1
        tell_outcome(policy, policy.ask()[0], 0.5, 0.0)
    assert len(policy.points(0)) == 2


def check_eq_13_and_14(policy, horizons, confidence, rounds):
    """Play, and see that every choice and every split is what the paper says; count the splits."""
    longest, splits = 4.0, 3
    streams = ArmStreams(two_arms(), 11)
    histories = [[], []]

    def naive_of(arm, points):
        naive = Naive(1, points.tolist(), COST, PENALTY, confidence, "kaplan-meier", 0.3)
        for pull in histories[arm]:
            naive.learn(0, *pull)
        return naive

    points = [np.array([longest]), np.array([longest])]
    naives = [naive_of(arm, points[arm]) for arm in range(2)]
    n_splits = 0
    for done in range(rounds):
        [pull] = policy.ask()
        arm, limit = pull.arm, pull.limit
        factor = 2 * horizons(done) ** 2 / 0.05  # what takes the place of t
        sizes = [np.diff(points[k], prepend=0.0) / longest for k in range(2)]
        if done < 2:
            assert (arm, limit) == (done, longest)
        else:
            indices = [naives[k].indices(factor)[0] + sizes[k] for k in range(2)]
            chosen = indices[arm][points[arm] == limit]
            assert chosen.tolist() == pytest.approx([np.concatenate(indices).max()], abs=1e-8)
        [reward], [seconds] = streams(arm, 1)
        tell_outcome(policy, pull, float(reward), float(seconds))
        told = (limit, reward, seconds) if seconds <= limit else (limit, 0.0, math.inf)
        histories[arm].append(told)
        naives[arm].learn(0, *told)
        [at] = np.flatnonzero(points[arm] == limit)
        centre = naives[arm].means[0, at]
        if not confidence.startswith("kl"):
            centre = naives[arm].gains[0, at]
            centre -= naives[arm].penalties[at] * naives[arm].survivals[0, at]
        if naives[arm].indices(factor)[0, at] - centre <= sizes[arm][at]:
            below = points[arm][at - 1] if at else 0.0
            parts = np.linspace(below, limit, splits + 1)[1:-1]
            points[arm] = np.sort(np.concatenate([points[arm], parts]))
            naives[arm] = naive_of(arm, points[arm])
            n_splits += 1
        for k in range(2):
            assert policy.points(k) == pytest.approx(points[k])
            # To the last bit, for the comparison of limits above.
            points[k] = policy.points(k)
    return n_splits


@pytest.mark.parametrize(
    ("confidence", "horizon", "least"),
    [("kl", 400, 4), ("published curves", 400, 4), ("kl", None, 2)],
)
def test_as_the_naive_rule(confidence, horizon, least):
    policy = ZoomingRCUCB(
        2, 4.0, splits=3, horizon=horizon, confidence=confidence, exploration=0.3, **CHARGES
    )

    def horizons(done):
        return horizon or (64 if done < 64 else 128 if done < 128 else 256)

    assert check_eq_13_and_14(policy, horizons, confidence, horizon or 250) >= least


@pytest.mark.parametrize("horizon", [400, None])
@pytest.mark.parametrize("confidence", ["kl", "printed", "published curves"])
def test_played_at_once_or_asked_and_told(confidence, horizon):
    options = {"confidence": confidence, "exploration": 0.1, "horizon": horizon, **CHARGES}
    at_once, one_by_one = ZoomingRCUCB(2, 4.0, **options), ZoomingRCUCB(2, 4.0, **options)
    play_at_once(at_once, ArmStreams(two_arms(), 4), 400)
    asked_and_told(one_by_one, ArmStreams(two_arms(), 4), 400)
    check_same(at_once, one_by_one)
    assert len(at_once.points(0)) + len(at_once.points(1)) > 4


class TestNewPoints:
    @settings(max_examples=15)
    @given(
        seed=st.integers(0, 10_000),
        rounds=st.integers(1, 300),
        survival=st.sampled_from(["kaplan-meier", "count"]),
    )
    def test_they_know_what_they_would_have_seen(self, seed, rounds, survival):
        policy = ZoomingRCUCB(
            2, 4.0, horizon=300, exploration=0.2, survival=survival, smoothness=2.0, **CHARGES
        )
        play_at_once(policy, ArmStreams(two_arms(), seed), rounds)
        history = list(zip(*policy.history.arrays(), strict=True))
        for arm in range(2):
            points = policy.points(arm)
            assert (np.diff(points) > 0.0).all()
            assert points[-1] == 4.0
            fresh = GainEstimates(1, points, survival=survival, **CHARGES)
            for pulled, limit, reward, seconds in history:
                if pulled == arm:
                    record(fresh, 0, limit, reward, seconds)
            assert policy.survival(arm) == pytest.approx(fresh.survival(0))
            assert policy.estimate(arm) == pytest.approx(fresh.gains(0), nan_ok=True)
            played = [sum((a, tau) == (arm, point) for a, tau, *_ in history) for point in points]
            assert policy.plays[arm, : len(points)].tolist() == played
            counts = [sum(a == arm and tau >= point for a, tau, *_ in history) for point in points]
            for point, count in enumerate(counts):
                # A point that nothing tells of has the widest interval there is.
                low, high = policy.interval(arm, point)
                assert low < high
                assert count > 0 or high == 1.0


def test_intervals_share_delta_among_all_points_there_could_be():
    # Of depth d there are at most 2 * 2^d points; together with 1 / ((d + 1) (d + 2)) it is
    # delta. The first point has delta / (2 * 2), those of a split delta / (4 * 2 * 3).
    policy = ZoomingRCUCB(2, 4.0, smoothness=9.0, horizon=100, delta=0.1, **FREE)
    reference = GainEstimates(1, [2.0, 4.0], **FREE)
    for _ in range(5):
        policy.tell(Pull(0, 0, 4.0), Observation(0.5, cost=0.0))
        record(reference, 0, 4.0, 0.5, 0.0)
    points = policy.points(0)
    [at] = np.flatnonzero(points == 2.0)
    lows, highs = reference.bounds(0, 0.1 / np.array([24.0, 4.0]))
    assert policy.interval(0, int(at)) == (lows[0], highs[0])
    assert policy.interval(0, len(points) - 1) == (lows[1], highs[1])
