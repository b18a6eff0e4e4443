"""What every policy with time limits promises, as tests.

    TestMyPolicy = censored(MyPolicy, LIMITS)

pytest then runs every test below on it. The instance is easy: arm 1 with the middle limit is far
ahead.
"""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation.rcucb import play as play_at_once
from mfhpo import ArmWithdrawnWarning, Observation, Pull
from mfhpo.censored import LimitRecommendation, Linear
from tests.contract.policy_contract import AskAndTellContract, numbers, seen, settings

LIMITS = (1.0, 2.0, 4.0)
COST = Linear(0.05)
PENALTY = Linear(0.2)
HORIZON = 300

# Of each arm: mean reward, least and most seconds, and how often it takes 9 instead.
ARMS = ((0.3, 0.2, 0.8, 0.0), (0.9, 1.0, 1.8, 0.05), (0.95, 3.0, 5.0, 0.0), (0.2, 0.1, 0.4, 0.1))
BEST = 1


STOPPED = Observation(None, cost=2.0, censored_at=2.0)


def outcome(rng, arm):
    reward, least, most, late = ARMS[arm]
    seconds = 9.0 if rng.random() < late else rng.uniform(least, most)
    return reward + rng.uniform(-0.05, 0.05), seconds


def observe(rng, pull, failure_rate=0.0):
    if rng.random() < failure_rate:
        return Observation(None, cost=0.1)
    reward, seconds = outcome(rng, pull.arm)
    if pull.limit is not None and seconds > pull.limit:
        return Observation(None, cost=pull.limit, censored_at=pull.limit)
    return Observation(reward, cost=seconds)


class CensoredPolicyContract(AskAndTellContract):
    best, second_best = BEST, 0
    certifies = False
    most_pulls = HORIZON
    replayed = 130
    knows_limits = True  # they are `LIMITS`; otherwise they are found out, or differ between arms
    longest = None  # limit of the pulls while limits are found out

    def new(self):
        return self.make()

    def observe(self, rng, pull, failure_rate=0.0):
        return observe(rng, pull, failure_rate)

    def anything(self, rng):
        limit = rng.choice([None, 0.3, 1.0, 1.7, 2.0, 4.0, 50.0, math.inf])
        pull, chance = Pull(int(rng.integers(4)), 0, limit), rng.random()
        if chance < 0.05:
            at = float(rng.uniform(0.1, 3.0))
            return pull, Observation(None, cost=at, censored_at=at)
        return pull, Observation(math.nan, cost=0.5) if chance < 0.1 else observe(rng, pull)

    def check_pulls(self, policy, pulls, expected):
        assert len(pulls) == expected
        for pull in pulls:
            assert isinstance(pull, Pull)
            assert pull.arm in policy.active
            assert pull.fidelity == 0
            assert type(pull.arm) is int  # they go into JSON
            assert isinstance(pull.limit, (float, type(None)))
            if policy.limits is None:
                assert pull.limit == self.longest
            elif self.knows_limits:
                assert pull.limit in LIMITS
            else:
                assert 0.0 < pull.limit < math.inf

    def check_answer(self, policy):
        answer = policy.recommend()
        assert isinstance(answer, LimitRecommendation)
        json.dumps(answer.to_dict(), allow_nan=False)
        assert not answer.certified
        assert answer.reason
        assert answer.assumptions
        assert answer.finished == policy.finished
        assert answer.pulls == policy.pulls
        assert answer.cost == policy.cost
        assert answer.survivors == tuple(policy.active.tolist())
        assert answer.censored == policy.n_censored / max(1, policy.pulls)
        low, high = answer.interval
        assert low <= high
        leading = policy.leader()
        assert leading[0] == answer.arm
        assert leading[2:] == (answer.interval, 0)
        if answer.arm is None:
            assert math.isnan(answer.mean)
            assert answer.limit is None
            assert answer.survival == ()
            return
        assert answer.arm in policy.active
        assert leading[1] == answer.mean
        assert low <= answer.mean <= high
        assert answer.limit in [point.limit for point in answer.survival]
        survival = [point.probability for point in answer.survival]
        assert len(survival) == len(policy.estimate(answer.arm))
        for point in answer.survival:
            assert 0.0 <= point.low <= point.probability <= point.high <= 1.0
        count, mean, half = policy.summary(answer.arm)
        assert count > 0
        assert mean == answer.mean
        assert half == pytest.approx(0.5 * (high - low))

    def check_end(self, policy):
        assert policy.finished
        answer = policy.recommend()
        assert answer.arm == BEST
        assert answer.limit is not None
        if self.knows_limits:
            assert answer.limit == 2.0
            # .95 (.9 - .05 * 1.4) - .05 * .4
            assert answer.interval[0] <= 0.77 <= answer.interval[1]
        self.check_answer(policy)

    def test_a_new_policy_has_an_answer(self):
        policy = self.make()
        assert not policy.finished
        assert policy.cost == 0.0
        assert policy.pulls == policy.n_censored == 0
        assert policy.active.tolist() == [0, 1, 2, 3]
        assert policy.summary(0) == pytest.approx((0, math.nan, math.inf), nan_ok=True)
        assert policy.fidelity == 0
        assert policy.piloting == (policy.limits is None)
        assert policy.recommend().arm is None
        self.check_answer(policy)

    def test_in_order_it_ends_at_the_horizon_with_the_right_answer(self):
        policy = self.make()
        script = self.play(policy, np.random.default_rng(0), 2 * HORIZON)
        assert len(script) == policy.pulls == HORIZON
        self.check_end(policy)
        assert policy.cost == pytest.approx(sum(observation.cost for _, observation in script))
        stopped = [observation.censored_at is not None for _, observation in script]
        assert policy.n_censored == sum(stopped)
        # It serves the reward: the best arm is what is mostly pulled.
        arms = np.bincount([pull.arm for pull, _ in script], minlength=4)
        assert arms.argmax() == BEST
        assert policy.recommend().censored == sum(stopped) / HORIZON
        assert f"the horizon of {HORIZON} rounds" in policy.recommend().reason
        self.go_on(policy, np.random.default_rng(5))
        assert policy.pulls == HORIZON + 30

    @settings(max_examples=6)
    @given(seed=numbers, rounds=st.integers(0, 60), without=st.sets(st.integers(0, 3)))
    def test_arms_that_cannot_be_pulled_now_are_left_out_this_time(self, seed, rounds, without):
        policy = self.make(horizon=None)
        rng = np.random.default_rng(seed)
        self.play(policy, rng, rounds)
        before = policy.ask(3)
        others = policy.ask(3, without=without)
        self.check_pulls(policy, others, 3 if len(without) < 4 else 0)
        assert not without & {pull.arm for pull in others}
        assert policy.ask(3, without=without) == others
        assert policy.ask(3) == before

    def test_wrong_input_is_an_error_and_changes_nothing(self):
        policy = self.make()
        self.play(policy, np.random.default_rng(4), 20)
        before = seen(policy)
        for pull, message in (
            (Pull(4, 0, 1.0), "arm must be 0 to 3, got 4"),
            (Pull(0, 1, 1.0), "fidelity must be 0, got 1"),
            (Pull(0, 0, 0.0), r"limit must be a positive number of seconds or None, got 0\.0"),
        ):
            with pytest.raises(ValueError, match=message):
                policy.tell(pull, Observation(0.5, cost=0.5))
            with pytest.raises(ValueError, match=message):
                policy.ask(1, [pull])
        with pytest.raises(ValueError, match="cost=None: tell how many seconds"):
            policy.tell(Pull(0, 0, 1.0), Observation(0.5))
        with pytest.raises(ValueError, match=r"rounds must be .* got -1"):
            play_at_once(policy, lambda arm, size: (np.zeros(size), np.zeros(size)), -1)
        assert seen(policy) == before

    def twins_after(self, first, second):
        policies = self.make(), self.make()
        script = self.play(self.make(), np.random.default_rng(8), 60)
        for policy, rest in zip(policies, (first, second), strict=True):
            for told in [*script, *rest]:
                policy.tell(*told)
        return policies

    def check_alike(self, one, other):
        assert one.ask(6) == other.ask(6)
        left, right = one.recommend().to_dict(), other.recommend().to_dict()
        left.pop("cost"), right.pop("cost")
        assert left == right
        for arm in one.active.tolist():
            assert np.array_equal(one.estimate(arm), other.estimate(arm), equal_nan=True)

    @pytest.mark.parametrize(
        ("told", "same"),
        [
            # It ended too late.
            (Observation(0.9, cost=2.5), STOPPED),
            # It was stopped early: if it told nothing of its limit, those that ended alone would.
            (Observation(None, cost=1.3, censored_at=1.3), STOPPED),
            (Observation(None, cost=1.999, censored_at=1.999), STOPPED),
            # It failed, which teaches nothing.
            (Observation(None, cost=0.7), None),
        ],
    )
    def test_what_counts_as_stopped_at_the_limit_or_not_at_all(self, told, same):
        pull = Pull(1, 0, 2.0)
        one, other = self.twins_after([(pull, told)], [] if same is None else [(pull, same)])
        self.check_alike(one, other)
        paid = told.cost - (0.0 if same is None else same.cost)
        assert one.cost == pytest.approx(other.cost + paid)
        assert (one.pulls, one.n_censored) == (other.pulls, other.n_censored)

    def test_an_arm_that_keeps_failing_leaves_with_a_warning(self):
        policy, _ = self.twins_after([], [])
        pull, failure = Pull(2, 0, 2.0), Observation(math.nan, cost=0.1)
        policy.tell(pull, failure)
        policy.tell(pull, failure)
        policy.tell(pull, Observation(None, cost=2.0, censored_at=2.0))
        policy.tell(pull, failure)
        policy.tell(pull, failure)
        assert 2 in policy.active
        with pytest.warns(ArmWithdrawnWarning, match="leaves the race: 3 pulls in a row"):
            policy.tell(pull, failure)
        assert policy.active.tolist() == [0, 1, 3]
        assert policy.recommend().compared == 3
        self.check_pulls(policy, policy.ask(9), 9)
        policy.tell(pull, failure)  # from a worker that did not know: no second warning
        policy.tell(pull, Observation(0.5, cost=1.0))
        self.check_pulls(policy, policy.ask(9), 9)
        self.check_answer(policy)

    def check_withdrawn(self, policy):
        answer = policy.recommend()
        assert answer.compared == 3
        assert any("arm 1" in words for words in answer.assumptions)

    def test_later_tells_of_a_repeat_count_for_the_other_arm(self):
        later = self.play(self.make(), np.random.default_rng(13), 30)
        policy, expected = self.twins_after([], [])
        for one in (policy, expected):
            one.withdraw(3, duplicate_of=0)
        pulls = policy.summary(0)[0]
        for pull, observation in later:
            expected.tell(Pull(0, 0, pull.limit), observation)
            policy.tell(Pull(3, 0, pull.limit), observation)
        assert seen(policy) == seen(expected)
        self.check_alike(policy, expected)
        assert policy.summary(0) == expected.summary(0)
        assert policy.summary(0)[0] == pulls + len(later)
        assert policy.active.tolist() == [0, 1, 2]
        self.check_pulls(policy, policy.ask(9), 9)
        self.check_answer(policy)


class PlayedAtOnceContract(CensoredPolicyContract):
    def test_playing_at_once(self):
        policy = self.make()
        rng = np.random.default_rng(0)

        def draw(arm, size):
            pairs = np.array([outcome(rng, arm) for _ in range(size)])
            return pairs[:, 0], pairs[:, 1]

        play_at_once(policy, draw, 0)
        assert policy.pulls == 0
        play_at_once(policy, draw, 150)
        assert policy.pulls == 150
        self.check_answer(policy)
        # Asked and told in between, and played on, no further than the horizon.
        script = self.play(policy, rng, 20)
        assert len(script) == 20
        play_at_once(policy, draw, 2 * HORIZON)
        assert policy.pulls == HORIZON
        self.check_end(policy)
        # And past the end nothing happens, also if there were more rounds than that.
        [pull] = policy.ask()
        policy.tell(pull, observe(rng, pull))
        play_at_once(policy, draw, 10)
        assert policy.pulls == HORIZON + 1


def censored(kind, limits, knows_limits=True, **options):
    def make(self, n_arms=4, horizon=HORIZON):
        return kind(n_arms, limits, cost=COST, penalty=PENALTY, horizon=horizon, **options)

    return type("Contract", (PlayedAtOnceContract,), {"make": make, "knows_limits": knows_limits})
