import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from mfhpo import IISE, Bias, Observation, Problem, Pull, SubGaussian
from mfhpo.racing.course import evidence_of_failing, fails_too_often
from tests.core.racing.plays import tell_all


@pytest.mark.parametrize(("values", "failures"), [(0, 1), (1, 4), (3, 9), (20, 5), (200, 300)])
def test_the_evidence_is_the_mixture_of_likelihood_ratios(values, failures):
    def ratio(rate):
        return math.exp(failures * math.log(2 * rate) + values * math.log(2 * (1 - rate)))

    # The density of a rate drawn evenly between one half and 1 is 2.
    mode = min(max(failures / (failures + values), 0.5), 1.0 - 1e-9)
    expected = quad(lambda rate: 2 * ratio(rate), 0.5, 1.0 - 1e-12, points=[mode])[0]
    assert evidence_of_failing(values, failures) == pytest.approx(expected, rel=1e-6)


def test_by_hand():
    # 2^3 times twice the integral of r^3 from 1/2 to 1, which is (1 - 1/16) / 4.
    assert evidence_of_failing(0, 3) == pytest.approx(8 * 2 * (1 - 1 / 16) / 4)
    assert fails_too_often(values=0, failures=3, max_failures=3)
    assert not fails_too_often(values=0, failures=2, max_failures=3)
    # One value: 89.9 after 12 failures, 156 after 13; 1 / .01 is needed.
    assert not fails_too_often(values=1, failures=12, max_failures=3)
    assert fails_too_often(values=1, failures=13, max_failures=3)
    assert not fails_too_often(values=1, failures=13, max_failures=14)


def test_many_failures_do_not_overflow():
    assert fails_too_often(values=1, failures=100_000, max_failures=3)
    assert not fails_too_often(values=100_000, failures=1, max_failures=1)


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.4, 0.5])
def test_an_arm_with_a_value_rarely_leaves_by_chance(rate):
    rng, n = np.random.default_rng(0), 2000
    left = 0
    for _ in range(n):
        failed = np.cumsum(rng.random(100) < rate)
        left += any(
            fails_too_often(values=k + 2 - int(f), failures=int(f), max_failures=3)
            for k, f in enumerate(failed)
        )
    # At most .01, by Ville's inequality; with a margin of one in a thousand.
    assert left <= binom.isf(0.001, n, 0.01)


def test_d8_an_evaluation_that_was_stopped_is_no_failure_and_an_arm_without_values_leaves():
    problem = Problem(3, costs=(1.0,), noise=SubGaussian(1.0))
    race = IISE(problem, epsilon=0.5)
    race.tell(Pull(0, 0), Observation(None))
    for _ in range(2):
        race.tell(Pull(0, 0), Observation(None, censored_at=2.0))
    answer = race.recommend()
    assert (answer.failures, answer.cost, answer.pulls) == (1, 3.0, 0)
    assert answer.not_compared == (
        "arm 0: failed 1 of 3 and was stopped at a time limit in 2 of 3",
    )


@pytest.mark.filterwarnings("ignore::mfhpo.ArmWithdrawnWarning")
def test_who_would_lead_at_the_level_that_decides_refuses_the_certificate():
    problem = Problem(3, (1.0, 10.0), Bias.max(0.01, 0.0), SubGaussian(0.05))
    policy = IISE(problem, audit=False)
    tell_all(policy, 0, [0.9] * 3)
    tell_all(policy, 1, [0.95])
    tell_all(policy, 0, [None] * 40)
    assert policy.active.tolist() == [1, 2]
    tell_all(policy, 1, [0.1] * 60)
    tell_all(policy, 2, [0.8] * 60)
    answer = policy.recommend()
    assert (answer.arm, answer.certified) == (2, False)
    assert "would lead by its values" in answer.reason
