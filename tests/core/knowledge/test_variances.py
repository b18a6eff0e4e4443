import json

import numpy as np
import pytest

from mfhpo.knowledge.statistics import PullStatistics
from mfhpo.knowledge.variances import ArmVariances, agreement


def told(values):
    """Variances of arms at one fidelity, from each arm's values."""
    statistics = PullStatistics(len(values), 1)
    variances = ArmVariances(statistics, 0)
    for turn in range(max(map(len, values))):
        for arm, of_arm in enumerate(values):
            if turn < len(of_arm):
                variances.learn(statistics.add(arm, 0, of_arm[turn]))
    return statistics, variances


def squares_of(sigmas, count, seed):
    rng = np.random.default_rng(seed)
    return np.square(sigmas) * rng.chisquare(count - 1, len(sigmas)), np.full(len(sigmas), count)


def test_arms_of_one_variance_agree():
    # The fewest degrees that fit: an arm's own 49 weigh less than what the others are worth.
    found = [agreement(*squares_of(np.full(30, 2.0), 50, seed)) for seed in range(100)]
    assert min(found) >= 64.0
    assert np.median(found) >= 256.0


def test_arms_of_very_different_variances_do_not():
    found = [agreement(*squares_of(np.geomspace(0.01, 100.0, 10), 10, seed)) for seed in range(100)]
    assert max(found) <= 2.0


def test_agreement_where_little_or_nothing_is_seen():
    counts = np.array([5, 1, 5])
    assert agreement(np.array([4.0, 0.0, 0.0]), counts) == 0.0  # of one arm alone
    assert agreement(np.zeros(3), counts) == np.inf  # no noise
    assert agreement(np.zeros(3), np.ones(3, dtype=np.int64)) == 0.0


# Squares 2, 2 and 0.5 around the means: few values of like spread, worth 1.1667 degrees of freedom
# each where the mean is free, and 1/2 for two values.
FEW = [[0.0, 1.0, 2.0], [5.0, 6.0, 7.0], [3.0, 2.0]]


def test_variances_of_arms_that_agree_by_hand():
    _, variances = told(FEW)
    assert variances.degrees == 5.0
    assert variances.pooled == pytest.approx(4.5 / 5.0)
    found, degrees = variances.of_arms(np.array([0, 2]))
    assert degrees == pytest.approx([2.0 + 7 / 6 + 1 / 2, 1.0 + 2 * 7 / 6])
    assert found * degrees == pytest.approx([4.5, 4.5])  # all squares count
    mine, theirs, degrees = variances.of_pairs(0, np.array([1, 2]))
    assert degrees == pytest.approx([2.0 + 2.0 + 1 / 2, 2.0 + 1.0 + 7 / 6])
    assert mine * degrees == pytest.approx([4.5, 4.5])
    assert theirs.tolist() == mine.tolist()


def test_an_arm_unlike_the_others_has_hardly_but_its_own():
    rng = np.random.default_rng(2)
    sigmas = np.geomspace(0.01, 100.0, 10)
    statistics, variances = told(list(sigmas[:, None] * rng.standard_normal((10, 20))))
    own = statistics.squares[:, 0] / 19.0
    shared = agreement(statistics.squares[:, 0], statistics.counts[:, 0])
    found, degrees = variances.of_arms(np.arange(10))
    assert degrees == pytest.approx(np.full(10, 19.0 + shared))
    others = (statistics.squares.sum() - statistics.squares[:, 0]) / (
        9 * (20 - (1.0 / np.arange(1, 21)).sum())
    )
    assert found == pytest.approx((19.0 * own + shared * others) / (19.0 + shared))
    assert found[-1] < 1.1 * own[-1]


def test_what_is_unknown_is_infinite():
    _, variances = told([[1.0], [2.0]])
    found, degrees = variances.of_arms(np.arange(2))
    assert np.isinf(found).all()
    assert degrees.tolist() == [0.0, 0.0]
    assert np.isnan(variances.pooled)


@pytest.mark.parametrize("values", [FEW, [[1.0, 1.0, 1.0], [2.0, 2.0]]])
def test_a_saved_state_gives_the_same(values):
    statistics, variances = told(values)
    other = ArmVariances(statistics, 0)
    other.load_state_dict(json.loads(json.dumps(variances.state_dict(), allow_nan=False)))
    assert other.state_dict() == variances.state_dict()
    for one, again in zip(
        (*variances.of_arms(np.arange(2)), *variances.of_pairs(0, np.array([1]))),
        (*other.of_arms(np.arange(2)), *other.of_pairs(0, np.array([1]))),
        strict=True,
    ):
        assert one.tolist() == again.tolist()


def test_arms_without_noise_lend_none_to_the_others():
    """Two noisy arms among twenty that always give the same: the noisy ones keep their variance."""
    rng = np.random.default_rng(0)
    statistics = PullStatistics(22, 1)
    variances = ArmVariances(statistics, 0)
    for _ in range(5):
        for arm in range(22):
            variances.learn(statistics.add(arm, 0, float(rng.standard_normal()) * (arm < 2)))
    found, degrees = variances.of_arms(np.array([0]))
    two = statistics.squares[:2, 0].sum()
    assert found[0] == pytest.approx(two / 8.0, rel=0.5)
    assert degrees[0] <= 8.0
    mine, theirs, of_pair = variances.of_pairs(0, np.array([1, 5]))
    assert min(mine.min(), theirs[0]) > two / 16.0
    assert (of_pair <= 8.0).all()
