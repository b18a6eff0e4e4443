import dataclasses
import math
import warnings

import numpy as np
import pytest

from benchmarks.papers.rcucb_instances import (
    LOCK_IN_LIMITS,
    LOCK_IN_PENALTY,
    PUBLISHED_COST,
    PUBLISHED_PENALTY,
    ArmStreams,
    BetaExponentialInstance,
    ReplayedCensoredInstance,
    lock_in,
)
from benchmarks.simulation.rcucb import play as play_at_once
from mfhpo import Observation, Pull
from mfhpo.censored import RCUCB, Linear
from tests.core.censored.naive import bins_between, charged, largest_means, spread

CONFIDENCES = ("kl", "kl+", "bernstein", "printed", "published curves")
LIMITS = (0.3, 0.6, 0.9)
PAPER = {"cost": PUBLISHED_COST, "penalty": PUBLISHED_PENALTY}


def three_arms():
    return BetaExponentialInstance([[0.8, 0.2], [0.5, 0.5], [0.6, 0.3]], rates=[3.0, 9.0, 5.0])


def easy_arms():
    rewards = [[0.0, 0.5, 1.0, 1.0], [0.5, 0.5, 0.5, 1.0], [0.0, 0.0, 1.0, 0.0]]
    seconds = [[0.3, 0.6, 0.6, 0.9], [0.1, 0.1, 0.2, 0.95], [0.9, 0.1, 0.3, 0.2]]
    return ReplayedCensoredInstance(rewards, seconds)


def tell_outcome(policy, pull, reward, seconds):
    if seconds <= pull.limit:
        policy.tell(pull, Observation(reward, cost=seconds))
    else:
        policy.tell(pull, Observation(None, cost=pull.limit, censored_at=pull.limit))


def asked_and_told(policy, streams, rounds):
    for _ in range(rounds):
        [pull] = policy.ask()
        [reward], [seconds] = streams(pull.arm, 1)
        tell_outcome(policy, pull, float(reward), float(seconds))


def check_same(one, other):
    for values, others in zip(one.history.arrays(), other.history.arrays(), strict=True):
        assert np.array_equal(values, others, equal_nan=True)
    assert one.cost == pytest.approx(other.cost)


class Naive:
    """Eq. 12 without any shortcut, for rewards in [0, 1]: every index anew in every round."""

    def __init__(self, n_arms, limits, cost, penalty, confidence, survival, alpha):
        self.limits = np.array(limits)
        self.cost, self.penalties = cost, np.array([charged(penalty, tau) for tau in limits])
        # The least gain of a pull that ends by each of the limits, and the largest of all.
        self.floors, self.top = np.array([-charged(cost, tau) for tau in limits]), 1.0
        self.confidence, self.survival, self.alpha = confidence, survival, alpha
        shape = n_arms, len(limits)
        self.histories = [[] for _ in range(n_arms)]
        self.counts, self.gains, self.survivals = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.means, self.variances = np.zeros(shape), np.zeros(shape)
        self.weights = np.zeros((*shape, 6))
        bins = np.array([bins_between(floor, self.top) for floor in self.floors])
        self.values = np.tile(np.column_stack([bins, -self.penalties]), (n_arms, 1, 1))

    def learn(self, arm, limit, reward, seconds):
        self.histories[arm].append((limit, reward, seconds))
        limits, rewards, took = np.array(self.histories[arm]).T
        # A stopped pull ran as long as its limit; the arrays below never ask for more.
        gains = rewards - self.cost(np.where(np.isinf(took), 0.0, took))
        surviving, earlier = 1.0, -1.0
        for point, tau in enumerate(self.limits):
            told = limits >= tau
            ended = told & (took <= tau)
            count = told.sum()
            worths = np.where(took <= tau, gains, -self.penalties[point])[told]
            self.counts[arm, point] = count
            if count:
                self.gains[arm, point] = gains[ended].sum() / count
                self.means[arm, point] = worths.mean()
                self.variances[arm, point] = worths.var()
                self.weights[arm, point, :5] = spread(gains[ended], self.values[arm, point, :5])
                self.weights[arm, point, 5] = count - ended.sum()
            at_risk = told & (took > earlier)
            if at_risk.any():
                surviving *= 1.0 - (at_risk & ended).sum() / at_risk.sum()
            counted = (took > tau).mean()
            self.survivals[arm, point] = counted if self.survival == "count" else surviving
            earlier = tau

    def indices(self, round_number, under_way=()):
        """Pulls under way narrow the bounds, as if they had come out like those before."""
        counts, totals = self.counts.copy(), np.array([len(told) for told in self.histories])
        for pull in under_way:
            counts[pull.arm] += self.limits <= pull.limit
            totals[pull.arm] += 1
        level = self.alpha * math.log(round_number) / counts
        if self.confidence.startswith("kl"):
            if self.confidence == "kl+":
                level = self.alpha * np.maximum(np.log(round_number / counts), 0.0) / counts
            flat = self.weights.reshape(-1, 6), self.values.reshape(-1, 6)
            return largest_means(*flat, level.ravel(), self.top).reshape(level.shape)
        if self.confidence == "bernstein":
            width = self.top - np.minimum(self.floors, -self.penalties)
            return self.means + np.sqrt(2.0 * self.variances * level) + 3.0 * width * level
        index = self.gains - self.penalties * self.survivals + np.sqrt(2.0 * level)
        if self.confidence == "printed":
            length = np.sqrt(2.0 * self.alpha * math.log(round_number) / totals)
            index += self.penalties * length[:, None]
        return np.asarray(index)


class TestTheSamePlays:
    @pytest.mark.parametrize("instance", [three_arms(), easy_arms()], ids=["skewed", "ties"])
    @pytest.mark.parametrize("confidence", CONFIDENCES)
    def test_as_the_naive_rule_at_once_or_asked_and_told(self, confidence, instance):
        survival = "count" if confidence == "published curves" else "kaplan-meier"
        alpha = 1.0 if confidence != "printed" else 0.5
        options = {"confidence": confidence, "survival": survival, "exploration": alpha}
        policy = RCUCB(3, LIMITS, **PAPER, **options)
        play_at_once(policy, ArmStreams(instance, 5), 500)
        naive = Naive(3, LIMITS, *PAPER.values(), confidence, survival, alpha)
        arms, limits = policy.history.arms, policy.history.limits
        assert list(zip(arms[:3], limits[:3], strict=True)) == [(0, 0.9), (1, 0.9), (2, 0.9)]
        tied = 0
        for t, (arm, limit) in enumerate(zip(arms, limits, strict=True), start=1):
            if t > 3:
                indices = naive.indices(t)
                best = indices.max()
                # Which of equal ones is played is open; equal up to rounding, that is.
                assert indices[arm, LIMITS.index(limit)] >= best - 1e-8
                tied += int((indices >= best - 1e-8).sum() > 1)
            reward, seconds = policy.history.rewards[t - 1], policy.history.seconds[t - 1]
            naive.learn(arm, limit, 0.0 if math.isinf(seconds) else reward, seconds)
        assert tied < 250
        assert len(set(zip(arms[-400:], limits[-400:], strict=True))) >= 2
        for arm in range(3):
            expected = naive.gains[arm] - naive.penalties * naive.survivals[arm]
            assert policy.estimate(arm) == pytest.approx(expected)
        one_by_one = RCUCB(3, LIMITS, **PAPER, **options)
        asked_and_told(one_by_one, ArmStreams(instance, 5), 500)
        check_same(policy, one_by_one)
        assert policy.plays.tolist() == one_by_one.plays.tolist()
        assert policy.ask(3) == one_by_one.ask(3)
        answers = policy.recommend(), one_by_one.recommend()
        assert answers[0] == dataclasses.replace(answers[1], cost=answers[0].cost)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_with_four_workers_at_all_times(confidence):
    # What is known of the indices from asks before must not stand in for what is asked now.
    policy = RCUCB(3, LIMITS, **PAPER, confidence=confidence)
    naive = Naive(3, LIMITS, *PAPER.values(), confidence, "kaplan-meier", 1.0)
    streams, rng = ArmStreams(three_arms(), 3), np.random.default_rng(3)
    pending = policy.ask(3)
    for told in range(250):
        [pull] = policy.ask(1, pending)
        if naive.counts[:, -1].all():
            indices = naive.indices(told + len(pending) + 1, pending)
            assert indices[pull.arm, LIMITS.index(pull.limit)] >= indices.max() - 1e-8
        pending.append(pull)
        done = pending.pop(int(rng.integers(len(pending))))
        [reward], [seconds] = streams(done.arm, 1)
        tell_outcome(policy, done, float(reward), float(seconds))
        ended = seconds <= done.limit
        naive.learn(done.arm, done.limit, *((reward, seconds) if ended else (0.0, math.inf)))
    assert naive.counts[:, -1].all()


def test_an_arm_whose_first_pull_does_not_come_back_is_played_again():
    """After four rounds for each of three arms, and whenever the rounds have doubled."""
    policy, streams = RCUCB(3, LIMITS, **PAPER), ArmStreams(three_arms(), 3)
    under_way = policy.ask()
    begun_at = []
    for round_number in range(2, 100):
        [pull] = policy.ask(1, under_way)
        if pull.arm == under_way[0].arm:
            under_way.append(pull)
            begun_at.append(round_number)
            continue
        [reward], [seconds] = streams(pull.arm, 1)
        tell_outcome(policy, pull, float(reward), float(seconds))
    assert begun_at == [12, 24, 48, 96]


class TestTies:
    @staticmethod
    def tell_alike(policy, pull):
        # All arms alike, the outcomes by their own count: 2 of 7 are stopped.
        number = policy.summary(pull.arm)[0]
        reward = (0.31, 0.77, 0.13, 0.59, 0.97, 0.41, 0.83)[number % 7]
        seconds = (0.11, 0.43, 2.0, 0.29, 0.71, 2.0, 0.17)[number % 7]
        tell_outcome(policy, pull, reward, seconds)

    @pytest.mark.parametrize(("n_arms", "confidence"), [(2, "kl"), (4, "kl+"), (7, "kl")])
    def test_a_policy_that_is_told_all_again_makes_the_same_choices(self, n_arms, confidence):
        def make():
            return RCUCB(n_arms, LIMITS, **PAPER, confidence=confidence)

        policy = make()
        asked = []
        for _ in range(240):
            [pull] = policy.ask()
            asked.append(pull)
            self.tell_alike(policy, pull)
        assert np.ptp([policy.summary(arm)[0] for arm in range(n_arms)]) <= 60
        for cut in range(0, 240, 25):
            resumed = make()
            for pull in asked[:cut]:
                self.tell_alike(resumed, pull)
            for pull in asked[cut : cut + 25]:
                assert resumed.ask() == [pull]
                self.tell_alike(resumed, pull)


# PAR-10 of an hour against accuracies: gains down to -36,000 and bounds around 0.
CASES = (
    ((60.0, 600.0, 3600.0), None, Linear(10), (0.0, 1.0)),
    ((60.0, 600.0, 3600.0), Linear(1.0), Linear(1.0), (0.9, 0.95)),
    ((0.5, 1.0), Linear(1e9), Linear(1e9), (0.0, 1.0)),
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_answers_are_right_where_penalties_dwarf_the_rewards(confidence, case):
    limits, cost, penalty, (low, high) = case
    policy = RCUCB(
        2, limits, cost=cost, penalty=penalty, reward_range=(low, high), confidence=confidence
    )
    span = high - low

    def scaled(charge):
        return lambda seconds: charge(seconds) / span

    charges = scaled(cost or Linear(0.1 * span / limits[-1])), scaled(penalty)
    naive = Naive(2, limits, *charges, confidence, "kaplan-meier", 1.0)
    rng = np.random.default_rng(4)
    lowest = np.minimum(naive.floors, -naive.penalties)
    for told in range(90):
        [pull] = policy.ask()
        seconds = rng.exponential(0.5 * limits[-1] * (1.0 + pull.arm))
        accuracy = rng.beta(5.0, 2.0)
        tell_outcome(policy, pull, low + span * accuracy, seconds)
        ended = seconds <= pull.limit
        naive.learn(pull.arm, pull.limit, *((accuracy, seconds) if ended else (0.0, math.inf)))
        arm, mean, interval, _ = policy.leader()
        answer = policy.recommend()
        assert (arm, mean, interval) == (answer.arm, answer.mean, answer.interval)
        assert interval[0] <= mean <= interval[1] <= high + 1e-9
        if told % 10 != 9:
            continue
        delta = 0.05 / (2 * len(limits))
        for k in range(2):
            level = math.log(2.0 / delta) + np.log(naive.counts[k] + 1.0) + 1.0
            for point in np.flatnonzero(naive.counts[k]).tolist():
                seen = naive.weights[[k], point], naive.values[[k], point]
                at = level[[point]] / naive.counts[k, point]
                [most] = largest_means(*seen, at, naive.top)
                [least] = -largest_means(seen[0], -seen[1], at, -lowest[point])
                expected = low + span * np.array([least, most])
                close = 1e-6 * span * (1.0 - lowest[point])
                assert policy.interval(k, point) == pytest.approx(expected, abs=close)
    assert policy.n_censored > 0


@pytest.mark.parametrize("limit", [None, math.inf])
def test_a_pull_without_a_limit_was_stopped_where_it_was(limit):
    policy, twin = RCUCB(1, [1.0, 2.0], **PAPER), RCUCB(1, [1.0, 2.0], **PAPER)
    policy.tell(Pull(0, 0, limit), Observation(None, censored_at=1.5))
    twin.tell(Pull(0, 0, 1.5), Observation(None, cost=1.5, censored_at=1.5))
    check_same(policy, twin)
    assert policy.cost == 1.5
    assert np.isnan(policy.estimate(0)).tolist() == [False, True]


class TestLockIn:
    @staticmethod
    def late_shares(**options):
        """How often the better limit is played from round 6,000 to 8,000, for 20 seeds."""
        shares = []
        for seed in range(20):
            policy = RCUCB(
                1, LOCK_IN_LIMITS, cost=PUBLISHED_COST, penalty=LOCK_IN_PENALTY, **options
            )
            streams = ArmStreams(lock_in(), seed)
            play_at_once(policy, streams, 6000)
            before = policy.plays[0, 1]
            play_at_once(policy, streams, 2000)
            shares.append((policy.plays[0, 1] - before) / 2000.0)
        return np.array(shares)

    def test_the_count_locks_in(self):
        shares = self.late_shares(confidence="published curves", survival="count")
        assert (shares < 0.05).sum() >= 5
        # Not for its length: with the other estimate of survival, the same rule mends.
        assert self.late_shares(confidence="published curves").min() > 0.95

    @pytest.mark.parametrize("options", [{}, {"confidence": "kl"}, {"survival": "count"}])
    def test_the_default_does_not(self, options):
        assert self.late_shares(**options).min() > 0.95


class TestAnswers:
    def test_the_pair_with_the_best_lower_bound(self):
        policy = RCUCB(3, LIMITS, **PAPER)
        play_at_once(policy, ArmStreams(three_arms(), 3), 500)
        lows = np.array([[policy.interval(arm, k)[0] for k in range(3)] for arm in range(3)])
        arm, point = np.unravel_index(lows.argmax(), lows.shape)
        answer = policy.recommend()
        assert (answer.arm, answer.limit) == (arm, LIMITS[point])
        assert answer.interval == policy.interval(arm, point)
        assert answer.mean == pytest.approx(policy.estimate(arm)[point])
        survival = [probability for _, probability, _, _ in answer.survival]
        assert survival == pytest.approx(policy.survival(arm).tolist())
        assert [limit for limit, *_ in answer.survival] == list(LIMITS)

    def test_delta_is_shared_among_all_pairs(self):
        # Bonferroni: six pairs at .06 are as wide as one at .01.
        wide = RCUCB(2, LIMITS, **PAPER, delta=0.06)
        one = RCUCB(1, (0.9,), **PAPER, delta=0.01)
        for policy in (wide, one):
            tell_outcome(policy, Pull(0, 0, 0.9), 0.5, 0.2)
            tell_outcome(policy, Pull(0, 0, 0.9), 0.5, 2.0)
        assert wide.interval(0, 2) == one.interval(0, 0)
        [*_, point], [only] = wide.recommend().survival, one.recommend().survival
        assert point == only


class TestRewardsOutsideTheRange:
    def test_one_warning(self):
        policy, nearest = RCUCB(2, LIMITS, **PAPER), RCUCB(2, LIMITS, **PAPER)
        with pytest.warns(UserWarning, match=r"a value of 1\.5 lies outside reward_range=\(0"):
            tell_outcome(policy, Pull(0, 0, 0.9), 1.5, 0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tell_outcome(policy, Pull(1, 0, 0.9), -7.0, 0.2)
        tell_outcome(nearest, Pull(0, 0, 0.9), 1.0, 0.2)
        tell_outcome(nearest, Pull(1, 0, 0.9), 0.0, 0.2)
        for arm in range(2):
            assert policy.estimate(arm) == pytest.approx(nearest.estimate(arm))
        assert policy.ask(3) == nearest.ask(3)
        assert policy.reward_range == (0.0, 1.0)
