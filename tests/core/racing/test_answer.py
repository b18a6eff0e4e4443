import numpy as np
import pytest

from mfhpo import MFLUCB, MFUCB, Bias, Observation, Problem, Pull, SubGaussian
from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.racing.evidence import cautious_value


def values_after_each(values):
    seen = PullStatistics(1, 1)
    found = []
    for value in values:
        seen.add(0, 0, float(value))
        found.append(cautious_value(seen))
    return np.array(found)


def test_of_fewer_than_two_values_nothing_is_sure():
    assert cautious_value(PullStatistics(1, 1)) == -np.inf
    assert values_after_each([3.0]) == [-np.inf]
    assert np.isfinite(values_after_each([3.0, 2.0])[1])


def test_it_is_below_the_average_by_a_radius_that_shrinks():
    values = np.tile([0.0, 2.0], 50)
    below = np.cumsum(values) / np.arange(1, 101) - values_after_each(values)
    assert (np.diff(below[1::2]) < 0.0).all()
    assert 0.2 < below[-1] < 0.4
    assert values_after_each([1.0, 1.0, 1.0])[2] == 1.0


def test_it_ever_exceeds_the_mean_in_one_case_of_twenty_at_most():
    """With 400 cases, 32 are three standard deviations above the 20 that are allowed."""
    rng = np.random.default_rng(0)
    wrong = [values_after_each(rng.normal(size=60)).max() > 0.0 for _ in range(400)]
    assert sum(wrong) <= 32


@pytest.mark.parametrize("policy", [MFLUCB, MFUCB])
def test_an_arm_without_values_does_not_hide_what_is_known_at_the_target(policy):
    race = policy(Problem(4, (1.0, 10.0), Bias.max(0.45, 0.0), SubGaussian(0.05)))
    # Arm 1 is the best, though the cheap level says that arm 0 is; arm 3 never comes to its end.
    told = {Pull(0, 0): 0.9, Pull(1, 0): 0.7, Pull(2, 0): 0.2, Pull(0, 1): 0.5}
    for pull, value in told.items():
        race.tell(pull, Observation(value - 0.01))
        race.tell(pull, Observation(value + 0.01))
    for sign in (-1.0, 1.0) * 20:
        race.tell(Pull(1, 1), Observation(0.8 + 0.01 * sign))
    arm, mean, _, fidelity = race.leader()
    assert (arm, fidelity) == (1, 1)
    assert mean == pytest.approx(0.8)
