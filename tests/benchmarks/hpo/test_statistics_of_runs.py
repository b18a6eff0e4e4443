import numpy as np
import pytest

from benchmarks.hpo.statistics import (
    bootstrap_means,
    friedman,
    holm,
    interval,
    mean_ranks,
    paired_test,
    probability_of_less,
    ranking,
)


def test_ties_share_their_ranks():
    losses = np.array([[1.0, 2.0], [1.0, 1.0], [5.0, 1.0]])
    # First block: 1.5, 1.5, 3; second: 3, 1.5, 1.5.
    np.testing.assert_allclose(mean_ranks(losses), [2.25, 1.5, 2.25])


def test_friedman_by_hand():
    # Three methods in the same order on all of n = 4 blocks: the statistic is
    # 12 n / (k (k + 1)) * sum((R - (k + 1) / 2)^2) = 12 * 4 / 12 * 2 = 8, on 2 degrees of
    # freedom: p = exp(-4).
    losses = np.array([[1.0, 2.0, 3.0, 4.0]]) + np.array([[0.0], [1.0], [2.0]])
    assert friedman(losses) == pytest.approx(np.exp(-4.0))
    assert friedman(losses[:2]) == 1.0
    assert friedman(losses[[0, 0, 0]]) == 1.0


def test_wilcoxon_by_hand():
    # All of 6 differences have one sign: 2 of 2^6 assignments are as extreme.
    first = np.array([2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    assert paired_test(first, first - np.arange(1, 7)) == (pytest.approx(2 / 64), 1)
    assert paired_test(first - np.arange(1, 7), first) == (pytest.approx(2 / 64), -1)
    assert paired_test(first, first) == (1.0, 0)


def test_holm_by_hand():
    assert holm([]) == []
    assert holm([0.01, 0.6, 0.02, 0.03]) == pytest.approx([0.04, 0.6, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]


def test_effect_size_by_hand():
    # Of four pairs: 1 < 2, 1 < 1 is a tie, 3 < 2 is not, 3 < 1 is not.
    assert probability_of_less(np.array([1.0, 3.0]), np.array([2.0, 1.0])) == 0.375


class TestBootstrap:
    def test_tasks_stay_and_seeds_are_drawn_again(self):
        values = np.array([[0.0, 2.0], [10.0, 10.0]])
        means = bootstrap_means(values)
        assert set(means.tolist()) == {5.0, 5.5, 6.0}
        assert np.mean(means == 5.5) == pytest.approx(0.5, abs=0.05)
        np.testing.assert_array_equal(interval(means), [5.0, 6.0])

    def test_width(self):
        values = np.random.default_rng(0).standard_normal((1, 400))
        low, high = interval(bootstrap_means(values))
        # The standard error is 1 / 20.
        assert high - low == pytest.approx(2 * 1.96 / 20, rel=0.12)
        assert low < values.mean() < high


class TestRanking:
    def test_two_cliques(self):
        noise = np.random.default_rng(1).standard_normal((4, 60))
        found = ranking(noise + np.array([[3.0], [0.0], [0.1], [3.1]]))
        assert set(found.order[:2]) == {1, 2}
        assert set(found.order[2:]) == {0, 3}
        assert found.cliques == ((0, 1), (2, 3))
        assert found.friedman < 1e-6
        assert found.p_values[0, 1] < 1e-6
        np.testing.assert_array_equal(found.p_values, found.p_values.T)

    def test_cliques_may_overlap(self):
        # The second is above both of the others, or below both, in turn.
        losses = np.array([[0.0] * 20, [2.5, -1.5] * 10, [1.0] * 20])
        found = ranking(losses)
        assert found.ranks == (1.5, 2.0, 2.5)
        assert found.friedman == pytest.approx(np.exp(-5.0))
        assert found.order == (0, 1, 2)
        assert found.cliques == ((0, 1), (1, 2))
