import numpy as np
import pytest
from scipy.stats import norm, t

from mfhpo.knowledge.variances import SharedVariance, share_variances


def test_the_moderated_variance_by_hand():
    # 3 values with squares 4: 2 degrees; shared: variance 1, worth 6 degrees: (4 + 6) / 8.
    shared = SharedVariance(variance=1.0, degrees=6.0)
    [found] = shared.of_arms(np.array([4.0]), np.array([3]), level=0.01)
    assert found == pytest.approx(10.0 / 8.0 * (t.ppf(0.01, 8) / norm.ppf(0.01)) ** 2)


def test_without_any_knowledge_a_variance_is_unknown():
    found = SharedVariance().of_arms(np.array([0.0, 0.0, 2.0]), np.array([0, 1, 2]), level=0.01)
    assert np.isinf(found[:2]).all()
    assert np.isfinite(found[2])


def test_arms_without_spread_and_single_values_do_not_count():
    squares, counts = np.array([0.0, 3.0, 5.0]), np.array([5, 1, 5])
    assert share_variances(squares, counts) == SharedVariance()


def test_equal_variances_are_pooled_in_the_long_run():
    rng = np.random.default_rng(0)
    shared = share_variances(4.0 * rng.chisquare(49, 30), np.full(30, 50))
    assert shared.variance == pytest.approx(4.0, rel=0.1)
    assert shared.degrees > 50.0


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "count"), [(1.0, 5), (3.0, 2), (15.0, 5)])
def test_a_mean_of_the_noisiest_of_five_arms_is_rarely_off(spread, count):
    rng, n, level = np.random.default_rng(1), 2000, 0.01
    sigmas = np.array([spread, 1.0, 1.0, 1.0, 1.0])
    counts, missed = np.full(5, count), 0
    for _ in range(n):
        values = sigmas[:, None] * rng.standard_normal((5, count))
        squares = ((values - values.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
        variance = share_variances(squares, counts).of_arms(squares, counts, level)[0]
        missed += values[0].mean() > norm.isf(level) * np.sqrt(variance / count)
    # Meant for .01, if the variances were draws of the assumed distribution. One arm that is unlike
    # all others is none, and is missed up to five times as often: by a pooled variance it would be
    # one time in ten or more.
    assert missed <= n * 5.0 * level + 4.0 * np.sqrt(n * level)
    pooled = np.sqrt((spread**2 + 4.0) / 5.0)
    assert spread == 1.0 or norm.sf(norm.isf(level) * pooled / spread) > 0.1
