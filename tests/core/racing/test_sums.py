import numpy as np
import pytest

from benchmarks.simulation.sums import tell_sum
from mfhpo import IISE, Bias, Observation, Problem, Pull, SubGaussian
from mfhpo.identification.block_elimination import BlockElimination
from mfhpo.identification.group_sequential import GroupSequential
from tests.core.racing.plays import tell_all

ONE_LEVEL = {"costs": (1.0,), "bias": Bias.max(0.0)}


def test_arms_come_back_whose_better_one_turns_out_to_be_a_withdrawn_one():
    policy = IISE(Problem(4, (1.0,), noise=SubGaussian(0.1)), variant="se", audit=False)
    policy.withdraw(0)
    tell_all(policy, 1, [1.0] * 20)
    tell_all(policy, 2, [0.9] * 200)
    tell_all(policy, 1, [1.0] * 200)
    tell_all(policy, 3, [0.6])
    assert policy.active.tolist() == [1, 3]
    policy.withdraw(1, duplicate_of=0)  # 0.9 and 0.6 are left
    assert policy.active.tolist() == [2, 3]
    assert not policy.recommend().certified


def test_an_arm_is_not_eliminated_by_itself():
    policy = IISE(Problem(2, (1.0,), noise=SubGaussian(0.1)), variant="se", audit=False)
    for arm in (0, 1):
        tell_all(policy, arm, [float(arm)] * 20)
    assert policy.active.tolist() == [1]
    policy.withdraw(1, duplicate_of=0)
    answer = policy.recommend()
    assert (answer.arm, answer.reason) == (0, "the only arm")


def test_arms_that_have_eliminated_each_other_come_back():
    policy = IISE(Problem(4, (1.0,), noise=SubGaussian(0.1)), variant="se", audit=False)
    tell_all(policy, 3, [-1.0] * 20)
    for arm in (0, 1, 2):
        tell_all(policy, arm, [float(arm)] * 20)
    assert policy.active.tolist() == [2]
    policy.known.roster.merge(2, into=0)  # by which 1 was eliminated, that had eliminated 0
    assert policy.active.tolist() == [0, 1]


@pytest.mark.parametrize("is_void", [False, True])
def test_a_first_look_at_fewer_replicates_certifies(is_void):
    policy, rng = GroupSequential(Problem(2, (1.0,)), blocks=True), np.random.default_rng(0)
    policy.most_blocks = 4 + is_void
    assert not policy.finished
    for turn in range(4 + is_void):
        for arm in (0, 1):
            value = None if is_void and turn == 0 else 10.0 * arm + rng.normal()
            policy.tell(Pull(arm, 0, block=turn), Observation(value))
    answer = policy.recommend()
    assert (policy.winner, policy.rule.behind(policy.known)) == (1, 0.0)
    assert (answer.certified, answer.finished) == (True, True)


@pytest.mark.filterwarnings("ignore::mfhpo.NoiseContradictedWarning")
def test_the_noise_is_not_estimated_from_sums():
    policy = IISE(Problem(2, **ONE_LEVEL, noise=SubGaussian(0.1)))
    for arm in (0, 1):
        tell_sum(policy, Pull(arm, 0), 400, 200.0 + arm)
    tell_all(policy, 0, [1.5, -0.5] * 4)  # around 0.5 by 1
    evidence = policy.known.evidence
    assert not evidence.noise.widened


@pytest.mark.parametrize(
    "make",
    [
        lambda: BlockElimination(Problem(2, None, n_fidelities=1)),
        lambda: GroupSequential(Problem(2, None, n_fidelities=1), blocks=True),
    ],
)
def test_what_is_refused_leaves_no_trace(make):
    policy = make()
    [pull] = policy.ask()
    with pytest.raises(ValueError, match="cost=None"):
        policy.tell(pull, Observation(1.0))
    assert policy.ask() == [pull]
    policy.tell(pull, Observation(1.0, cost=2.0))
    assert (policy.pulls, policy.cost) == (1, 2.0)
