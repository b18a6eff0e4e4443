import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.censored import Linear
from mfhpo.censored.gain import GainEstimates
from tests.core.censored.naive import (
    Seen,
    charged,
    counted_survival,
    expected_gain,
    product_limit,
    record,
)

LIMITS = (1.0, 2.0, 4.0)
COST = Linear(0.1)
PENALTY = Linear(0.5)

# A reward that ends exactly at a limit, pulls stopped at every limit, and one arm hardly pulled.
HISTORY = (
    Seen(0, limit=4.0, reward=0.8, seconds=1.5),  # gain .65
    Seen(0, limit=2.0, reward=0.9, seconds=9.0),  # stopped
    Seen(1, limit=1.0, reward=0.5, seconds=9.0),  # stopped
    Seen(0, limit=1.0, reward=0.4, seconds=0.5),  # gain .35
    Seen(0, limit=4.0, reward=0.7, seconds=5.0),  # stopped
    Seen(0, limit=1.0, reward=0.7, seconds=1.1),  # stopped
    Seen(0, limit=4.0, reward=1.0, seconds=3.0),  # gain .7
    Seen(0, limit=2.0, reward=0.6, seconds=1.0),  # gain .5
)


DELTAS = np.full(len(LIMITS), 0.1)


def estimates_of(history, n_arms=2, limits=LIMITS, survival="kaplan-meier", **options):
    scale = {"cost": COST, "penalty": PENALTY} | options
    estimates = GainEstimates(n_arms, limits, survival=survival, **scale)
    for pull in history:
        seconds = math.inf if pull.stopped else pull.seconds
        record(estimates, pull.arm, pull.limit, pull.reward, seconds)
    return estimates


def content(estimates, arm):
    return [
        estimates.limits(arm).tolist(),
        estimates.counts(arm).tolist(),
        estimates.gains(arm).tolist(),
        estimates.survival(arm).tolist(),
        *(bounds.tolist() for bounds in estimates.bounds(arm, DELTAS)),
        *(bounds.tolist() for bounds in estimates.survival_bounds(arm, DELTAS)),
    ]


@st.composite
def histories(draw, limits=LIMITS, n_arms=2, most=40):
    seconds = st.sampled_from([0.0, 0.5, 1.0, 1.0001, 1.5, 2.0, 3.0, 4.0, 4.5])
    pull = st.builds(
        Seen,
        arm=st.integers(0, n_arms - 1),
        limit=st.sampled_from(limits),
        reward=st.floats(0.0, 1.0),
        seconds=seconds | st.floats(0.0, 6.0),
    )
    return draw(st.lists(pull, max_size=most))


class TestByHand:
    def test_gains(self):
        # Eq. 8: (.35 + .5) / 7, (.65 + .5) / 5, (.65 + .7) / 3; Eq. 10 with penalties .5, 1, 2.
        earned = np.array([0.85 / 7, 1.15 / 5, 1.35 / 3])
        fines = np.array([0.5, 1.0, 2.0])
        gains = estimates_of(HISTORY).gains(0)
        assert gains == pytest.approx(earned - fines * [5 / 7, 15 / 28, 15 / 56])
        gains = estimates_of(HISTORY, survival="count").gains(0)
        assert gains == pytest.approx(earned - fines * [5 / 7, 4 / 7, 3 / 7])

    def test_a_pull_that_ended_between_two_limits_before_its_own(self):
        # It tells no more of 4 than one that was stopped at 3 would: that it ended is seen only
        # where it did, and to count those alone would make the arm look quick.
        pull = Seen(0, limit=3.0, reward=1.0, seconds=2.5)
        estimates = estimates_of([*HISTORY, pull])
        stopped = estimates_of([*HISTORY, Seen(0, 3.0, 1.0, 9.0)])
        assert content(estimates, 0) == content(stopped, 0)
        # The paper's count knows that it is not beyond 4.
        counted = estimates_of([*HISTORY, pull], survival="count")
        assert counted.survival(0) == pytest.approx([6 / 8, 5 / 8, 3 / 8])


class TestAgainstTheFormulas:
    @given(history=histories())
    def test_gains(self, history):
        product = estimates_of(history)
        counted = estimates_of(history, survival="count")
        for arm in range(2):
            mine = [pull for pull in history if pull.arm == arm]
            earned = np.array([expected_gain(mine, tau, COST) for tau in LIMITS])
            for estimates, survival in ((product, product_limit), (counted, counted_survival)):
                fines = [charged(PENALTY, tau) * survival(mine, tau) for tau in LIMITS]
                assert estimates.gains(arm) == pytest.approx(earned - fines, nan_ok=True)

    def test_the_count_is_biased_and_the_product_is_not(self):
        # P(C > 1) = .6, P(C > 2) = .3. Nine in ten pulls are stopped at 1.
        rng = np.random.default_rng(0)
        seconds = rng.choice([0.5, 1.5, 3.0], p=[0.4, 0.3, 0.3], size=20_000)
        limits = rng.choice([1.0, 2.0], p=[0.9, 0.1], size=20_000)
        seconds[seconds > limits] = math.inf
        told = np.zeros(20_000, dtype=np.int64), limits, np.zeros(20_000), seconds
        product = GainEstimates(1, [1.0, 2.0], cost=COST, penalty=PENALTY)
        counted = GainEstimates(1, [1.0, 2.0], cost=COST, penalty=PENALTY, survival="count")
        product.learn(*told)
        counted.learn(*told)
        # The standard error at 2 is below .02.
        assert product.survival(0) == pytest.approx([0.6, 0.3], abs=0.04)
        assert counted.survival(0) == pytest.approx([0.6, 0.9 * 0.6 + 0.1 * 0.3], abs=0.02)


class TestSameHistorySameEstimates:
    @given(history=histories(limits=(0.5, *LIMITS, 3.0, math.inf)), seed=st.integers(0, 99))
    def test_in_any_order(self, history, seed):
        order = np.random.default_rng(seed).permutation(len(history))
        shuffled = [history[k] for k in order]
        for survival in ("kaplan-meier", "count"):
            one = estimates_of(history, survival=survival)
            other = estimates_of(shuffled, survival=survival)
            for arm in range(2):
                for left, right in zip(content(one, arm), content(other, arm), strict=True):
                    assert left == pytest.approx(right, rel=1e-6, abs=1e-9, nan_ok=True)

    @given(history=histories(), low=st.floats(-50.0, 50.0), span=st.floats(0.01, 100.0))
    def test_rewards_of_another_range(self, history, low, span):
        plain = estimates_of(history)
        moved = [pull._replace(reward=low + span * pull.reward) for pull in history]
        scaled = estimates_of(
            moved,
            cost=Linear(0.1 * span),
            penalty=Linear(0.5 * span),
            reward_range=(low, low + span),
        )
        close = {"rel": 1e-6, "abs": 1e-6 * (span + abs(low)), "nan_ok": True}
        for arm in range(2):
            assert scaled.gains(arm) == pytest.approx(low + span * plain.gains(arm), **close)
            assert scaled.survival(arm).tolist() == plain.survival(arm).tolist()
            bounds = low + span * np.array(plain.bounds(arm, DELTAS))
            assert np.array(scaled.bounds(arm, DELTAS)) == pytest.approx(bounds, **close)


@given(n=st.integers(2, 300), share=st.floats(0.01, 0.99), delta=st.floats(0.001, 0.5))
def test_survival_bounds_by_the_divergence_of_two_coins(n, share, delta):
    beyond = min(max(round(share * n), 1), n - 1)
    seen = [Seen(0, 2.0, 0.5, 9.0)] * beyond + [Seen(0, 2.0, 0.5, 1.5)] * (n - beyond)
    bounds = estimates_of(seen).survival_bounds(0, np.full(len(LIMITS), delta))
    low, high = (bound[1] for bound in bounds)
    p = beyond / n
    assert 0.0 < low < p < high < 1.0

    def divergence(q):
        if not 0.0 < q < 1.0:
            return math.inf
        return n * (p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q)))

    level = math.log(2.0 / delta) + math.log(n + 1.0) + 1.0
    assert divergence(low + 1e-9) <= level <= divergence(low - 1e-9)
    assert divergence(high - 1e-9) <= level <= divergence(high + 1e-9)
