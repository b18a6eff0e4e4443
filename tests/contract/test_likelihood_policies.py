"""The policies that decide by likelihood ratios pass the contract."""

from __future__ import annotations

from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian
from mfhpo.policy import Policy
from mfhpo.problem import Problem
from tests.contract.policy_contract import PolicyContract


class TestTopTwo(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFTopTwo(problem, delta=0.01)


class TestTopTwoWithOrderBounds(PolicyContract):
    bias = Bias.order(0.1, 0.1, 0.0)

    def make(self, problem: Problem) -> Policy:
        return MFTopTwo(problem, delta=0.01)


class TestTopTwoToATolerance(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFTopTwo(problem, delta=0.01, epsilon=0.2)


class TestTopTwoThatMeasures(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFTopTwo(problem, delta=0.01, measure=5)


class TestTopTwoWithEverythingEstimated(PolicyContract):
    noise = EstimatedNoise()
    bias = None
    costs = None

    def make(self, problem: Problem) -> Policy:
        return MFTopTwo(problem, delta=0.01, epsilon=None, pilot_arms=4)


class TestTopTwoWithMaxBoundsEstimated(PolicyContract):
    noise = EstimatedNoise()
    bias = None
    costs = None

    def make(self, problem: Problem) -> Policy:
        return MFTopTwo(
            problem,
            delta=0.01,
            epsilon=None,
            pilot_arms=4,
            variant="max",
            estimated_bias="eliminate",
        )


class TestTopTwoWithEstimatedNoise(PolicyContract):
    noise = EstimatedNoise()

    def make(self, problem: Problem) -> Policy:
        return MFTopTwo(problem, delta=0.01)


class TestTopTwoWithGaussianNoise(PolicyContract):
    noise = Gaussian()

    def make(self, problem: Problem) -> Policy:
        return MFTopTwo(problem, delta=0.01)


class TestTopTwoWithBoundedValues(PolicyContract):
    noise = Bounded(0.0, 1.0)

    def make(self, problem: Problem) -> Policy:
        return MFTopTwo(problem, delta=0.01)


class TestGradient(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFGrad(problem, delta=0.01)


class TestGradientWithOrderBounds(PolicyContract):
    bias = Bias.order(0.1, 0.1, 0.0)

    def make(self, problem: Problem) -> Policy:
        return MFGrad(problem, delta=0.01)


class TestGradientAsPublished(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFGrad(problem, delta=0.01, stop="published", learning_rate=0.25)


class TestGradientWithEverythingEstimated(PolicyContract):
    noise = EstimatedNoise()
    bias = None
    costs = None

    def make(self, problem: Problem) -> Policy:
        return MFGrad(problem, delta=0.01, epsilon=None, pilot_arms=4, estimated_bias="eliminate")


class TestGradientOfTheLastThreeArms(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFGrad(problem, delta=0.01, max_arms=3)


class TestGradientWithGaussianNoise(PolicyContract):
    noise = Gaussian()

    def make(self, problem: Problem) -> Policy:
        return MFGrad(problem, delta=0.01)
