import math
from functools import partial

import numpy as np
import pytest

from benchmarks.simulation import mf_elimination, mf_ucb
from benchmarks.simulation.instances import GaussianInstance
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, SubGaussian
from mfhpo.problem import Problem
from mfhpo.regret import MFUCB, MFElimination
from tests.contract.policy_contract import COSTS, PolicyContract, contract
from tests.core.racing.plays import play


class RewardPolicyContract(PolicyContract):
    certifies = False
    budget = 1500.0

    def test_it_ends_when_the_next_pull_would_exceed_the_budget(self):
        policy = self.new()
        script = self.play(policy, np.random.default_rng(0), self.most_pulls)
        assert policy.finished
        [following] = policy.ask()
        assert policy.cost == sum(COSTS[pull.fidelity] for pull, _ in script)
        assert policy.cost <= self.budget < policy.cost + COSTS[following.fidelity]
        assert "budget of 1500 is spent" in policy.recommend().reason
        assert "certifies nothing; race for the best arm" in policy.recommend().reason


BUDGET = RewardPolicyContract.budget
UNKNOWN = {"bias": None, "costs": None}

TestMFUCB = contract(lambda problem: MFUCB(problem, budget=BUDGET), RewardPolicyContract)
TestMFUCBWithEverythingEstimated = contract(
    lambda problem: MFUCB(problem, budget=BUDGET, pilot_arms=4),
    RewardPolicyContract,
    noise=EstimatedNoise(),
    **UNKNOWN,
)
TestMFElimination = contract(
    lambda problem: MFElimination(problem, budget=BUDGET),
    RewardPolicyContract,
    noise=Bounded(0.0, 1.0),
)
TestMFEliminationWithEverythingEstimated = contract(
    lambda problem: MFElimination(problem, budget=BUDGET, pilot_arms=4),
    RewardPolicyContract,
    noise=Gaussian(),
    **UNKNOWN,
)


EASY = [[0.15, 0.35, 0.85], [0.1, 0.3, 0.9]]

REWARD_POLICIES = [MFUCB, MFElimination]


def play_at_once(policy, *args):
    (mf_ucb if isinstance(policy, MFUCB) else mf_elimination).play(policy, *args)


@pytest.mark.parametrize("policy", REWARD_POLICIES)
def test_a_target_that_is_far_dearer(policy):
    ratio = 1e4
    instance = GaussianInstance(EASY, (1.0, ratio), xi=(0.05, 0.0), variance=0.01)
    race = policy(instance.problem())
    # MFUCB plays at fidelity 0 only, elimination compares at the target first.
    capital = 1e5 if policy is MFUCB else 100.0 * ratio
    play_at_once(race, partial(instance.running_sums, np.random.default_rng(0)), capital)
    assert race.recommend().arm == 2
    assert capital - ratio < race.cost <= capital
    assert race.counts[:2].sum() <= 0.02 * race.pulls


@pytest.mark.parametrize("policy", REWARD_POLICIES)
def test_measured_costs_that_fall(policy):
    costs = (10.0, 1.0)
    pilot = 6.0 * (costs[0] + costs[1])
    problem = Problem(3, None, Bias.max(0.05, 0.0), SubGaussian(0.1), n_fidelities=2)
    race = policy(problem, budget=pilot + 2000.0)
    rng = np.random.default_rng(0)
    play(
        race,
        lambda pull: EASY[pull.fidelity][pull.arm] + 0.1 * rng.standard_normal(),
        costs=costs,
        most=3000,
    )
    answer = race.recommend()
    assert (answer.arm, answer.fidelity) == (2, 1)
    if policy is MFElimination:
        # W (K log(L) / L)^(1/3) with L in units of the target's cost; W = 2 sigma.
        target_pulls = pilot + 2000.0
        expected = 0.2 * (3 * math.log(target_pulls) / target_pulls) ** (1 / 3)
        assert race.epsilon == pytest.approx(expected)
    # Nothing at fidelity 0 but for the pilot, and at the target almost only the best arm.
    assert race.counts[:, 0].tolist() == [2, 2, 2]
    assert race.counts[:, 1].sum() == 6 + 2000
    assert race.counts[:2, 1].sum() <= 100
