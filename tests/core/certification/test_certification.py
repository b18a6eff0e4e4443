import json
import math

import numpy as np
import pytest

from benchmarks.simulation.sums import tell_sum
from mfhpo import Bounded, Gaussian, Pull, SubGaussian
from mfhpo.certification.certification import Certification
from tests.core.certification.races import evaluate, race_of, tell


def run(truth, *, scale=1.0, **options):
    rng = np.random.default_rng(0)
    race = race_of(Certification, len(truth), **options)
    while not race.finished:
        evaluate(race, lambda arm: rng.normal(truth[arm], scale))
    return race.certificate("the best", "by hand")


def test_noiseless_race_by_hand():
    answer = run([1.0, 3.0, 2.0], scale=0.0, sigma=0.0, epsilon=0.0, measure=2, claims=[4, 3, 2])
    assert (answer.winner, answer.certified, answer.within) == (1, True, 0.0)
    assert [result.standing for result in answer.candidates] == ["worse", "certified", "worse"]
    # One evaluation of each, and one more of the winner.
    assert answer.evaluations == 4
    luckiest = answer.luckiest_result
    assert (luckiest.gap, luckiest.gap_interval) == (3.0, (3.0, 3.0))


@pytest.mark.filterwarnings("error")
def test_equal_first_values_tell_nothing():
    race = race_of(Certification, 3)
    for arm in range(3):
        tell(race, arm, 0.5)
    answer = race.certificate("the best", "by hand")
    assert (answer.certified, answer.within) == (False, math.inf)


def test_smallest_tolerance_is_where_the_policy_certifies():
    # The same values in two races: what holds in the first is certified in the second, and a
    # slightly smaller tolerance is not.
    values = np.random.default_rng(1).normal([[0.3], [0.0], [0.1]], 1.0, (3, 12))

    def after_all(epsilon):
        race = race_of(Certification, 3, sigma=1.0, epsilon=epsilon, measure=0)
        for arm in (2, 1, 0):  # all values at once, so that none is certified on the way
            tell_sum(race.policy, Pull(arm, 0), values.shape[1], values[arm].sum())
            race._values[arm] = values[arm].tolist()
        return race.certificate("", "")

    within = after_all(0.0).within
    assert 0.5 < within < 5.0
    assert not after_all(within * 0.999).certified
    assert after_all(within * 1.001).certified


@pytest.mark.parametrize(
    ("noise", "budget"),
    [(None, 16), (SubGaussian(1.0), 12), (Gaussian(), 16), (Bounded(-6.0, 6.0), 16)],
)
def test_what_holds_comes_down_to_epsilon(noise, budget):
    truth = [0.0, 0.2, 0.1]
    small = run(truth, sigma=noise, epsilon=2.5, budget=budget)
    answer = run(truth, sigma=noise, epsilon=2.5)
    assert answer.certified
    assert answer.within <= 2.5
    assert small.within > answer.within
    assert max(truth) - truth[answer.winner] <= answer.within


def test_failures_are_paid_and_reported():
    race = race_of(Certification, maximise=False, epsilon=1.0, max_failures=2, budget=9)
    tell(race, 1, 0.5)
    tell(race, 0, math.nan)
    with pytest.warns(UserWarning, match=r"row 0 \{'k': 0\} leaves the race"):
        tell(race, 0, math.nan)
    while not race.finished:
        assert race.ask().arm == 1
        tell(race, 1, float(race.policy.summary(1, 0)[0] % 3))
    answer = race.certificate("two", "by hand")
    assert (answer.winner, answer.certified) == (1, False)
    assert [result.standing for result in answer.candidates] == ["failed", "best so far"]
    assert math.isinf(answer.within)
    assert answer.evaluations <= 9
    json.dumps(answer.to_dict())


def test_d8_what_was_stopped_is_paid_and_no_failure():
    race = race_of(Certification, epsilon=1.0, max_failures=3, budget=9)
    for arm, value, limit in ((0, None, 2.0), (0, None, None), (1, 0.5, None)):
        race.tell(Pull(arm, 0), value, limit)
    answer = race.certificate("two", "by hand")
    assert answer.evaluations == 3
    assert [(each.values, each.failures, each.stops) for each in answer.candidates] == [
        (0, 1, 1),
        (1, 0, 0),
    ]
    assert "failed 1 of 3 and was stopped at a time limit in 1 of 3, all values" in str(answer)
