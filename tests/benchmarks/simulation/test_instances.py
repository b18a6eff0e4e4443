import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

from benchmarks.papers.iise import TruncatedNormalInstance
from benchmarks.simulation.instances import BernoulliInstance, GaussianInstance

MEANS = [[0.2, 0.4, 0.3], [0.25, 0.5, 0.75]]
COSTS = [1.0, 10.0]


@pytest.fixture(params=[GaussianInstance, BernoulliInstance, TruncatedNormalInstance])
def instance(request):
    return request.param(MEANS, COSTS, variance=0.04)


class TestAnyInstance:
    def test_running_sums_go_on_from_the_sums(self, instance):
        arms, totals = np.array([2, 0]), np.array([6, 7, 1000, 5000])
        start = np.array([1e6, -1e6])
        sums = instance.running_sums(np.random.default_rng(2), arms, 1, 5, start, totals)
        assert sums.shape == (2, 4)
        drawn = (sums - start[:, None]) / (totals - 5)
        assert drawn[:, 3] == pytest.approx(instance.means[1, arms], abs=0.08)

    def test_the_sum_of_many_does_not_depend_on_the_steps(self, instance):
        rng = np.random.default_rng(3)
        arms = np.zeros(4000, dtype=np.int64)
        nothing = np.zeros(4000)
        steps = instance.running_sums(rng, arms, 0, 0, nothing, np.arange(1, 41))[:, -1]
        at_once = instance.running_sums(rng, arms, 0, 0, nothing, np.array([40]))[:, -1]
        assert ks_2samp(steps, at_once).pvalue > 1e-3

    def test_increments_are_independent(self, instance):
        rng = np.random.default_rng(4)
        arms = np.ones(4000, dtype=np.int64)
        sums = instance.running_sums(rng, arms, 0, 0, np.zeros(4000), np.array([1, 2, 50, 99]))
        correlations = np.corrcoef(np.diff(sums, axis=1, prepend=0.0), rowvar=False)
        assert np.abs(correlations - np.eye(4)).max() < 0.06


def test_bias_bounds_are_the_smallest_that_hold():
    instance = GaussianInstance([[0.0, 0.75], [0.5, 1.0]], costs=[1.0, 2.0])
    assert instance.xi.tolist() == [0.5, 0.0]  # biases -.5 and -.25
    assert instance.gamma.tolist() == [0.25, 0.0]


class TestErrors:
    @pytest.mark.parametrize("means", [[1.0, 2.0], [[]], [[1.0, math.nan]]])
    def test_means(self, means):
        with pytest.raises(ValueError, match="means must be finite"):
            GaussianInstance(means, [1.0])

    def test_per_fidelity(self):
        for name in ("costs", "xi", "gamma"):
            with pytest.raises(ValueError, match=f"{name} must have one value per fidelity, 2"):
                GaussianInstance(MEANS, **{"costs": COSTS, name: [1.0]})
        with pytest.raises(ValueError, match="costs must increase"):
            GaussianInstance(MEANS, [2.0, 1.0])
        with pytest.raises(ValueError, match="costs must be positive"):
            GaussianInstance(MEANS, [0.0, 1.0])

    def test_probabilities(self):
        with pytest.raises(ValueError, match="probabilities"):
            BernoulliInstance([[0.5, 1.5]], [1.0])
