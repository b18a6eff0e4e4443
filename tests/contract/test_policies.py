import numpy as np
import pytest

from benchmarks.simulation.blocks import run_lucb, run_rounds
from benchmarks.simulation.instances import GaussianInstance
from benchmarks.simulation.lucb import PublishedLUCB
from mfhpo.identification.elimination import (
    IISE,
)
from mfhpo.identification.gradient import MFGrad
from mfhpo.identification.group_sequential import GroupSequential
from mfhpo.identification.lucb import MFLUCB
from mfhpo.identification.top_two import MFTopTwo
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, SubGaussian
from mfhpo.problem import Problem
from tests.contract.policy_contract import contract
from tests.core.racing.plays import play

ORDER = Bias.order(0.1, 0.1, 0.0)
BOUNDED = Bounded(0.0, 1.0)
UNKNOWN = {"noise": EstimatedNoise(), "bias": None, "costs": None}

TestSuccessiveElimination = contract(
    lambda problem: IISE(problem, variant="se", delta=0.01, epsilon=None), **UNKNOWN
)
TestIISE = contract(lambda problem: IISE(problem, delta=0.01, measure=5))
TestIISEWithOrderBounds = contract(
    lambda problem: IISE(problem, delta=0.01, epsilon=0.2), bias=ORDER
)
TestIISEWithEverythingEstimated = contract(
    lambda problem: IISE(
        problem, delta=0.01, epsilon=None, pilot_arms=4, estimated_bias="eliminate"
    ),
    **UNKNOWN,
)
TestIISEWithBoundedValues = contract(lambda problem: IISE(problem, delta=0.01), noise=BOUNDED)
TestMaximumFidelityExploit = contract(lambda problem: IISE(problem, variant="mfe", delta=0.01))
TestLUCBByIndex = contract(lambda problem: MFLUCB(problem, explore="A", delta=0.01))
TestLUCBBySweep = contract(lambda problem: MFLUCB(problem, explore="B", delta=0.01))
TestLUCBByRadius = contract(
    lambda problem: MFLUCB(problem, epsilon=0.2, measure=3, delta=0.01), noise=Gaussian()
)
TestLUCBAsPublished = contract(
    lambda problem: PublishedLUCB(problem, explore="top", schedule="rounds", delta=0.01)
)
TestLUCBWithEverythingEstimated = contract(
    lambda problem: MFLUCB(
        problem, explore="A", delta=0.01, epsilon=None, pilot_arms=4, estimated_bias="eliminate"
    ),
    **UNKNOWN,
)

TestTopTwo = contract(lambda problem: MFTopTwo(problem, delta=0.01, measure=5))
TestTopTwoWithOrderBounds = contract(
    lambda problem: MFTopTwo(problem, delta=0.01, epsilon=0.2), bias=ORDER, noise=BOUNDED
)
TestTopTwoWithEverythingEstimated = contract(
    lambda problem: MFTopTwo(problem, delta=0.01, epsilon=None, pilot_arms=4), **UNKNOWN
)
TestGradient = contract(lambda problem: MFGrad(problem, delta=0.01), noise=EstimatedNoise())
TestGradientAsPublished = contract(
    lambda problem: MFGrad(problem, delta=0.01, stop="published", learning_rate=0.25)
)
TestGradientWithEverythingEstimated = contract(
    lambda problem: MFGrad(
        problem, delta=0.01, epsilon=None, pilot_arms=4, estimated_bias="eliminate"
    ),
    **UNKNOWN,
)

TestGroupSequential = contract(lambda problem: GroupSequential(problem, delta=0.01))
TestGroupSequentialWithBoundedValues = contract(
    lambda problem: GroupSequential(problem, delta=0.01), noise=BOUNDED
)
TestGroupSequentialWithEverythingEstimated = contract(
    lambda problem: GroupSequential(problem, delta=0.01, epsilon=None, first_look=3), **UNKNOWN
)


# Fidelities x arms. The two best arms are equal at fidelity 0, within its bias bound.
CLOSE = [[0.15, 0.65, 0.65], [0.1, 0.6, 0.7]]
XI = (0.05, 0.0)


RACES = {
    "IISE": IISE,
    "SE": lambda problem: IISE(problem, variant="se"),
    "looks": GroupSequential,
    "LUCB-A": lambda problem: MFLUCB(problem, explore="A"),
    "LUCB-B": lambda problem: MFLUCB(problem, explore="B"),
    "LUCB-AB": lambda problem: MFLUCB(problem, explore="AB"),
    "LUCB-C": lambda problem: MFLUCB(problem, explore="C"),
    "LUCB-top": lambda problem: MFLUCB(problem, explore="top"),
}


@pytest.mark.parametrize("name", RACES)
def test_without_noise_one_pull_of_each_is_enough(name):
    policy = RACES[name](Problem(3, (1.0, 9.0), Bias.max(*XI), SubGaussian(0.0)))
    pulls = len(play(policy, lambda pull: CLOSE[pull.fidelity][pull.arm], most=10))
    assert policy.recommend().arm == 2
    assert policy.recommend().certified
    # One of every arm at the target, or at fidelity 0 and then the two best at the target.
    assert pulls == (3 if name in ("SE", "looks", "LUCB-top") else 5)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "LUCB-A"))
        for name in RACES
        if name != "looks"  # no rounds to play
    ],
)
def test_a_target_that_is_far_dearer(name):
    ratio = 1e4
    instance = GaussianInstance(CLOSE, (1.0, ratio), xi=XI, variance=0.01)
    policy = RACES[name](instance.problem())
    rng = np.random.default_rng(0)
    if isinstance(policy, MFLUCB):
        result = run_lucb(policy, instance, rng)
    else:
        result = run_rounds(policy, instance, rng)
    assert result.arm == 2
    assert result.certified
    # 500 pulls of the target; successive elimination there takes about 90, and IISE may take as
    # much at fidelity 0 as the target needs for each of its arms.
    assert result.cost <= 500.0 * ratio


@pytest.mark.parametrize("name", RACES)
def test_measured_costs_that_fall(name):
    noise, costs = SubGaussian(0.1), (10.0, 1.0)
    policy = RACES[name](Problem(3, None, Bias.max(*XI), noise, n_fidelities=2))
    rng = np.random.default_rng(0)
    play(
        policy,
        lambda pull: CLOSE[pull.fidelity][pull.arm] + 0.1 * rng.standard_normal(),
        costs=costs,
        most=500,
    )
    assert policy.recommend().arm == 2
    assert policy.recommend().certified
    # Nothing at fidelity 0 but for the pilot: two pulls of each arm.
    assert sum(policy.summary(arm, 0)[0] for arm in range(3)) <= 6
