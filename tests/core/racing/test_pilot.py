import numpy as np
import pytest

from mfhpo.knowledge.bias import estimate_bias
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Problem, Pull
from mfhpo.racing.course import Pilot
from mfhpo.racing.evidence import Evidence
from mfhpo.regret import MFUCB
from tests.core.racing.plays import play


def mask(*arms, of):
    return np.isin(np.arange(of), arms)


PILOT = Pilot(order=(3, 0, 2, 1), n_arms=2, n_pulls=2, fidelities=(0, 1))


def evidence_of(n_arms, n_fidelities):
    problem = Problem(n_arms, costs=None, noise=SubGaussian(1.0), n_fidelities=n_fidelities)
    return Evidence(problem, 0.05, range(n_fidelities), None)


def test_the_first_active_arms_of_the_order_are_the_pilot():
    assert PILOT.arms(mask(0, 1, 2, 3, of=4)).tolist() == [3, 0]
    assert PILOT.arms(mask(0, 1, 2, of=4)).tolist() == [0, 2]
    assert PILOT.arms(mask(1, of=4)).tolist() == [1]
    assert PILOT.arms(mask(of=4)).tolist() == []


def test_missing_pulls_cheapest_first_and_in_turn():
    everyone = mask(0, 1, 2, 3, of=4)
    counts = np.zeros((4, 2), dtype=np.int64)
    expected = [(3, 0), (0, 0), (3, 0), (0, 0), (3, 1), (0, 1), (3, 1), (0, 1)]
    assert PILOT.missing(counts, everyone) == [Pull(*pair) for pair in expected]
    counts[3] = (1, 2)
    counts[0] = (5, 0)
    counts[1] = (7, 7)  # not one of the pilot's
    assert PILOT.missing(counts, everyone) == [Pull(3, 0), Pull(0, 1), Pull(0, 1)]


def test_bias_by_hand():
    # Arms 3 and 0: means 1.0 - 2.0 = -1.0 and 3.0 - 3.5 = -0.5 above the target's.
    evidence = evidence_of(4, 2)
    for arm, fidelity, values in (
        (3, 0, (0.5, 1.5)),
        (3, 1, (2.0, 2.0)),
        (0, 0, (3.0, 3.0)),
        (0, 1, (3.0, 4.0)),
        (1, 0, (99.0, 99.0)),  # not one of the pilot's
    ):
        for value in values:
            evidence.add(arm, fidelity, value)
    differences = np.array([[-1.0, 0.0], [-0.5, 0.0]])
    for kind in ("max", "order"):
        bias = PILOT.bias(evidence, mask(0, 1, 2, 3, of=4), kind, 0.05)
        assert bias == estimate_bias(differences, kind, 4, 0.05)


@pytest.mark.parametrize("kind", ["max", "order"])
def test_nothing_to_estimate_for_one_arm_or_one_fidelity(kind):
    everyone = mask(0, 1, 2, 3, of=4)
    one_fidelity = Pilot((3, 0, 2, 1), 2, 2, (0,)).bias(evidence_of(4, 1), everyone, kind, 0.05)
    assert (one_fidelity.bounds, one_fidelity.source) == ((0.0,), "estimated")
    one_arm = PILOT.bias(evidence_of(4, 2), mask(2, of=4), kind, 0.05)
    assert (one_arm.bounds, one_arm.source) == ((0.0, 0.0), "estimated")


def test_nothing_is_claimed_of_the_bias_of_a_single_arm():
    # A cheap fidelity that is 100 off: with bounds of 0 it would give a wrong interval.
    problem = Problem(1, costs=(1.0, 10.0), noise=SubGaussian(0.1))
    policy = MFUCB(problem, budget=200.0, delta=0.05)
    rng = np.random.default_rng(0)
    play(policy, lambda pull: (100.0, 0.0)[pull.fidelity] + 0.1 * rng.standard_normal())
    low, high = policy.recommend().interval
    assert low < 0.0 < high
