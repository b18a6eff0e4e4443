import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo import Observation, Pull
from mfhpo.censored import RCUCB, Linear
from mfhpo.experiment import Answer

CHARGES = {"cost": Linear(0.01), "penalty": Linear(0.02)}


def tell_seconds(policy, seconds):
    for k, took in enumerate(seconds):
        [pull] = policy.ask()
        assert pull.arm == k % policy.n_arms
        if took is None:
            limit = pull.limit
            policy.tell(pull, Observation(None, cost=limit, censored_at=limit))
        else:
            policy.tell(pull, Observation(0.5, cost=took))


def limits_after(seconds, n_limits=3, longest=None, n_arms=2):
    policy = RCUCB(n_arms, n_limits, longest=longest, **CHARGES)
    tell_seconds(policy, seconds)
    return policy.limits.tolist()


class TestDerivedLimits:
    def test_by_hand(self):
        # The quartiles of 1, 2, 4, 10 are at places .75 and 2.25: 1.75 and 5.5.
        assert limits_after([4.0, 1.0, 10.0, 2.0]) == pytest.approx([1.75, 3.625, 5.5])
        assert limits_after([4.0, 1.0, 10.0, 2.0], n_limits=2) == pytest.approx([1.75, 5.5])

    @given(
        seconds=st.lists(
            st.lists(st.floats(0.1, 50.0), min_size=2, max_size=2), min_size=3, max_size=3
        ),
        seed=st.integers(0, 1000),
    )
    def test_in_whatever_order_the_arms_come_back(self, seconds, seed):
        rng = np.random.default_rng(seed)
        left = [list(took) for took in seconds]
        policy = RCUCB(3, 4, **CHARGES)
        waiting = rng.permutation(np.repeat(np.arange(3), 4)).tolist()
        for arm in waiting:
            took = left[arm].pop(0) if left[arm] else 99.0
            if policy.limits is None:
                policy.tell(Pull(arm, 0, None), Observation(0.5, cost=took))
        quartiles = np.quantile(seconds, (0.25, 0.75))
        if quartiles[0] < quartiles[1]:
            expected = np.linspace(*quartiles, 4)
            assert policy.limits == pytest.approx(np.maximum(expected, 1e-3 * expected[-1]))

    def test_a_clock_that_measured_nothing(self):
        limits = limits_after([0.0] * 4)
        assert limits[0] > 0.0
        assert (np.diff(limits) > 0.0).all()
        # Half of them 0, and the quartiles 0 and 3: in equal parts up to that.
        assert limits_after([0.0, 0.0, 6.0, 2.0]) == pytest.approx([1.0, 2.0, 3.0])

    @given(
        seconds=st.lists(st.floats(0.0, 1e6) | st.just(None), min_size=4, max_size=4),
        n_limits=st.integers(1, 12),
    )
    def test_always_limits(self, seconds, n_limits):
        policy = RCUCB(2, n_limits, longest=2e6, reward_range=(0.0, 1.0))
        tell_seconds(policy, seconds)
        if policy.limits is None:
            tell_seconds(policy, [1.0, None])
        limits = policy.limits
        assert 1 <= len(limits) <= n_limits
        assert limits[0] > 0.0
        assert limits[-1] <= 2e6
        assert (np.diff(limits) > 0.0).all()
        for pull in policy.ask(5):
            assert pull.limit in limits

    def test_an_arm_that_keeps_failing_is_not_waited_for(self):
        policy = RCUCB(3, 3, **CHARGES)
        for arm, took in ((0, 4.0), (1, 1.0), (0, 10.0), (1, 2.0)):
            policy.tell(Pull(arm, 0, None), Observation(0.5, cost=took))
        assert policy.piloting
        policy.withdraw(2)
        assert policy.limits.tolist() == pytest.approx([1.75, 3.625, 5.5])


class TestTheRangeOfTheRewards:
    @staticmethod
    def told(policy, rewards):
        for k, reward in enumerate(rewards):
            policy.tell(Pull(k % 2, 0, 4.0), Observation(reward, cost=0.5 + k % 4))
        policy.tell(Pull(0, 0, 4.0), Observation(None, cost=4.0, censored_at=4.0))
        return policy

    @given(
        rewards=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12).filter(
            lambda values: max(values) - min(values) > 1e-3
        )
    )
    def test_as_if_it_had_been_declared(self, rewards):
        seen = min(rewards), max(rewards)
        found = self.told(RCUCB(2, [1.0, 4.0], reward_range=None), rewards)
        declared = self.told(RCUCB(2, [1.0, 4.0], reward_range=seen), rewards)
        assert found.reward_range == seen
        for arm in range(2):
            assert found.estimate(arm) == pytest.approx(
                declared.estimate(arm), rel=1e-9, abs=1e-9 * (seen[1] - seen[0]), nan_ok=True
            )
        assert found.ask(4) == declared.ask(4)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("first", [1e20, -1e49, 3e-300])
    def test_a_first_reward_of_any_size(self, first):
        # To add a half to it would be no range: a float cannot tell the ends apart.
        policy = RCUCB(2, [1.0, 4.0], reward_range=None)
        policy.tell(Pull(0, 0, 4.0), Observation(first, cost=2.0))
        low, high = policy.reward_range
        assert low < first < high
        mean = policy.estimate(0)[1]
        assert low <= mean <= high
        # The first two seconds of four cost a twentieth of the range.
        assert mean == pytest.approx(first - (high - low) / 20.0)
        assert policy.recommend().arm == 0
        for reward in (first, 0.5 * first):
            [pull] = policy.ask()
            policy.tell(pull, Observation(reward, cost=0.5))
        assert policy.reward_range == (min(first, 0.5 * first), max(first, 0.5 * first))
        answer = policy.recommend()
        assert answer.interval[0] <= answer.mean <= answer.interval[1]

    @pytest.mark.parametrize(
        ("limits", "reward_range", "words"),
        [
            ([1.0, 4.0], (0.0, 5.0), "wrong with probability at most 0.05"),
            ([1.0, 4.0], None, "approximate: the range of the values is estimated"),
            (2, (0.0, 5.0), "approximate: the limits are estimated"),
            (2, None, "approximate: the range of the values and the limits are estimated"),
        ],
    )
    def test_a_probability_is_claimed_only_for_what_was_declared(self, limits, reward_range, words):
        policy = self.told(RCUCB(2, limits, reward_range=reward_range), [1.0, 3.0])
        shown = Answer.of(policy.recommend(), 1.0, {"x": 1})
        assert f"  interval    {words}\n" in str(shown)

    def test_a_failure_is_no_reward(self):
        policy = self.told(RCUCB(2, [1.0, 4.0], reward_range=None), [2.0, 7.0])
        policy.tell(Pull(0, 0, 4.0), Observation(math.inf, cost=1.0))
        policy.tell(Pull(0, 0, 4.0), Observation(-1e200, cost=1.0))
        assert policy.reward_range == (2.0, 7.0)
        policy.tell(Pull(0, 0, 4.0), Observation(99.0, cost=6.0))
        assert policy.reward_range == (2.0, 7.0)


def test_limits_are_derived_below_the_longest_where_nearly_all_pulls_were_stopped_there():
    limits = limits_after([2.0] + 7 * [None], n_limits=10, longest=10.0, n_arms=8)
    assert len(limits) == 10
    assert limits[0] <= 2.0
    assert limits[-1] == 10.0
