"""The policies that decide by likelihood ratios pass the contract."""

from __future__ import annotations

from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian
from tests.contract.policy_contract import contract

UNKNOWN = {"noise": EstimatedNoise(), "bias": None, "costs": None}
ORDER = Bias.order(0.1, 0.1, 0.0)

TestTopTwo = contract(lambda problem: MFTopTwo(problem, delta=0.01, measure=5))
TestTopTwoWithOrderBounds = contract(
    lambda problem: MFTopTwo(problem, delta=0.01, epsilon=0.2), bias=ORDER, noise=Gaussian()
)
TestTopTwoWithEverythingEstimated = contract(
    lambda problem: MFTopTwo(problem, delta=0.01, epsilon=None, pilot_arms=4), **UNKNOWN
)
TestTopTwoWithMaxBoundsEstimated = contract(
    lambda problem: MFTopTwo(
        problem, delta=0.01, epsilon=None, pilot_arms=4, variant="max", estimated_bias="eliminate"
    ),
    **UNKNOWN,
)
TestTopTwoWithBoundedValues = contract(
    lambda problem: MFTopTwo(problem, delta=0.01), noise=Bounded(0.0, 1.0)
)
TestGradient = contract(lambda problem: MFGrad(problem, delta=0.01), noise=EstimatedNoise())
TestGradientWithOrderBounds = contract(lambda problem: MFGrad(problem, delta=0.01), bias=ORDER)
TestGradientAsPublished = contract(
    lambda problem: MFGrad(problem, delta=0.01, stop="published", learning_rate=0.25)
)
TestGradientOfTheLastThreeArms = contract(
    lambda problem: MFGrad(
        problem, delta=0.01, epsilon=None, pilot_arms=4, estimated_bias="eliminate", max_arms=3
    ),
    **UNKNOWN,
)
