"""The policies that maximise reward pass the contract; they end with their budget, uncertified."""

from __future__ import annotations

import numpy as np

from mfhpo.noise import Bounded, EstimatedNoise, Gaussian
from mfhpo.policy import Policy
from mfhpo.problem import Problem
from mfhpo.regret import MFUCB, MFElimination
from tests.contract.policy_contract import COSTS, PolicyContract


class RewardPolicyContract(PolicyContract):
    certifies = False
    budget = 3000.0

    def test_it_ends_when_the_next_pull_would_exceed_the_budget(self) -> None:
        policy = self.new()
        script = self.play(policy, np.random.default_rng(0), self.most_pulls)
        assert policy.finished
        [following] = policy.ask()
        assert policy.cost == sum(COSTS[pull.fidelity] for pull, _ in script)
        assert policy.cost <= self.budget < policy.cost + COSTS[following.fidelity]
        assert "budget of 3000 is spent" in policy.recommend().reason
        assert "certifies nothing; race for the best arm" in policy.recommend().reason


class TestMFUCB(RewardPolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFUCB(problem, budget=self.budget)


class TestMFUCBWithBoundedValues(RewardPolicyContract):
    noise = Bounded(0.0, 1.0)

    def make(self, problem: Problem) -> Policy:
        return MFUCB(problem, budget=self.budget)


class TestMFUCBWithEverythingEstimated(RewardPolicyContract):
    noise = EstimatedNoise()
    bias = None
    costs = None

    def make(self, problem: Problem) -> Policy:
        return MFUCB(problem, budget=self.budget, pilot_arms=4)


class TestMFElimination(RewardPolicyContract):
    def make(self, problem: Problem) -> Policy:
        return MFElimination(problem, budget=self.budget)


class TestMFEliminationWithBoundedValues(RewardPolicyContract):
    noise = Bounded(0.0, 1.0)

    def make(self, problem: Problem) -> Policy:
        return MFElimination(problem, budget=self.budget)


class TestMFEliminationWithEverythingEstimated(RewardPolicyContract):
    noise = Gaussian()
    bias = None
    costs = None

    def make(self, problem: Problem) -> Policy:
        return MFElimination(problem, budget=self.budget, pilot_arms=4)
