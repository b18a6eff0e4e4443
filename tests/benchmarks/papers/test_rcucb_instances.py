import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.rcucb_instances import (
    LOCK_IN_LIMITS,
    LOCK_IN_PENALTY,
    PUBLISHED_COST,
    PUBLISHED_PENALTY,
    ArmStreams,
    BetaExponentialInstance,
    ReplayedCensoredInstance,
    independent,
    lock_in,
    low_censoring,
    many_arms,
    negatively_correlated,
    positively_correlated,
    published_limits,
)
from mfhpo.censored import Linear

RECORDS = np.random.default_rng(0).uniform(size=(2, 3, 9))
INSTANCES = {
    "PosCorr": positively_correlated,
    "NegCorr": negatively_correlated,
    "Indep": independent,
    "F.2": lambda: many_arms(20),
    "F.3": low_censoring,
    "lock-in": lock_in,
    "replayed": lambda: ReplayedCensoredInstance(RECORDS[0], RECORDS[1]),
}
M_1 = np.array([0.5, 0.9])


@pytest.fixture(params=list(INSTANCES))
def instance(request):
    return INSTANCES[request.param]()


class TestAnyInstance:
    # Up to the end of the square and beyond it.
    LIMITS = (0.2, 0.5, 0.7, 1.0, 1.3)

    def test_gains_and_survival_are_those_of_draws(self, instance):
        arm = instance.n_arms - 1
        rewards, consumptions = instance.draw(np.random.default_rng(1), arm, 40_000)
        assert rewards.shape == consumptions.shape == (40_000,)
        gains = instance.gains(self.LIMITS, PUBLISHED_COST, PUBLISHED_PENALTY)
        survival = instance.survival(self.LIMITS)
        assert gains.shape == survival.shape == (instance.n_arms, 5)
        for place, limit in enumerate(self.LIMITS):
            kept = consumptions <= limit
            fine = 0.1 * limit if limit <= 0.5 else 10.0 * limit
            earned = np.where(kept, rewards - 0.1 * consumptions, -fine)
            error = earned.std() / 200.0
            assert abs(earned.mean() - gains[arm, place]) < 4.0 * error + 1e-12
            share = survival[arm, place]
            assert abs((1.0 - kept.mean()) - share) <= 4.0 * math.sqrt(share) / 200.0 + 1e-12


class TestPublished:
    """Censoring of the optimal pair, as published (PosCorr: as its parameters have it)."""

    @pytest.mark.parametrize(
        ("make", "limits", "arm", "best_limit", "censored"),
        [
            (independent, published_limits(), 0, 0.4556, 0.4404),
            (independent, M_1, 0, 0.5, 0.4066),
            (independent, published_limits(20), 0, 0.4789, 0.4223),
            (negatively_correlated, published_limits(), 1, 0.4556, 0.7637),
            (negatively_correlated, M_1, 1, 0.5, 0.7186),
            (negatively_correlated, published_limits(20), 1, 0.4789, 0.7405),
            (positively_correlated, published_limits(), 0, 0.4556, 0.5087),
            (positively_correlated, M_1, 0, 0.5, 0.4537),
            (positively_correlated, published_limits(20), 0, 0.4789, 0.4797),
            (low_censoring, published_limits(10, 0.6), 0, 0.4889, 0.0753),
        ],
    )
    def test_optimal_pairs(self, make, limits, arm, best_limit, censored):
        instance = make()
        gains = instance.gains(limits, PUBLISHED_COST, PUBLISHED_PENALTY)
        best, place = np.unravel_index(gains.argmax(), gains.shape)
        assert best == arm
        assert limits[place] == pytest.approx(best_limit, abs=5e-5)
        assert instance.survival(limits)[best, place] == pytest.approx(censored, abs=5.1e-5)


def test_gains_in_closed_form():
    # .75 (1 - e^-2x) - .1 E[C; C <= x] - .2 x e^-2x,
    # where E[C; C <= x] = (1 - e^-2x (1 + 2x)) / 2.
    instance = BetaExponentialInstance([[3.0, 1.0]], [2.0])
    limits = np.array([0.3, 2.0, 40.0])
    left = np.exp(-2.0 * limits)
    expected = 0.75 * (1.0 - left) - 0.05 * (1.0 - left * (1.0 + 2.0 * limits))
    expected -= 0.2 * limits * left
    gains = instance.gains(limits, Linear(0.1), Linear(0.2))
    assert gains[0] == pytest.approx(expected, abs=1e-12)


def test_gains_are_means_over_the_records():
    instance = ReplayedCensoredInstance([[0.2, 0.8]], [[1.0, 3.0]])
    # A consumption of exactly the limit is not censored.
    gains = instance.gains([1.0, 2.0, 3.0], Linear(0.1), Linear(0.5))
    expected = [(0.1 - 0.5) / 2.0, (0.1 - 1.0) / 2.0, (0.1 + 0.5) / 2.0]
    assert gains[0].tolist() == pytest.approx(expected)
    assert instance.survival([1.0, 2.0, 3.0])[0].tolist() == [0.5, 0.5, 0.0]


@settings(max_examples=20)
@given(sizes=st.lists(st.integers(0, 300), max_size=8), seed=st.integers(0, 3))
def test_what_an_arm_yields_does_not_depend_on_how_it_is_asked(sizes, seed):
    instance = low_censoring()
    at_once, by_parts = ArmStreams(instance, [seed, 1]), ArmStreams(instance, [seed, 1])
    expected = np.stack(at_once(2, sum(sizes)))
    parts = [np.empty((2, 0))]
    for size in sizes:
        by_parts(0, 7)
        parts.append(np.stack(by_parts(2, size)))
    assert np.array_equal(np.concatenate(parts, axis=1), expected)


def test_lock_in_is_what_it_says():
    instance = lock_in()
    gains = instance.gains(LOCK_IN_LIMITS, PUBLISHED_COST, LOCK_IN_PENALTY)[0]
    assert gains[1] - gains[0] == pytest.approx(0.05, abs=1e-5)
    survival = instance.survival(LOCK_IN_LIMITS)[0]
    fine = LOCK_IN_PENALTY(np.array(LOCK_IN_LIMITS))[1]
    assert fine * (survival[0] - survival[1]) == pytest.approx(0.49, abs=0.005)
