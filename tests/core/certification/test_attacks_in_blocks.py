"""Claims of races in blocks and by looks, where values are coarse or the order matters."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from mfhpo import Observation
from tests.core.certification.races import both, make_elimination, make_looks

RACES = 40
make_independent = partial(make_looks, blocks=False)
slowly = pytest.param(make_elimination, marks=pytest.mark.slow)
in_many_races = pytest.mark.parametrize("make", [make_looks, slowly], ids=["looks", "elimination"])


def play(policy, draw, most):
    for _ in range(most):
        if policy.finished:
            break
        [pull] = policy.ask()
        policy.tell(pull, Observation(float(draw(pull))))
    return policy.recommend()


def few(delta):
    """Most errors of races that err with a probability of delta, but for one case in a thousand."""
    return binom.ppf(0.999, RACES, delta)


@both
def test_every_arm_is_first_as_often_and_every_second_order_is_reversed(make):
    for seed in (0, 1):
        policy, again = make(3, seed=seed), make(3, seed=seed)
        asked = policy.ask(3 * 60)
        assert again.ask(3 * 60) == asked
        blocks = [[pull.arm for pull in asked[n : n + 3]] for n in range(0, len(asked), 3)]
        assert all(one == two[::-1] for one, two in zip(blocks[::2], blocks[1::2], strict=True))
        firsts = np.bincount([block[0] for block in blocks])
        assert binom.ppf(1e-3, 60, 1 / 3) <= firsts.min()
    assert make(3, seed=0).ask(30) != make(3, seed=1).ask(30)


@in_many_races
@pytest.mark.parametrize("delta", [0.05, pytest.param(0.01, marks=pytest.mark.slow)])
@pytest.mark.parametrize("epsilon", [0.0, pytest.param(0.001, marks=pytest.mark.slow)])
def test_settings_nearly_alike_on_fifty_rows(make, delta, epsilon):
    """On most replicates both are right on the same rows; the best is right on a row more."""
    wrong = 0
    for seed in range(RACES):
        rng = np.random.default_rng(seed)
        best, scores = int(rng.integers(2)), {}

        def draw(pull, rng=rng, best=best, scores=scores):
            if pull.block not in scores:
                right = rng.binomial(50, 0.8) / 50
                gains = rng.random(2) < np.where(np.arange(2) == best, 0.15, 0.05)
                scores[pull.block] = right + gains / 50
            return scores[pull.block][pull.arm]

        answer = play(make(2, epsilon=epsilon, delta=delta, seed=seed), draw, 60)
        wrong += answer.certified and answer.arm != best
    assert wrong <= few(delta)


@pytest.mark.parametrize("make", [make_looks, make_independent], ids=["blocks", "independent"])
@pytest.mark.parametrize("delta", [0.05, pytest.param(0.01, marks=pytest.mark.slow)])
def test_accuracies_near_one(make, delta):
    missed = 0
    for seed in range(RACES):
        rng = np.random.default_rng(seed)
        truth = np.array([0.995, 0.996, 0.999])
        policy = make(3, epsilon=0.01, delta=delta, seed=seed)
        play(policy, lambda pull, rng=rng, truth=truth: rng.binomial(50, truth[pull.arm]) / 50, 60)
        bounds = np.array([policy.interval(arm) for arm in range(3)])
        assert (bounds[:, 1] > bounds[:, 0]).all()
        missed += bool(((truth < bounds[:, 0]) | (truth > bounds[:, 1])).any())
    assert missed <= few(delta)
