import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from mfhpo.identification.likelihood.likelihood import (
    OrderBias,
    OwnBias,
    nearest_mean,
    prior_count,
    two_sided,
)

numbers = st.integers(0, 2**32 - 1)


def brute_force(weights, lows, highs):
    """The minimum over x, by trying every edge and the vertex of every piece between two edges."""
    edges = np.sort(np.concatenate((lows, highs)))
    candidates = list(edges)
    for left, right in itertools.pairwise(edges.tolist()):
        middle = (left + right) / 2.0
        above, below = middle > highs, middle < lows
        weight = weights[above].sum() + weights[below].sum()
        if weight > 0.0:
            moment = (weights * highs)[above].sum() + (weights * lows)[below].sum()
            candidates.append(np.clip(moment / weight, left, right))
    return min(value_at(x, weights, lows, highs) for x in candidates)


def value_at(x, weights, lows, highs):
    distances = np.maximum(np.maximum(lows - x, x - highs), 0.0)
    return float(weights @ distances**2)


def likelihood_of(kind, means, counts, bounds, variance=0.5, prior=0.0):
    """A likelihood whose weights are the counts: the variance is 1/2 and the prior is 0."""
    table = np.array(means, dtype=float)
    variances = np.broadcast_to(np.asarray(variance, dtype=float), table.shape).copy()
    return kind(table, np.array(counts), variances, np.array(bounds, dtype=float), prior)


def statistic_of(likelihood):
    ratio, _ = likelihood.against(0, np.array([1]))
    return two_sided(likelihood, 0, np.array([1]), ratio, 0.0)[0]


own = partial(likelihood_of, OwnBias)
order = partial(likelihood_of, OrderBias)


class TestNearestMean:
    def solve(self, weights, lows, highs):
        row = [np.array([part], dtype=float) for part in (weights, lows, highs)]
        x, value = nearest_mean(*row)
        assert x.shape == value.shape == (1,)
        return float(x[0]), float(value[0])

    def test_the_middle_of_what_they_have_in_common(self):
        assert self.solve([1, 7], [0, 1], [2, 5]) == pytest.approx((1.5, 0.0))

    def test_weight_zero_does_not_count(self):
        assert self.solve([0, 2], [0, 5], [1, 7]) == pytest.approx((6.0, 0.0))
        assert self.solve([0, 0], [3, 5], [4, 7]) == (0.0, 0.0)

    @given(
        seed=numbers,
        n_intervals=st.integers(1, 8),
        scale=st.sampled_from([1e-12, 1e-3, 1.0, 1e6, 1e12]),
        weight=st.sampled_from([1e-9, 1.0, 1e9]),
        shift=st.sampled_from([0.0, -1.0, 100.0]),
    )
    def test_brute_force(self, seed, n_intervals, scale, weight, shift):
        rng = np.random.default_rng(seed)
        # Whole numbers below, so that edges coincide; weights of very different sizes, and 0.
        lows = rng.integers(-5, 6, (4, n_intervals)) * scale + shift * scale
        highs = lows + rng.integers(0, 5, (4, n_intervals)) * scale
        weights = weight * 10.0 ** rng.integers(-4, 5, (4, n_intervals))
        weights[rng.random((4, n_intervals)) < 0.3] = 0.0
        x, values = nearest_mean(weights, lows, highs)
        for row in range(4):
            problem = weights[row], lows[row], highs[row]
            expected = brute_force(*problem)
            rounding = 1e-9 * weights[row].sum() * scale**2 * (1.0 + abs(shift))
            assert values[row] == pytest.approx(expected, rel=1e-7, abs=rounding)
            assert value_at(float(x[row]), *problem) == pytest.approx(values[row])


@pytest.mark.parametrize("level", [0.3, 0.01, 1e-6])
def test_no_other_prior_is_stronger_after_sixteen_pulls(level):
    # The deviation of each mean at which a pair of arms reaches ln(1 / level).
    def needed(prior):
        of_each = math.log(1.0 / level) / 2.0 + math.log1p(16.0 / prior) / 2.0
        return math.sqrt(2.0 * (16.0 + prior) * of_each) / 16.0

    best = prior_count(level)
    assert needed(best) <= min(needed(best * factor) for factor in (0.5, 0.9, 1.1, 2.0))


class TestWeightsAndPenalties:
    def test_an_unknown_variance_takes_values_out_but_not_their_penalty(self):
        # Whether a variance is known yet depends on what was pulled, and so on the values: a rule
        # could leave alone what has gone wrong before it counts.
        known = own([[1.0, 3.0]], [[2, 6]], [0.5, 0.0], variance=2.0, prior=2.0)
        likelihood = own([[1.0, 3.0]], [[2, 6]], [0.5, 0.0], [[2.0, math.inf]], prior=2.0)
        assert likelihood.weights.tolist() == [[known.weights[0, 0], 0.0]]
        assert likelihood.penalties.tolist() == known.penalties.tolist()

    @pytest.mark.parametrize("make", [own, order])
    def test_without_noise_everything_stays_finite(self, make):
        for scale in (1e-10, 1.0, 1e10):
            means = np.array([[1.0, 2.0], [0.0, 1.5]]) * scale
            likelihood = make(means, [[5, 1], [7, 1]], np.array([0.1, 0.0]) * scale, 0.0, 2.0)
            assert 1e100 < statistic_of(likelihood) < math.inf
            assert np.isfinite(likelihood.centres).all()


class TestOwnBias:
    def test_by_hand_with_bias(self):
        # The cheap fidelity says [2, 4] and [-1, 1] of the two arms, weight 1 each. The target,
        # weight 4, was seen of the leader only, at 3.
        likelihood = own([[3.0, 3.0], [0.0, 9.0]], [[1, 4], [1, 0]], [1.0, 0.0])
        assert likelihood.centres.tolist() == [3.0, 0.0]
        # Half the derivative: (2 - x) of the leader, (x - 1) of the other, 4 (3 - x) of the target.
        # Beyond 2 the first is 0: x - 1 = 4 (3 - x) gives x = 13 / 5.
        ratio, alternative = likelihood.against(0, np.array([1]))
        assert alternative[0] == pytest.approx(2.6)
        assert ratio[0] == pytest.approx(1.6**2 + 4 * 0.4**2)
        above, below = likelihood.distances(0, 1, 2.6)
        assert above == pytest.approx([-0.6, 0.4])
        assert below == pytest.approx([1.6, 2.6 - 9.0])

    @given(seed=numbers, epsilon=st.sampled_from([0.0, 0.3]))
    def test_brute_force_over_both_means(self, seed, epsilon):
        # Eta of the leader and of the other arm on a fine grid, wherever eta_a >= eta_i + epsilon.
        rng = np.random.default_rng(seed)
        n_fidelities = int(rng.integers(1, 4))
        xi = np.append(rng.uniform(0.0, 0.6, n_fidelities - 1), 0.0)
        shape = 3, n_fidelities
        likelihood = own(rng.normal(size=shape), rng.integers(0, 6, shape), xi)
        leader = int(np.argmax(likelihood.centres))
        others = np.array([arm for arm in range(3) if arm != leader])
        ratios, alternatives = likelihood.against(leader, others, epsilon)
        step = 0.02
        grid = np.arange(-5.0, 5.0, step)

        def misfit(arm):
            distance = np.abs(likelihood.means[arm] - grid[:, None]) - likelihood.bounds
            return np.asarray(np.maximum(distance, 0.0) ** 2 @ likelihood.weights[arm])

        allowed = grid[None, :] >= grid[:, None] + epsilon - 1e-9
        for ratio, alternative, arm in zip(ratios, alternatives, others, strict=True):
            both = misfit(leader)[:, None] + misfit(int(arm))[None, :]
            free = misfit(leader).min() + misfit(int(arm)).min()
            constrained = np.where(allowed, both, np.inf).min()
            # The grid misses the minimum by at most half a step in each mean.
            weight = likelihood.weights[[leader, int(arm)]].sum()
            rounding = weight * step**2 + step * 2.0 * math.sqrt(weight * constrained)
            assert ratio == pytest.approx(constrained - free, abs=rounding + 1e-9)
            above, below = likelihood.distances(leader, int(arm), float(alternative), epsilon)
            reached = (
                likelihood.weights[leader] @ np.maximum(np.abs(above + xi) - xi, 0.0) ** 2
                + likelihood.weights[arm] @ np.maximum(np.abs(below + xi) - xi, 0.0) ** 2
            )
            explained = likelihood.residuals[leader] + likelihood.residuals[arm]
            assert max(reached - explained, 0.0) == pytest.approx(ratio, abs=1e-9)


class TestOrderBias:
    @given(seed=numbers, epsilon=st.sampled_from([0.0, 0.4]))
    def test_quadratic_programme(self, seed, epsilon):
        rng = np.random.default_rng(seed)
        gamma = np.append(rng.uniform(0.0, 0.5, 1), 0.0)
        means, counts = rng.normal(size=(2, 2)), rng.integers(0, 5, (2, 2))
        likelihood = order(means, counts, gamma)
        ratio, _ = likelihood.against(0, np.array([1]), epsilon)

        # theta = (leader's two means, the other's two means) with the gap at m of at most
        # gamma_m - epsilon: what follows from mu_a >= mu_i + epsilon at the target.
        def misfit(theta):
            return float((counts * (theta.reshape(2, 2) - means) ** 2).sum())

        constraints = {
            "type": "ineq",
            "fun": lambda theta: gamma - epsilon - (theta[:2] - theta[2:]),
        }
        found = minimize(
            misfit, np.zeros(4), method="SLSQP", constraints=constraints, options={"ftol": 1e-12}
        )
        assert found.success
        assert ratio[0] == pytest.approx(found.fun, abs=1e-5)

    def test_centres_take_off_the_bias_that_all_have_in_common(self):
        # Three arms are 10 lower at the cheap fidelity; the last one was seen there only.
        means = [[-9.0, 1.0], [-8.0, 2.0], [-7.5, 0.0]]
        likelihood = order(means, [[50, 50], [50, 50], [50, 0]], [0.1, 0.0])
        assert likelihood.centres == pytest.approx([1.0, 2.0, 2.5])


class TestStatistic:
    """The largest of all fidelities together, less ln 2, and of one of each, less ln(2 M^2)."""

    def test_together(self):
        # Both fidelities tell as much: 18 each. One pair alone has 18 at most.
        likelihood = own([[6.0, 6.0], [0.0, 0.0]], [[2, 2], [2, 2]], [0.0, 0.0], prior=2.0)
        assert statistic_of(likelihood) == pytest.approx(36.0 - 2.0 * math.log(2.0) - math.log(2.0))

    @pytest.mark.parametrize(("make", "choices"), [(own, 4), (order, 2)])
    def test_a_fidelity_that_tells_nothing_costs_no_more_than_its_choice(self, make, choices):
        # The cheap fidelity was pulled a million times each: its penalties together are
        # ln(500001) = 13.1; without it: 18, two penalties of ln(2) / 2, ln 2 and the choice.
        many = 10**6
        likelihood = make([[0.0, 6.0], [0.0, 0.0]], [[many, 2], [many, 2]], [9.0, 0.0], prior=2.0)
        assert statistic_of(likelihood) == pytest.approx(
            18.0 - math.log(2.0) - math.log(2.0 * choices)
        )
