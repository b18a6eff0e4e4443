from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers.rcucb_baselines import LimitThompson, LimitUCB, drawn_pair
from benchmarks.papers.rcucb_instances import PUBLISHED_COST, PUBLISHED_PENALTY, ArmStreams
from mfhpo.censored import Linear
from tests.core.censored.naive import charged
from tests.core.censored.test_rcucb import three_arms

PAPER = {"cost": PUBLISHED_COST, "penalty": PUBLISHED_PENALTY}
GRID = (0.3, 0.6, 0.9)


@pytest.mark.parametrize("exploration", [0.5, 1.0, 4.0])
def test_ucb_as_the_naive_rule_compiled_or_not(exploration, monkeypatch):
    states = []
    for _ in range(2):
        policy = LimitUCB(3, GRID, exploration=exploration, **PAPER)
        policy.play(ArmStreams(three_arms(), 2), 1500)
        states.append(policy.state_dict())
        monkeypatch.setattr(
            "benchmarks.papers.rcucb_baselines.compiled", lambda function, *helpers: function
        )
    assert states[0] == states[1]
    state = states[0]
    counts, sums = np.zeros((3, 3)), np.zeros((3, 3))
    penalties = [charged(PUBLISHED_PENALTY, tau) for tau in GRID]
    told = zip(state["arms"], state["limits"], state["rewards"], state["seconds"], strict=True)
    for t, (arm, limit, reward, seconds) in enumerate(told, start=1):
        point = GRID.index(limit)
        if t > 9:
            indices = sums / counts + np.sqrt(exploration * math.log(t) / (2.0 * counts))
            assert indices[arm, point] >= indices.max() - 1e-9
        else:
            assert (arm, point) == divmod(t - 1, 3)
        worth = -penalties[point] if seconds is None else reward - 0.1 * seconds
        counts[arm, point] += 1.0
        sums[arm, point] += (worth + penalties[-1]) / (1.0 + penalties[-1])
    assert policy.pairs.first.tolist() == counts.tolist()


def test_thompson_by_the_chances_of_eq_32():
    # One arm; always .6 after 1.5 seconds: at 1 it is stopped, worth (-.5 + 1) / 2; at 2 it is not,
    # and is worth (.6 - .15 + 1) / 2.
    policy = LimitThompson(1, (1.0, 2.0), cost=Linear(0.1), penalty=Linear(0.5), seed=5)
    policy.play(lambda arm, size: (np.full(size, 0.6), np.full(size, 1.5)), 3000)
    successes, failures = policy.pairs.first[0], policy.pairs.second[0]
    short, long = policy.pairs.plays[0].tolist()
    assert (successes + failures).tolist() == [short + long, long]
    # The longer one is the better one by far.
    assert long > 2900
    assert successes / (successes + failures) == pytest.approx([0.25, 0.725], abs=0.04)


def test_thompson_draws_from_the_posterior():
    # Beta(1 + 9, 1) against Beta(1 + 1, 1): the second is the larger one in 2 of 12 draws.
    rng = np.random.default_rng(0)
    arrays = np.array([[9.0], [1.0]]), np.zeros((2, 1)), np.ones((2, 1))
    picks = [drawn_pair(*arrays, rng) for _ in range(600)]
    # Four standard errors.
    assert np.mean(picks) == pytest.approx(1.0 / 6.0, abs=0.062)
