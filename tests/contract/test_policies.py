"""Every policy passes the contract; what is declared differs from class to class."""

from __future__ import annotations

from mfhpo.bias import Bias
from mfhpo.identification.elimination import IISE, MaximumFidelityExploit, SuccessiveElimination
from mfhpo.identification.lucb import MFLUCB
from mfhpo.noise import Bounded, EstimatedNoise, Gaussian
from mfhpo.policy import Policy
from mfhpo.problem import Problem
from tests.contract.policy_contract import PolicyContract


class TestSuccessiveElimination(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return SuccessiveElimination(problem, delta=0.01)


class TestIISEWithMaxBounds(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return IISE(problem, delta=0.01)


class TestIISEWithOrderBounds(PolicyContract):
    bias = Bias.order(0.1, 0.1, 0.0)

    def make(self, problem: Problem) -> Policy:
        return IISE(problem, delta=0.01)


class TestIISEToATolerance(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return IISE(problem, delta=0.01, epsilon=0.2)


class TestIISEThatMeasures(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return IISE(problem, delta=0.01, measure=5)


class TestMaximumFidelityExploit(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MaximumFidelityExploit(problem, delta=0.01)


class TestIISEWithEverythingEstimated(PolicyContract):
    noise = EstimatedNoise()
    bias = None
    costs = None

    def make(self, problem: Problem) -> Policy:
        return IISE(problem, delta=0.01, epsilon=None, pilot_arms=4)


class TestSuccessiveEliminationWithEverythingEstimated(PolicyContract):
    noise = EstimatedNoise()
    bias = None
    costs = None

    def make(self, problem: Problem) -> Policy:
        return SuccessiveElimination(problem, delta=0.01, epsilon=None)


class TestIISEWithEstimatedNoise(PolicyContract):
    noise = EstimatedNoise()

    def make(self, problem: Problem) -> Policy:
        return IISE(problem, delta=0.01)


class TestIISEWithGaussianNoise(PolicyContract):
    noise = Gaussian()

    def make(self, problem: Problem) -> Policy:
        return IISE(problem, delta=0.01)


class TestIISEWithBoundedValues(PolicyContract):
    noise = Bounded(0.0, 1.0)

    def make(self, problem: Problem) -> Policy:
        return IISE(problem, delta=0.01)


class TestLUCBByIndex(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, explore="A", delta=0.01)


class TestLUCBBySweep(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, explore="B", delta=0.01)


class TestLUCBByIndexAndSweep(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, explore="AB", delta=0.01)


class TestLUCBByRadius(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, explore="C", delta=0.01)


class TestLUCBAtTheTargetOnly(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, explore="top", delta=0.01)


class TestLUCBAsPublished(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, explore="top", schedule="rounds", delta=0.01)


class TestLUCBToATolerance(PolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, epsilon=0.2, measure=3, delta=0.01)


class TestLUCBWithEverythingEstimated(PolicyContract):
    noise = EstimatedNoise()
    bias = None
    costs = None

    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, delta=0.01, epsilon=None, pilot_arms=4)


class TestLUCBByIndexWithEverythingEstimated(PolicyContract):
    noise = EstimatedNoise()
    bias = None
    costs = None

    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, explore="A", delta=0.01, epsilon=None, pilot_arms=4)


class TestLUCBWithGaussianNoise(PolicyContract):
    noise = Gaussian()

    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, delta=0.01)


class TestLUCBByIndexWithGaussianNoise(PolicyContract):
    noise = Gaussian()

    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, explore="A", delta=0.01)


class TestLUCBWithBoundedValues(PolicyContract):
    noise = Bounded(0.0, 1.0)

    def make(self, problem: Problem) -> Policy:
        return MFLUCB(problem, delta=0.01)
