"""What was done to a policy, done again."""

import time
import warnings

import numpy as np
import pytest

from mfhpo import IISE, ArmWithdrawnWarning, Observation, Problem, Pull
from mfhpo.search import BudgetedSearch, ModelSearch, Numeric, Replicate, SearchSpace
from mfhpo_ray.experiment.replay import Replay


def race():
    return IISE(Problem(3, (1.0, 3.0)), epsilon=0.1, measure=10**6)


def search():
    made = ModelSearch((1.0, 3.0), initial=4)
    made.space = SearchSpace({"x": Numeric()})
    return BudgetedSearch(made, budget=40.0, certify_share=0.5)


def test_a_race_is_the_same_and_warns_once():
    policy, again, replay = race(), race(), Replay()
    rng = np.random.default_rng(0)
    for _ in range(20):
        [pull] = policy.ask()
        replay.tell(policy, pull, Observation(float(rng.normal()), 1.5, None))
    with pytest.warns(ArmWithdrawnWarning) as warned:
        [replay.tell(policy, Pull(1, 0), Observation(None, 1.0, 2.0)) for _ in range(60)]
    assert len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Replay(replay.text).again(again)
    assert repr(again.recommend()) == repr(policy.recommend())
    assert again.ask(5) == policy.ask(5)
    assert again.active.tolist() == [0, 2]


def test_a_search_is_the_same_with_its_certificate():
    policy, replay, begun = search(), Replay(), set()
    rng = np.random.default_rng(0)
    while pulls := policy.ask():
        [pull] = pulls
        if pull.arm not in begun:
            replay.describe(policy, pull.arm, policy.point_of(pull.arm) or {"x": rng.random()})
        begun.add(pull.arm)
        replay.tell(policy, pull, Observation(float(rng.normal())))
        if len(begun) == 3 and pull.arm == 2:
            replay.withdraw(policy, 2, duplicate_of=0)
        again = search()
        Replay(replay.text).again(again)
        assert again.ask(3) == policy.ask(3)
        assert repr(again.recommend()) == repr(policy.recommend())
    assert isinstance(pull, Replicate)
    assert again.finished
    assert again.shortlist == policy.shortlist != ()


@pytest.mark.slow
def test_a_long_race_is_replayed_in_seconds():
    policy, replay = race(), Replay()
    for number, value in enumerate(np.random.default_rng(0).normal(size=20_000).tolist()):
        replay.tell(policy, Pull(number % 3, number % 2), Observation(value))
    began = time.process_time()
    Replay(replay.text).again(race())
    assert time.process_time() - began < 10.0
