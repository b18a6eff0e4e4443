import pytest

from mfhpo import IISE, Bias, Problem, SubGaussian
from tests.core.racing.plays import tell_all

ONE_LEVEL = {"costs": (1.0,), "bias": Bias.max(0.0)}


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
