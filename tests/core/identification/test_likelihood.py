"""The statistic behind the likelihood-ratio policies, by hand, by brute force and by chance."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import binom

from mfhpo.identification.likelihood.likelihood import (
    OrderBiasLikelihood,
    OwnBiasLikelihood,
    PairLikelihood,
    nearest_mean,
    prior_count,
)

FloatArray = npt.NDArray[np.float64]

numbers = st.integers(0, 2**32 - 1)


def brute_force(weights: FloatArray, lows: FloatArray, highs: FloatArray) -> float:
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


def value_at(x: float, weights: FloatArray, lows: FloatArray, highs: FloatArray) -> float:
    distances = np.maximum(np.maximum(lows - x, x - highs), 0.0)
    return float(weights @ distances**2)


def own(
    means: Any, counts: Any, xi: Any, variance: float | Any = 0.5, prior: float = 0.0
) -> OwnBiasLikelihood:
    """A likelihood whose weights are the counts: the variance is 1/2 and the prior is 0."""
    table = np.array(means, dtype=float)
    variances = np.broadcast_to(np.asarray(variance, dtype=float), table.shape).copy()
    return OwnBiasLikelihood(table, np.array(counts), variances, np.array(xi, dtype=float), prior)


def order(
    means: Any, counts: Any, gamma: Any, variance: float | Any = 0.5, prior: float = 0.0
) -> OrderBiasLikelihood:
    table = np.array(means, dtype=float)
    variances = np.broadcast_to(np.asarray(variance, dtype=float), table.shape).copy()
    bounds = np.array(gamma, dtype=float)
    return OrderBiasLikelihood(table, np.array(counts), variances, bounds, prior)


class TestNearestMean:
    def solve(self, weights: Any, lows: Any, highs: Any) -> tuple[float, float]:
        row = [np.array([part], dtype=float) for part in (weights, lows, highs)]
        x, value = nearest_mean(*row)
        assert x.shape == value.shape == (1,)
        return float(x[0]), float(value[0])

    def test_two_points(self) -> None:
        # The weighted mean (1 * 0 + 3 * 4) / 4 = 3, at 1 * 9 + 3 * 1.
        assert self.solve([1, 3], [0, 4], [0, 4]) == pytest.approx((3.0, 12.0))

    def test_two_intervals_that_do_not_meet(self) -> None:
        assert self.solve([1, 1], [0, 3], [1, 5]) == pytest.approx((2.0, 2.0))

    def test_the_middle_of_what_they_have_in_common(self) -> None:
        assert self.solve([1, 7], [0, 1], [2, 5]) == pytest.approx((1.5, 0.0))

    def test_one_interval(self) -> None:
        assert self.solve([2], [-3], [5]) == pytest.approx((1.0, 0.0))
        assert self.solve([2], [4], [4]) == pytest.approx((4.0, 0.0))

    def test_an_interval_within_another_one(self) -> None:
        assert self.solve([5, 1], [-10, 1], [10, 2]) == pytest.approx((1.5, 0.0))

    def test_weight_zero_does_not_count(self) -> None:
        assert self.solve([0, 2], [0, 5], [1, 7]) == pytest.approx((6.0, 0.0))
        assert self.solve([0, 0], [3, 5], [4, 7]) == (0.0, 0.0)

    def test_three_points_by_hand(self) -> None:
        # The interval [0, 5] holds the mean of the points, (2 * 2 + 1 * 9) / 3.
        x, value = self.solve([2, 1, 100], [2, 9, 0], [2, 9, 5])
        assert (x, value) == pytest.approx((13 / 3, 2 * (7 / 3) ** 2 + (14 / 3) ** 2))

    @given(
        seed=numbers,
        n_intervals=st.integers(1, 8),
        scale=st.sampled_from([1e-12, 1e-3, 1.0, 1e6, 1e12]),
        weight=st.sampled_from([1e-9, 1.0, 1e9]),
        shift=st.sampled_from([0.0, -1.0, 100.0]),
    )
    def test_brute_force(
        self, seed: int, n_intervals: int, scale: float, weight: float, shift: float
    ) -> None:
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

    @given(seed=numbers, n_intervals=st.integers(1, 6))
    def test_mirrored(self, seed: int, n_intervals: int) -> None:
        # The middle one of several is the middle one of the mirror image too.
        rng = np.random.default_rng(seed)
        lows = rng.integers(-5, 6, (3, n_intervals)).astype(float)
        highs = lows + rng.integers(0, 5, (3, n_intervals))
        weights = rng.integers(0, 4, (3, n_intervals)).astype(float)
        x, value = nearest_mean(weights, lows, highs)
        mirrored, same = nearest_mean(weights, -highs, -lows)
        assert mirrored == pytest.approx(-x, abs=1e-9)
        assert same == pytest.approx(value, abs=1e-9)


class TestPriorCount:
    def test_by_hand(self) -> None:
        # x - ln(1 + x) = 2 ln(1 / sqrt(level)) = ln(1 / level); x = 4 solves it at the level below.
        level = math.exp(-(4.0 - math.log(5.0)))
        assert prior_count(level) == pytest.approx(4.0)

    @pytest.mark.parametrize("level", [0.3, 0.01, 1e-6])
    def test_no_other_prior_is_stronger_after_sixteen_pulls(self, level: float) -> None:
        # The deviation of each mean at which a pair of arms reaches ln(1 / level).
        def needed(prior: float) -> float:
            of_each = math.log(1.0 / level) / 2.0 + math.log1p(16.0 / prior) / 2.0
            return math.sqrt(2.0 * (16.0 + prior) * of_each) / 16.0

        best = prior_count(level)
        assert needed(best) <= min(needed(best * factor) for factor in (0.5, 0.9, 1.1, 2.0))


class TestWeightsAndPenalties:
    def test_by_hand(self) -> None:
        # n^2 / (n + rho) / (2 sigma^2) and ln(1 + n / rho) / 2, for rho = 2 and sigma^2 = 2.
        likelihood = own([[1.0, 3.0]], [[2, 6]], [0.5, 0.0], variance=2.0, prior=2.0)
        assert likelihood.weights[0] == pytest.approx([4 / 4 / 4, 36 / 8 / 4])
        assert likelihood.penalties[0] == pytest.approx([math.log(2) / 2, math.log(4) / 2])

    def test_without_a_prior_there_is_no_penalty(self) -> None:
        likelihood = own([[1.0, 3.0]], [[2, 6]], [0.5, 0.0])
        assert likelihood.weights.tolist() == [[2.0, 6.0]]
        assert likelihood.penalties.tolist() == [[0.0, 0.0]]

    def test_an_unknown_variance_takes_values_out_but_not_their_penalty(self) -> None:
        # Whether a variance is known yet depends on what was pulled, and so on the values: a rule
        # could leave alone what has gone wrong before it counts.
        known = own([[1.0, 3.0]], [[2, 6]], [0.5, 0.0], variance=2.0, prior=2.0)
        likelihood = own([[1.0, 3.0]], [[2, 6]], [0.5, 0.0], [[2.0, math.inf]], prior=2.0)
        assert likelihood.weights.tolist() == [[known.weights[0, 0], 0.0]]
        assert likelihood.penalties.tolist() == known.penalties.tolist()

    @pytest.mark.parametrize("make", [own, order])
    def test_without_noise_everything_stays_finite(self, make: Any) -> None:
        for scale in (1e-10, 1.0, 1e10):
            means = np.array([[1.0, 2.0], [0.0, 1.5]]) * scale
            likelihood = make(means, [[5, 1], [7, 1]], np.array([0.1, 0.0]) * scale, 0.0, 2.0)
            ratio, _ = likelihood.against(0, np.array([1]))
            statistic = likelihood.statistic(0, np.array([1]), ratio)
            assert 1e100 < statistic[0] < math.inf
            assert np.isfinite(likelihood.centres).all()

    @given(seed=numbers, kind=st.sampled_from([own, order]))
    def test_updated_is_made_anew(self, seed: int, kind: Any) -> None:
        rng = np.random.default_rng(seed)
        shape, bounds = (4, 3), [0.4, 0.2, 0.0]
        first = rng.normal(size=shape), rng.integers(0, 9, shape)
        second = rng.normal(size=shape), rng.integers(0, 9, shape)
        chosen = np.flatnonzero(rng.random(4) < 0.5)
        updated = kind(*first, bounds, prior=2.0)
        updated.update(chosen, second[0][chosen], second[1][chosen], np.full((len(chosen), 3), 0.5))
        mixed = [old.copy() for old in first]
        for old, new in zip(mixed, second, strict=True):
            old[chosen] = new[chosen]
        anew = kind(*mixed, bounds, prior=2.0)
        for name in ("means", "variances", "weights", "penalties", "centres"):
            assert getattr(updated, name) == pytest.approx(getattr(anew, name)), name


class TestOwnBias:
    def test_by_hand_at_one_fidelity(self) -> None:
        # Weights 2 and 6, means 4 and 0: the common mean is 1, at 2 * 9 + 6 * 1 = 24, which is
        # also 2 * 6 / 8 * 4^2.
        likelihood = own([[4.0], [0.0]], [[2], [6]], [0.0])
        ratio, alternative = likelihood.against(0, np.array([1]))
        assert (ratio.tolist(), alternative.tolist()) == ([24.0], [1.0])
        above, below = likelihood.distances(0, 1, 1.0)
        assert (above.tolist(), below.tolist()) == ([3.0], [1.0])

    def test_by_hand_with_bias(self) -> None:
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

    def test_epsilon_adds_to_the_gap(self) -> None:
        # As by hand above, with a gap of 3 + 1.
        likelihood = own([[3.0], [0.0]], [[2], [6]], [0.0])
        ratio, alternative = likelihood.against(0, np.array([1]), 1.0)
        assert (ratio[0], alternative[0]) == pytest.approx((24.0, 0.0))

    def test_what_fits_no_case_speaks_against_none(self) -> None:
        # The leader's fidelities contradict each other: it is at 5 and at 9, which costs 8 at 7.
        likelihood = own([[5.0, 9.0], [0.0, 7.0]], [[1, 1], [0, 5]], [0.0, 0.0])
        assert likelihood.residuals == pytest.approx([8.0, 0.0])
        ratio, _ = likelihood.against(0, np.array([1]))
        assert ratio[0] == pytest.approx(0.0)

    def test_an_arm_that_was_not_seen_is_not_ruled_out(self) -> None:
        likelihood = own([[5.0, 5.0], [0.0, 0.0]], [[9, 9], [0, 0]], [1.0, 0.0], prior=2.0)
        ratio, _ = likelihood.against(0, np.array([1]))
        assert ratio[0] == 0.0
        assert likelihood.statistic(0, np.array([1]), ratio)[0] < 0.0

    @given(seed=numbers, epsilon=st.sampled_from([0.0, 0.3]))
    def test_brute_force_over_both_means(self, seed: int, epsilon: float) -> None:
        # Eta of the leader and of the other arm on a fine grid, wherever eta_a >= eta_i + epsilon.
        rng = np.random.default_rng(seed)
        n_fidelities = int(rng.integers(1, 4))
        xi = np.append(rng.uniform(0.0, 0.6, n_fidelities - 1), 0.0)
        likelihood = own(
            rng.normal(size=(3, n_fidelities)), rng.integers(0, 6, (3, n_fidelities)), xi
        )
        leader = int(np.argmax(likelihood.centres))
        others = np.array([arm for arm in range(3) if arm != leader])
        ratios, alternatives = likelihood.against(leader, others, epsilon)
        step = 0.02
        grid = np.arange(-5.0, 5.0, step)

        def misfit(arm: int) -> FloatArray:
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
    def test_by_hand(self) -> None:
        # Weights 2 and 6: 2 * 6 / 8 = 1.5. The gaps 3 and 1.2 exceed gamma by 2 and 1.2.
        likelihood = order([[3.0, 1.2], [0.0, 0.0]], [[2, 2], [6, 6]], [1.0, 0.0])
        ratio, alternative = likelihood.against(0, np.array([1]))
        assert ratio[0] == pytest.approx(1.5 * 4.0 + 1.5 * 1.44)
        assert alternative.tolist() == [0.0]
        above, below = likelihood.distances(0, 1, 0.0)
        assert above == pytest.approx([1.5, 0.9])
        assert below == pytest.approx([0.5, 0.3])

    def test_only_what_both_were_seen_at_counts(self) -> None:
        likelihood = order([[9.0, 9.0], [0.0, 0.0]], [[5, 0], [0, 5]], [1.0, 0.0])
        ratio, _ = likelihood.against(0, np.array([1]))
        assert ratio.tolist() == [0.0]

    @given(seed=numbers, epsilon=st.sampled_from([0.0, 0.4]))
    def test_quadratic_programme(self, seed: int, epsilon: float) -> None:
        rng = np.random.default_rng(seed)
        gamma = np.append(rng.uniform(0.0, 0.5, 1), 0.0)
        means, counts = rng.normal(size=(2, 2)), rng.integers(0, 5, (2, 2))
        likelihood = order(means, counts, gamma)
        ratio, _ = likelihood.against(0, np.array([1]), epsilon)

        # theta = (leader's two means, the other's two means) with the gap at m of at most
        # gamma_m - epsilon: what follows from mu_a >= mu_i + epsilon at the target.
        def misfit(theta: FloatArray) -> float:
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

    def test_centres_take_off_the_bias_that_all_have_in_common(self) -> None:
        # Three arms are 10 lower at the cheap fidelity; the last one was seen there only.
        means = [[-9.0, 1.0], [-8.0, 2.0], [-7.5, 0.0]]
        likelihood = order(means, [[50, 50], [50, 50], [50, 0]], [0.1, 0.0])
        assert likelihood.centres == pytest.approx([1.0, 2.0, 2.5])


class TestStatistic:
    """The largest of all fidelities together, less ln 2, and of one of each, less ln(2 M^2)."""

    def test_one_fidelity(self) -> None:
        # Weights 4 / 4 = 1 of both, means 6 apart: 1 / 2 * 36, less two penalties ln(2) / 2.
        likelihood = own([[6.0], [0.0]], [[2], [2]], [0.0], prior=2.0)
        ratio, _ = likelihood.against(0, np.array([1]))
        statistic = likelihood.statistic(0, np.array([1]), ratio)
        assert statistic[0] == pytest.approx(18.0 - math.log(2.0))

    def test_together(self) -> None:
        # Both fidelities tell as much: 18 each. One pair alone has 18 at most.
        likelihood = own([[6.0, 6.0], [0.0, 0.0]], [[2, 2], [2, 2]], [0.0, 0.0], prior=2.0)
        ratio, _ = likelihood.against(0, np.array([1]))
        statistic = likelihood.statistic(0, np.array([1]), ratio)
        assert statistic[0] == pytest.approx(36.0 - 2.0 * math.log(2.0) - math.log(2.0))

    @pytest.mark.parametrize(("make", "choices"), [(own, 4), (order, 2)])
    def test_a_fidelity_that_tells_nothing_costs_no_more_than_its_choice(
        self, make: Any, choices: int
    ) -> None:
        # The cheap fidelity was pulled a million times each: its penalties together are
        # ln(500001) = 13.1; without it: 18, two penalties of ln(2) / 2, ln 2 and the choice.
        many = 10**6
        likelihood = make([[0.0, 6.0], [0.0, 0.0]], [[many, 2], [many, 2]], [9.0, 0.0], prior=2.0)
        ratio, _ = likelihood.against(0, np.array([1]))
        statistic = likelihood.statistic(0, np.array([1]), ratio)
        assert statistic[0] == pytest.approx(18.0 - math.log(2.0) - math.log(2.0 * choices))

    def test_one_fidelity_of_each(self) -> None:
        # The leader was seen at the target, at 6, the other one at the cheap fidelity, at most 2.
        likelihood = own([[0.0, 6.0], [0.0, 0.0]], [[0, 2], [2, 0]], [2.0, 0.0], prior=2.0)
        ratio, _ = likelihood.against(0, np.array([1]))
        assert ratio[0] == pytest.approx(16.0 / 2.0)
        statistic = likelihood.statistic(0, np.array([1]), ratio)
        assert statistic[0] == pytest.approx(8.0 - math.log(2.0) - math.log(2.0))

    def test_without_a_prior_it_is_the_ratio(self) -> None:
        likelihood = own([[6.0, 6.0], [0.0, 0.0]], [[2, 2], [2, 2]], [0.0, 0.0])
        ratio, _ = likelihood.against(0, np.array([1]))
        assert likelihood.statistic(0, np.array([1]), ratio).tolist() == ratio.tolist()


def crossings(
    kind: type[PairLikelihood], level: float, n_paths: int, factor: float = 1.0, seed: int = 0
) -> int:
    """Count the paths on which an arm that is as good as another one was ever ruled out.

    Two arms, two fidelities, unit noise; the biases are as far against the second arm as the bounds
    allow. The rule is nasty: mostly it pulls what the first arm's lead rests on while it leads,
    so that luck is followed up, and leaves alone what is against it.

    All paths are one likelihood: arm 2 k and arm 2 k + 1 are the two of path k.
    """
    rng = np.random.default_rng(seed)
    bounds = np.array([0.5, 0.0])
    prior = prior_count(level)
    threshold = -math.log(level)
    true = np.zeros((2 * n_paths, 2))
    spread = 0.5 if kind is OwnBiasLikelihood else 0.25
    true[0::2, 0], true[1::2, 0] = spread, -spread
    sums, counts = true + rng.standard_normal(true.shape), np.ones(true.shape, dtype=np.int64)
    alive = np.ones(n_paths, dtype=bool)
    first = np.arange(0, 2 * n_paths, 2)
    for _ in range(120):
        means = sums / counts
        weights = counts**2 / (counts + prior) / 2.0 * factor
        penalties = np.log1p(counts / prior) / 2.0
        statistic, pulls = _statistics(kind, means, weights, penalties, bounds)
        alive &= statistic < threshold
        # One pull of each path: the (arm, fidelity) that the rule wants, or any.
        chosen = np.where(rng.random(n_paths) < 0.8, pulls, rng.integers(0, 4, n_paths))
        arm, fidelity = first + chosen // 2, chosen % 2
        sums[arm, fidelity] += true[arm, fidelity] + rng.standard_normal(n_paths)
        counts[arm, fidelity] += 1
    return int((~alive).sum())


def _statistics(
    kind: type[PairLikelihood],
    means: FloatArray,
    weights: FloatArray,
    penalties: FloatArray,
    bounds: FloatArray,
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """The statistic of the first arm against the second on every path, and what to pull next."""
    one, two = means[0::2], means[1::2]
    of_one, of_two = weights[0::2], weights[1::2]
    if kind is OwnBiasLikelihood:
        alternative, value = nearest_mean(
            np.concatenate((of_one, of_two), axis=1),
            np.concatenate((one - bounds, two - bounds), axis=1),
            np.concatenate((one + bounds, two + bounds), axis=1),
        )
        centre, misfit = nearest_mean(of_one, one - bounds, one + bounds)
        other_centre, other_misfit = nearest_mean(of_two, two - bounds, two + bounds)
        ratio = np.where(centre >= other_centre, value - misfit - other_misfit, 0.0)
        above = one - bounds - alternative[:, None]
        below = alternative[:, None] - two - bounds
        gaps = (one - bounds)[:, :, None] - (two + bounds)[:, None, :]
        joint = of_one[:, :, None] * of_two[:, None, :]
        joint = joint / (of_one[:, :, None] + of_two[:, None, :])
        pairs = joint * np.maximum(gaps, 0.0) ** 2
        leads = np.concatenate((above, below), axis=1)
    else:
        excess = np.maximum(one - two - bounds, 0.0)
        per_fidelity = of_one * of_two / (of_one + of_two) * excess**2
        ratio = per_fidelity.sum(axis=1)
        pairs = np.zeros((len(one), 2, 2))
        pairs[:, [0, 1], [0, 1]] = per_fidelity
        leads = np.concatenate((excess, excess), axis=1)
    mine, theirs = penalties[0::2], penalties[1::2]
    together = ratio - mine.sum(axis=1) - theirs.sum(axis=1)
    pairs = (pairs - mine[:, :, None] - theirs[:, None, :]).reshape(len(one), -1).max(axis=1)
    choices = 4.0 if kind is OwnBiasLikelihood else 2.0
    statistic = np.maximum(together, pairs - math.log(choices)) - math.log(2.0)
    return statistic, leads.argmax(axis=1)


@pytest.mark.parametrize("kind", [OwnBiasLikelihood, OrderBiasLikelihood])
def test_the_simulated_statistic_is_the_real_one(kind: type[PairLikelihood]) -> None:
    rng = np.random.default_rng(5)
    bounds = np.array([0.5, 0.0])
    means, counts = rng.normal(size=(20, 2)), rng.integers(1, 30, (20, 2))
    likelihood = kind(means, counts, np.ones((20, 2)), bounds, 3.0)
    simulated, _ = _statistics(
        kind, means, likelihood.weights, likelihood.penalties, likelihood.bounds
    )
    for path in range(10):
        one, two = 2 * path, np.array([2 * path + 1])
        ratio, _ = likelihood.against(one, two)
        if kind is OrderBiasLikelihood or likelihood.centres[one] >= likelihood.centres[two[0]]:
            assert likelihood.statistic(one, two, ratio)[0] == pytest.approx(simulated[path])


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.05, 0.1])
@pytest.mark.parametrize("kind", [OwnBiasLikelihood, OrderBiasLikelihood])
def test_it_holds_at_all_times_whatever_is_pulled(kind: type[PairLikelihood], level: float) -> None:
    n_paths = 6000
    assert crossings(kind, level, n_paths) <= binom.ppf(1.0 - 1e-6, n_paths, level)


@pytest.mark.slow
def test_a_statistic_that_is_too_strong_is_found_out() -> None:
    # As if the noise had a third of its standard deviation.
    n_paths = 3000
    found = crossings(OrderBiasLikelihood, 0.1, n_paths, factor=9.0)
    assert found > binom.ppf(1.0 - 1e-6, n_paths, 0.1)
