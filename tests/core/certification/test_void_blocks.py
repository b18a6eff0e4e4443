"""Replicates on which evaluations fail, in both races in blocks."""

import math
from functools import partial

import numpy as np
import pytest

from mfhpo import Observation, Pull
from mfhpo.racing.race import ArmWithdrawnWarning
from tests.core.certification import races
from tests.core.certification.races import EFFECTS, both

FAILED = Observation(None)
make_looks = partial(races.make_looks, epsilon=0.3)
make_elimination = partial(races.make_elimination, epsilon=0.3)


def fails_for_all(block):
    return block % 5 == 1


def race(policy, fails, workers=1, most=400):
    """Play with several workers; the policy and what was told."""
    rng, under_way, told = np.random.default_rng(1), [], []
    while not policy.finished and len(told) < most:
        under_way += policy.ask(workers - len(under_way), under_way)
        pull = under_way.pop(int(rng.integers(len(under_way))))
        value = pull.arm + EFFECTS[pull.block] + 0.1 * rng.standard_normal()
        policy.tell(pull, FAILED if fails(pull) else Observation(float(value)))
        told.append((pull.arm, pull.block))
    return policy, told


@both
@pytest.mark.parametrize("workers", [1, 6])
def test_a_certificate_comes_about_without_them(make, workers):
    policy, told = race(make(4, epsilon=0.3), lambda pull: fails_for_all(pull.block), workers)
    answer = policy.recommend()
    assert (answer.arm, answer.certified, answer.not_compared) == (3, True, ())
    assert len(set(told)) == len(told)  # nobody was asked again
    n_void = int(policy.known.needs.intake.void.sum())
    assert n_void >= 1
    assert all(fails_for_all(block) for block in np.flatnonzero(policy.known.needs.intake.void))
    assert f"without {n_void} on which every evaluation failed" in answer.assumptions[0]


@both
@pytest.mark.parametrize("workers", [1, 6])
def test_an_arm_that_alone_fails_leaves(make, workers):
    with pytest.warns(ArmWithdrawnWarning, match="arm 1 leaves"):
        policy, _ = race(
            make(4, epsilon=0.3), lambda pull: pull.arm == 1 or fails_for_all(pull.block), workers
        )
    answer = policy.recommend()
    assert (answer.arm, answer.certified, len(answer.not_compared)) == (3, True, 1)


@both
def test_what_is_void_does_not_depend_on_the_order(make):
    outcomes = [(arm, block) for arm in range(3) for block in range(6)]
    failures = {(0, 1), (1, 1), (2, 1), (0, 3), (1, 3), (2, 4)}
    rng, asked = np.random.default_rng(0), set()
    for _ in range(30):
        policy = make(3, epsilon=0.3, delta=1e-9)
        for at in rng.permutation(len(outcomes)).tolist():
            arm, block = outcomes[at]
            value = None if (arm, block) in failures else EFFECTS[block] + arm + 0.1 * block
            policy.tell(Pull(arm, 0, block=block), Observation(value))
        assert np.flatnonzero(policy.known.needs.intake.void).tolist() == [1]
        assert policy.active.tolist() == [0, 1, 2]
        asked.add(tuple((pull.arm, pull.block) for pull in policy.ask(3)))
    [pulls] = asked
    assert (set(pulls[:2]), pulls[2]) == ({(0, 3), (1, 3)}, (2, 4))


@both
def test_the_race_ends_if_more_than_half_of_the_replicates_fail(make):
    with pytest.warns(ArmWithdrawnWarning):
        policy, told = race(make(2, epsilon=0.3), lambda pull: pull.block % 20 > 1)
    assert len(told) < 50
    assert not policy.recommend().certified


def test_a_look_takes_the_first_blocks_that_are_not_void():
    policy, _ = race(make_looks(2), lambda pull: pull.block in (0, 3))
    assert policy.rule.looks == 1
    kept = [1, 2, 4, 5, 6]
    assert policy.summary(1, 0)[1] == pytest.approx(
        policy.known.needs.intake.values[1, kept].mean()
    )


def test_a_winner_that_fails_is_not_alone_in_a_replicate_before_its_rival_was_tried():
    policy, rng = make_elimination(3, measure=30), np.random.default_rng(0)
    while policy.winner is None:
        [pull] = policy.ask()
        policy.tell(pull, Observation(pull.arm + EFFECTS[pull.block] + 0.1 * rng.normal()))
    assert (policy.winner, policy.finished) == (2, False)
    [own] = policy.ask()
    block = own.block
    policy.tell(own, FAILED)
    [rival] = policy.ask()
    assert (rival.arm in (0, 1), rival.block) == (True, block)
    policy.tell(rival, FAILED)
    assert policy.ask() == [Pull(2, 0, block=block + 1)]
    assert policy.known.needs.intake.void[block]


@both
def test_failures_on_one_replicate_are_one_failure(make):
    policy = make(2, epsilon=0.3)
    for block in (0, 1):
        policy.tell(Pull(1, 0, block=block), Observation(1.0))
    for _ in range(50):
        policy.tell(Pull(0, 0, block=0), FAILED)
    policy.tell(Pull(0, 0, block=1), FAILED)
    assert policy.active.tolist() == [0, 1]
    policy.tell(Pull(1, 0, block=2), Observation(1.0))
    with pytest.warns(ArmWithdrawnWarning, match="52 of 52 pulls gave no value"):
        policy.tell(Pull(0, 0, block=2), FAILED)


@both
@pytest.mark.parametrize("workers", [1, 4])
def test_the_best_stays_if_it_fails_on_some_replicates(make, workers):
    def fails(pull):
        return pull.arm == 3 and pull.block % 3 == 1

    policy, told = race(make(4, epsilon=0.3, delta=1e-6), fails, workers)
    answer = policy.recommend()
    assert (answer.arm, answer.certified, answer.not_compared) == (3, True, ())
    assert told.count((3, 1)) == 2
    assert max(told.count(pull) for pull in told) == 2
    assert answer.failures == sum(arm == 3 and block % 3 == 1 for arm, block in told)


def test_arms_are_compared_where_both_have_values():
    policy = make_looks(2, delta=0.2)
    for block, step in enumerate((-2.0, 90.0, -1.0, 1.0, 2.0)):
        policy.tell(Pull(1, 0, block=block), Observation(EFFECTS[block] + 1.0 + step))
        for _ in range(1 + (block == 1)):
            failed = block == 1
            policy.tell(Pull(0, 0, block=block), FAILED if failed else Observation(EFFECTS[block]))
    assert (policy.rule.looks, policy.summary(0, 0)[0], policy.summary(1, 0)[0]) == (1, 4, 5)
    # Differences 1 + (-2, -1, 1, 2): variance 10 / 3; level .1 and 3 degrees, t = 1.638.
    assert policy.rule.behind(policy.known) == pytest.approx(
        1.638 * math.sqrt(10 / 3 / 4) - 1.0, abs=1e-3
    )
