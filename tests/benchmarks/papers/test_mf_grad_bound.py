import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.iise import load_instance
from benchmarks.papers.mf_grad_bound import tight_cost_lower_bound
from benchmarks.simulation.instances import GaussianInstance
from mfhpo.identification.bounds import cost_lower_bound
from mfhpo.identification.likelihood.likelihood import OwnBias
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Problem

numbers = st.integers(0, 2**32 - 1)


def bound(means, costs=(1.0,), xi=None, sigma=1.0, delta=0.05):
    n_fidelities, n_arms = np.shape(means)
    bias = Bias.max(*(np.zeros(n_fidelities) if xi is None else xi))
    problem = Problem(n_arms, costs=tuple(costs), bias=bias, noise=SubGaussian(sigma))
    return tight_cost_lower_bound(problem, delta, means=means)


def random_instance(seed):
    rng = np.random.default_rng(seed)
    n_fidelities, n_arms = int(rng.integers(1, 4)), int(rng.integers(2, 6))
    targets = rng.permutation(np.arange(n_arms)) + rng.uniform(0.0, 0.5, n_arms)
    xi = np.append(np.sort(rng.uniform(0.0, 1.0, n_fidelities - 1))[::-1], 0.0)
    biases = xi[:, None] * rng.uniform(-1.0, 1.0, (n_fidelities, n_arms))
    costs = np.cumprod(rng.uniform(1.5, 8.0, n_fidelities))
    return GaussianInstance(targets + biases, costs, xi=xi, variance=float(rng.uniform(0.1, 4.0)))


def of_instance(instance, delta=0.05):
    return tight_cost_lower_bound(instance.problem(), delta, means=instance.means)


class TestByHand:
    @pytest.mark.parametrize("n_arms", [2, 3, 5, 10])
    @pytest.mark.parametrize(("gap", "sigma"), [(1.0, 1.0), (0.3, 2.0)])
    def test_equal_gaps(self, n_arms, gap, sigma):
        # With a of the best and b of each other: a b / (a + b) * gap^2 / (2 sigma^2) >= 1. The
        # least a + (K - 1) b has a = sqrt(K - 1) b.
        root = math.sqrt(n_arms - 1)
        found = bound([[gap] + [0.0] * (n_arms - 1)], sigma=sigma)
        assert found.coefficient == pytest.approx(
            (1.0 + root) ** 2 * 2.0 * sigma**2 / gap**2, rel=2e-4
        )
        assert found.shares[0, 0] == pytest.approx(root / (root + n_arms - 1), abs=0.02)

    def test_a_cheap_fidelity_whose_bias_hides_half_the_gap(self):
        # Arms 4 apart, xi = 1: 2 are left, so that it takes a quarter of the pulls that 1 takes.
        # The target alone would cost 8 / 16 of its own cost, 10.
        found = bound([[0.0, 4.0], [0.0, 4.0]], costs=(0.5, 10.0), xi=(1.0, 0.0))
        assert found.coefficient == pytest.approx(8.0 / 4.0 * 0.5, rel=2e-4)

    def test_noise_of_each_fidelity(self):
        # Half the standard deviation and four times the cost: the same.
        cheap = bound([[0.0, 1.0]], costs=(1.0,), sigma=1.0).coefficient
        both = bound([[0.0, 1.0]] * 2, costs=(1.0, 5.0), xi=(0.0, 0.0), sigma=(1.0, 0.5))
        assert both.coefficient == pytest.approx(cheap, rel=2e-4)
        quarter = bound([[0.0, 1.0]] * 2, costs=(1.0, 2.0), xi=(0.0, 0.0), sigma=(1.0, 0.5))
        assert quarter.coefficient == pytest.approx(cheap / 2.0, rel=2e-4)

    def test_one_arm_needs_nothing(self):
        found = bound([[3.0], [3.0]], costs=(1.0, 2.0), xi=(1.0, 0.0))
        assert (found.cost, found.coefficient) == (0.0, 0.0)
        assert found.shares.tolist() == [[0.5, 0.5]]


class TestProperties:
    @settings(max_examples=10)
    @given(seed=numbers)
    def test_it_is_tighter_than_the_bound_for_one_arm_at_a_time(self, seed):
        instance = random_instance(seed)
        looser = cost_lower_bound(instance.problem(), 0.01, means=instance.means)
        assert of_instance(instance, 0.01).cost >= looser * (1.0 - 2e-4)

    @settings(max_examples=10)
    @given(seed=numbers)
    def test_no_other_shares_are_better(self, seed):
        instance = random_instance(seed)
        rng = np.random.default_rng(seed)
        found = of_instance(instance)
        means = np.ascontiguousarray(instance.means.T)
        variances = np.full(means.shape, instance.variance)
        others = np.flatnonzero(np.arange(instance.n_arms) != instance.best_arm)
        for mixed in (0.05, 0.5, 1.0):
            drawn = rng.dirichlet(np.ones(means.size)).reshape(means.shape)
            shares = (1.0 - mixed) * found.shares + mixed * drawn
            likelihood = OwnBias(means, shares / instance.costs, variances, instance.xi, prior=0.0)
            information, _ = likelihood.against(instance.best_arm, others)
            assert 1.0 / max(information.min(), 1e-12) >= found.coefficient * (1.0 - 2e-4)


@settings(max_examples=10)
@given(seed=numbers)
def test_means_of_a_bad_arm_outside_the_bounds_are_moved_within_them(seed):
    instance = random_instance(seed)
    rng = np.random.default_rng(seed)
    target = instance.means[-1]
    within, broken = instance.means.copy(), instance.means.copy()
    gaps = target.max() - target
    worst = int(np.argmin(target))
    broken[:, worst] = target[worst] + instance.xi + rng.uniform(0.1, 0.9) * gaps[worst]
    broken[-1, worst] = target[worst]
    within[:, worst] = target[worst] + instance.xi
    found = tight_cost_lower_bound(instance.problem(), 0.05, means=broken)
    expected = tight_cost_lower_bound(instance.problem(), 0.05, means=within)
    assert found.coefficient == pytest.approx(expected.coefficient, rel=1e-9)


@pytest.mark.parametrize(("name", "ratio"), [("bai_5x2", 57 / 30), ("bai_4x5", 85 / 41)])
def test_ratio_of_the_two_bounds(data_folder, name, ratio):
    # IISE's cost over either bound is published: 57 and 30, 85 and 41.
    instance = load_instance(data_folder / "iise" / f"{name}.npz")
    assert isinstance(instance, GaussianInstance)
    tight = of_instance(instance, 0.001).cost
    looser = cost_lower_bound(instance.problem(), 0.001, means=instance.means)
    # Both figures are rounded to whole numbers: within 1 / 60 and 1 / 82 of what they were.
    assert tight / looser == pytest.approx(ratio, rel=0.03)
