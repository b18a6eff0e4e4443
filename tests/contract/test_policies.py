"""Every policy passes the contract; what is declared differs from class to class."""

from __future__ import annotations

from mfhpo.bias import Bias
from mfhpo.identification.elimination import IISE, MaximumFidelityExploit, SuccessiveElimination
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
