import pytest

from mfhpo.certification.choice import recommend_policy
from mfhpo.identification.elimination import IISE
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, SubGaussian
from mfhpo.problem import Problem
from mfhpo.regret import MFUCB, MFElimination

OWN, ORDER = Bias.max(0.1, 0.0), Bias.order(0.1, 0.0)


def problem(noise, bias=OWN):
    return Problem(4, costs=(1.0, 10.0), bias=bias, noise=noise)


@pytest.mark.parametrize("bias", [OWN, ORDER, None])
@pytest.mark.parametrize("noise", [SubGaussian(0.1), SubGaussian((0.1, 0.2)), EstimatedNoise()])
def test_one_scale_of_the_noise(noise, bias):
    choice = recommend_policy(problem(noise, bias))
    assert choice.policy is MFTopTwo
    assert "scale" in choice.reason


@pytest.mark.parametrize(("bias", "policy"), [(OWN, MFLUCB), (ORDER, IISE), (None, IISE)])
@pytest.mark.parametrize("noise", [Gaussian(), Bounded(0.0, 1.0)])
def test_a_scale_of_each_arm(noise, bias, policy):
    choice = recommend_policy(problem(noise, bias))
    assert choice.policy is policy
    assert "no scale of the noise is declared" in choice.reason


@pytest.mark.parametrize("noise", [SubGaussian(0.1), Bounded(0.0, 1.0)])
def test_rewards(noise):
    per_cost = recommend_policy(problem(noise), aim="reward per cost")
    per_pull = recommend_policy(problem(noise), aim="reward per pull")
    assert (per_cost.policy, per_pull.policy) == (MFUCB, MFElimination)
    assert "proportion to their cost" in per_cost.reason
    assert "whatever it costs" in per_pull.reason


def test_order_bounds_are_of_no_use_for_reward_per_cost():
    with pytest.raises(ValueError, match="aim='reward per cost' needs bounds on every arm's own"):
        recommend_policy(problem(SubGaussian(0.1), ORDER), aim="reward per cost")
    choice = recommend_policy(problem(SubGaussian(0.1), ORDER), aim="reward per pull")
    assert choice.policy is MFElimination
