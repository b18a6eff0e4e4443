"""The upper bounds: empirical likelihood against other ways to compute it, the others by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize, minimize_scalar

from mfhpo import Observation
from mfhpo.censored import RCUCB, Deadline, GainEstimates, Linear
from mfhpo.censored.kernel import (
    BINS,
    CONFIDENCES,
    Rule,
    _spread,
    _surely_below,
    _upper_bound,
    bounds_on_gain,
    highest_mean,
)
from tests.core.censored.naive import FloatArray, bins_between, largest_means, spread

TOP = 1.0


def bound_of(
    weights: Sequence[float],
    values: Sequence[float],
    level: float,
    top: float = TOP,
    start: float = math.inf,
) -> float:
    mean, _ = highest_mean(
        np.array(weights), np.array(values), float(sum(weights)), top, level, start
    )
    return float(mean)


def least_divergence(shares: FloatArray, values: FloatArray, mean: float, top: float) -> float:
    """The least KL(p, q) among q on values up to `top` with at least this mean, by its dual."""
    if mean <= shares @ values:
        return 0.0
    if mean >= top:
        return math.inf

    def dual(multiplier: float) -> float:
        inside = 1.0 - multiplier * (values - mean)
        return -float(shares[shares > 0.0] @ np.log(inside[shares > 0.0]))

    most = 1.0 / (top - mean)
    found = minimize_scalar(
        dual, bounds=(0.0, most * (1.0 - 1e-13)), method="bounded", options={"xatol": 1e-13 * most}
    )
    return max(-float(found.fun), 0.0)


def by_the_dual(weights: Sequence[float], values: Sequence[float], level: float) -> float:
    shares, places = np.array(weights) / sum(weights), np.array(values)
    mean = float(shares @ places)
    if mean >= TOP:
        return TOP
    last = TOP - 1e-12 * (1.0 + abs(mean))
    if least_divergence(shares, places, last, TOP) <= level:
        return last
    return float(
        brentq(lambda m: least_divergence(shares, places, m, TOP) - level, mean, last, xtol=1e-13)
    )


def by_the_simplex(weights: Sequence[float], values: Sequence[float], level: float) -> float:
    """The maximum over all distributions on the values and the top, by a general solver."""
    shares = np.append(np.array(weights) / sum(weights), 0.0)
    places = np.append(np.array(values), TOP)
    seen = shares > 0.0

    def spare(q: FloatArray) -> float:
        return level - float(shares[seen] @ np.log(shares[seen] / np.maximum(q[seen], 1e-300)))

    found = minimize(
        lambda q: -float(q @ places),
        0.999 * shares + 0.001 / len(shares),
        bounds=[(1e-12, 1.0)] * len(shares),
        constraints=[
            {"type": "eq", "fun": lambda q: q.sum() - 1.0},
            {"type": "ineq", "fun": spare},
        ],
        options={"ftol": 1e-12, "maxiter": 500},
        method="SLSQP",
    )
    # It may stop for want of precision: what it found must be a distribution within the level.
    assert found.x.sum() == pytest.approx(1.0, abs=1e-8)
    assert spare(found.x) > -1e-8
    return float(found.x @ places)


@st.composite
def observed(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Weights and values, some of the weights 0 or tiny, now and then a value at the top."""
    size = draw(st.integers(1, 6))
    weight = st.sampled_from([0.0, 1e-6, 0.3]) | st.floats(0.01, 500.0)
    value = st.sampled_from([TOP, 0.999, 0.0, -9.0]) | st.floats(-3.0, TOP)
    weights = draw(st.lists(weight, min_size=size, max_size=size))
    assume(sum(weights) > 0.0)
    return weights, draw(st.lists(value, min_size=size, max_size=size))


levels = st.floats(1e-4, 5.0)


class TestTheHighestMean:
    @given(seen=observed(), level=levels)
    def test_as_by_the_dual(self, seen: tuple[list[float], list[float]], level: float) -> None:
        assert bound_of(*seen, level) == pytest.approx(by_the_dual(*seen, level), abs=1e-6)

    @pytest.mark.parametrize("level", [0.001, 0.05, 0.4, 2.0])
    @pytest.mark.parametrize(
        ("weights", "values"),
        [
            ([3.0, 5.0], [0.0, 0.5]),
            ([3.0, 5.0, 2.0], [0.0, 0.5, 1.0]),
            ([90.0, 9.0, 1.0], [0.9, 0.4, -9.0]),
            ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [-0.1, 0.175, 0.45, 0.725, 1.0, -0.3]),
        ],
    )
    def test_as_over_the_simplex(
        self, weights: list[float], values: list[float], level: float
    ) -> None:
        expected = by_the_simplex(weights, values, level)
        assert bound_of(weights, values, level) == pytest.approx(expected, abs=2e-5)

    @given(n=st.integers(1, 500), share=st.floats(0.0, 1.0), level=levels)
    def test_of_a_coin(self, n: int, share: float, level: float) -> None:
        heads = round(share * n)
        p = heads / n
        high = bound_of([n - heads, heads], [0.0, 1.0], level)
        if heads in (0, n):
            # kl(0, q) = -log(1 - q)
            assert high == pytest.approx(1.0 if heads else -math.expm1(-level), abs=1e-9)
        else:

            def divergence(q: float) -> float:
                if q >= 1.0:
                    return math.inf
                return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))

            assert divergence(high - 1e-9) <= level <= divergence(high + 1e-9)

    @given(value=st.floats(-9.0, 0.99), n=st.integers(1, 100), level=levels)
    def test_of_one_value(self, value: float, n: int, level: float) -> None:
        # The rest of the weight may lie at the top: KL = -log q.
        kept = math.exp(-level)
        expected = kept * value + (1.0 - kept) * TOP
        assert bound_of([float(n)], [value], level) == pytest.approx(expected, abs=1e-9)
        two = bound_of([float(n), 3.0], [value, value], level)
        assert two == pytest.approx(expected, abs=1e-9)

    @given(n=st.integers(1, 100), level=levels)
    def test_all_at_the_top(self, n: int, level: float) -> None:
        assert bound_of([float(n)], [TOP], level) == pytest.approx(TOP, abs=1e-9)

    @given(seen=observed())
    def test_at_level_0_it_is_the_mean(self, seen: tuple[list[float], list[float]]) -> None:
        mean = float(np.average(seen[1], weights=seen[0]))
        assert bound_of(*seen, 0.0) == pytest.approx(mean)
        assert bound_of(*seen, 1e-13) == pytest.approx(mean, abs=1e-4)

    @given(seen=observed(), level=levels, more=st.floats(0.0, 1.0))
    def test_between_mean_and_top_and_higher_with_the_level(
        self, seen: tuple[list[float], list[float]], level: float, more: float
    ) -> None:
        mean = float(np.average(seen[1], weights=seen[0]))
        low, high = bound_of(*seen, level), bound_of(*seen, level + more)
        assert mean - 1e-9 <= low <= high + 1e-9 <= TOP + 2e-9

    @given(seen=observed(), level=levels, factor=st.floats(1.1, 100.0))
    def test_lower_the_more_is_seen(
        self, seen: tuple[list[float], list[float]], level: float, factor: float
    ) -> None:
        # The same level for the sum of divergences is a smaller one for each observation.
        weights, values = seen
        more = [factor * weight for weight in weights]
        few = bound_of(weights, values, level / sum(weights))
        many = bound_of(more, values, level / sum(more))
        assert many <= few + 1e-9

    @given(seen=observed(), level=levels, factor=st.floats(0.1, 10.0), by=st.floats(-5.0, 5.0))
    def test_in_any_unit(
        self, seen: tuple[list[float], list[float]], level: float, factor: float, by: float
    ) -> None:
        weights, values = seen
        moved = [by + factor * value for value in values]
        bound = bound_of(weights, moved, level, top=by + factor * TOP)
        assert bound == pytest.approx(by + factor * bound_of(weights, values, level), abs=1e-6)

    @given(seen=observed(), level=levels, start=st.floats(-1.0, 50.0))
    def test_wherever_the_search_begins(
        self, seen: tuple[list[float], list[float]], level: float, start: float
    ) -> None:
        cold = bound_of(*seen, level)
        assert bound_of(*seen, level, start=start) == pytest.approx(cold, abs=1e-7)
        values = np.array(seen[1])
        _, root = highest_mean(np.array(seen[0]), values, sum(seen[0]), TOP, level, math.inf)
        assert bound_of(*seen, level, start=root) == pytest.approx(cold, abs=1e-7)

    @given(
        seen=observed(),
        level=st.floats(1e-3, 5.0),
        start=st.sampled_from([3e7, 1e9, 1e12]),
        worst=st.sampled_from([-1e4, -1e6, -1e9]),
    )
    def test_from_far_too_far_out(
        self, seen: tuple[list[float], list[float]], level: float, start: float, worst: float
    ) -> None:
        # There the divergence has no digit left. It is also where a solution lies if what was
        # stopped is worth -1e9, and no longer where the next ones were not.
        weights, values = [*seen[0], 0.5], [*seen[1], worst]
        for given_ in (seen, (weights, values)):
            cold = bound_of(*given_, level)
            close = 1e-7 * max(1.0, abs(cold))
            assert bound_of(*given_, level, start=start) == pytest.approx(cold, abs=close)

    @given(
        weights=st.lists(
            st.sampled_from([0.0, 0.3]) | st.floats(0.01, 50.0), min_size=4, max_size=4
        ),
        worst=st.floats(1e4, 1e9),
        level=st.floats(1e-3, 5.0),
    )
    def test_of_a_penalty_that_dwarfs_the_rewards(
        self, weights: list[float], worst: float, level: float
    ) -> None:
        # Against the bisection, which knows nothing of starts and steps.
        values = [-worst, 0.2, 0.7, TOP]
        assume(sum(weights) > 0.0)
        expected = largest_means(
            np.array([weights]), np.array([values]), np.array([level]), TOP
        ).tolist()
        close = 1e-6 * max(1.0, abs(expected[0]))
        assert [bound_of(weights, values, level)] == pytest.approx(expected, abs=close)

    @pytest.mark.parametrize("scale", [1e-6, 1e4, 1e9])
    @pytest.mark.parametrize("level", [0.01, 0.5])
    def test_in_a_unit_far_from_1(self, level: float, scale: float) -> None:
        weights, values = [3.0, 5.0, 1.0, 2.0], [-1.0, 0.0, 0.5, TOP]
        expected = scale * bound_of(weights, values, level)
        scaled = [scale * value for value in values]
        assert bound_of(weights, scaled, level, top=scale) == pytest.approx(expected, rel=1e-6)

    @given(seen=observed(), level=levels)
    def test_values_without_weight_do_not_matter(
        self, seen: tuple[list[float], list[float]], level: float
    ) -> None:
        weights, values = [*seen[0], 0.0, 0.0], [*seen[1], TOP, -7.0]
        assert bound_of(weights, values, level) == bound_of(*seen, level)


class TestSurelyBelow:
    @given(
        seen=observed(),
        level=st.floats(1e-4, 2.0),
        off=st.floats(0.5, 2.0),
        bound=st.floats(-3.0, 1.2),
    )
    def test_never_where_the_bound_is_higher(
        self, seen: tuple[list[float], list[float]], level: float, off: float, bound: float
    ) -> None:
        weights, values, total = np.array(seen[0]), np.array(seen[1]), float(sum(seen[0]))
        # The solution of a similar problem.
        _, root = highest_mean(weights, values, total, TOP, off * level, math.inf)
        exact = bound_of(*seen, level)
        # Around the bound it matters; elsewhere it should hold too.
        for place in (bound, exact, exact - 1e-3, exact + 1e-3, exact + 0.2):
            if _surely_below(weights, values, total, TOP, level, root, place):
                assert exact <= place + 1e-7

    def test_mostly_where_it_is_lower(self) -> None:
        # It would be of no use if it always said no.
        weights, values = np.array([3.0, 5.0, 9.0, 2.0]), np.array([-0.5, 0.0, 0.5, TOP])
        high, root = highest_mean(weights, values, 19.0, TOP, 0.2, math.inf)
        for level in (0.19, 0.2, 0.21):
            assert _surely_below(weights, values, 19.0, TOP, level, root, high + 0.02)
        assert not _surely_below(weights, values, 19.0, TOP, 0.2, root, high - 1e-6)

    def test_nothing_exceeds_the_top(self) -> None:
        weights, values = np.array([1.0]), np.array([0.5])
        assert _surely_below(weights, values, 1.0, TOP, 3.0, math.inf, TOP)
        assert not _surely_below(weights, values, 1.0, TOP, 3.0, math.inf, TOP - 1e-9)


# The gains of a pair on bins.

LIMITS = (1.0, 2.0)
COST = Linear(0.1)  # gains from -.2 to 1
PENALTY = Linear(0.5)  # .5 and 1


def estimates_of(
    rewards: Sequence[float], seconds: Sequence[float], limit: float = 2.0, **options
) -> GainEstimates:
    estimates = GainEstimates(1, LIMITS, **({"cost": COST, "penalty": PENALTY} | options))
    for reward, took in zip(rewards, seconds, strict=True):
        if took <= limit:
            estimates.record(0, limit, reward, took)
        else:
            estimates.record(0, limit, None, None)
    return estimates


def weights_of(estimates: GainEstimates, point: int) -> tuple[FloatArray, FloatArray]:
    weights, values = np.zeros(BINS + 1), np.zeros(BINS + 1)
    _spread(estimates.tallies, estimates.rule, 0, point, weights, values)
    return weights, values


# What a second costs; beyond .25 the bins are no longer equidistant.
slopes = st.sampled_from([0.0, 0.1, 0.25, 10.0, 1e4]) | st.floats(0.0, 3.0)

outcomes = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 3.0)), min_size=1, max_size=30
).map(lambda pairs: tuple(zip(*pairs, strict=True)))


class TestBins:
    def test_by_hand(self) -> None:
        # Bins at -.2, .1, .4, .7, 1. A gain of .55 lies halfway, one of .1 on a bin.
        estimates = estimates_of([0.6, 0.25, 1.0, 0.5], [0.5, 1.5, 0.0, 9.0])
        weights, values = weights_of(estimates, 1)
        assert values == pytest.approx([-0.2, 0.1, 0.4, 0.7, 1.0, -1.0])
        assert weights == pytest.approx([0.0, 1.0, 0.5, 0.5, 1.0, 1.0])
        # At 1, the second is late too, the penalty is .5, and no gain is below -.1: .55 lies at
        # .1 / .275 = 4 / 11 of the way between .45 and .725.
        weights, values = weights_of(estimates, 0)
        assert values == pytest.approx([-0.1, 0.175, 0.45, 0.725, 1.0, -0.5])
        assert weights == pytest.approx([0.0, 0.0, 7 / 11, 4 / 11, 1.0, 2.0])

    def test_by_hand_where_time_is_dear(self) -> None:
        # Down to -4 by 2 seconds: one bin there, the others over [0, 1].
        estimates = estimates_of([0.9, 1.0, 0.5, 0.0], [0.2, 1.5, 0.0, 2.0], cost=Linear(2.0))
        weights, values = weights_of(estimates, 1)
        assert values == pytest.approx([-4.0, 0.0, 1 / 3, 2 / 3, 1.0, -1.0])
        # .5 is shared by 1/3 and 2/3, once from 0 and once from .2 seconds, -2 by -4 and 0.
        assert weights == pytest.approx([1.5, 0.5, 1.0, 1.0, 0.0, 0.0])
        # By 1 second the least gain is -2.
        weights, values = weights_of(estimates, 0)
        assert values == pytest.approx([-2.0, 0.0, 1 / 3, 2 / 3, 1.0, -0.5])
        assert weights == pytest.approx([0.0, 0.0, 1.0, 1.0, 0.0, 2.0])

    @pytest.mark.parametrize("slope", [0.24, 0.25, 0.2500001, 0.26])
    def test_around_the_width_at_which_they_change(self, slope: float) -> None:
        # At a slope of .25 a range of 1 and .5 below it is seen by 2 seconds.
        estimates = estimates_of([0.3], [0.5], cost=Linear(slope))
        weights, values = weights_of(estimates, 1)
        expected = bins_between(-2.0 * slope, 1.0)
        assert values[:BINS] == pytest.approx(expected)
        assert np.ptp(np.diff(values[:BINS])) == pytest.approx(
            0.0 if slope <= 0.25 else 2.0 * slope - 1 / 3, abs=1e-9
        )
        assert weights @ values == pytest.approx(0.3 - 0.5 * slope)

    @given(seen=outcomes, slope=slopes)
    def test_the_mean_is_kept(self, seen: tuple[list[float], list[float]], slope: float) -> None:
        estimates = estimates_of(*seen, cost=Linear(slope))
        for point, (limit, fine) in enumerate([(1.0, 0.5), (2.0, 1.0)]):
            weights, values = weights_of(estimates, point)
            worths = [
                reward - slope * took if took <= limit else -fine
                for reward, took in zip(*seen, strict=True)
            ]
            assert weights.sum() == pytest.approx(len(worths))
            assert (weights >= -1e-12).all()
            close = 1e-9 * (1.0 + slope)
            assert weights @ values == pytest.approx(sum(worths), abs=close)

    @given(seen=outcomes, slope=slopes, fine=slopes, level=st.floats(1e-3, 3.0))
    def test_spreading_only_raises_the_bound(
        self, seen: tuple[list[float], list[float]], slope: float, fine: float, level: float
    ) -> None:
        estimates = estimates_of(*seen, cost=Linear(slope), penalty=Linear(fine))
        for point, limit in enumerate(LIMITS):
            weights, values = weights_of(estimates, point)
            worths = [
                reward - slope * took if took <= limit else -fine * limit
                for reward, took in zip(*seen, strict=True)
            ]
            exact = bound_of([1.0] * len(worths), worths, level)
            close = 1e-9 * (1.0 + slope + fine)
            assert bound_of(weights.tolist(), values.tolist(), level) >= exact - close

    @given(seen=outcomes, slope=slopes)
    def test_as_spread_otherwise(self, seen: tuple[list[float], list[float]], slope: float) -> None:
        estimates = estimates_of(*seen, cost=Linear(slope))
        for point, limit in enumerate(LIMITS):
            gains = [
                reward - slope * took for reward, took in zip(*seen, strict=True) if took <= limit
            ]
            weights, values = weights_of(estimates, point)
            expected = bins_between(-slope * limit, 1.0)
            assert values[:BINS] == pytest.approx(expected)
            assert weights[:BINS] == pytest.approx(spread(np.array(gains), expected), abs=1e-9)

    def test_dear_time_does_not_blur_the_rewards(self) -> None:
        # 40 rewards of .2 at once, 40 of .5, and seconds that cost 1,000 each: equidistant bins
        # would leave one for all of them, and take them for rewards of 0 and 1 now and then.
        rewards, seconds = [0.2] * 40 + [0.5] * 40, [0.0] * 80
        estimates = estimates_of(rewards, seconds, cost=Linear(1000.0))
        weights, values = weights_of(estimates, 1)
        high = bound_of(weights.tolist(), values.tolist(), 0.05)
        exact = bound_of([40.0, 40.0], [0.2, 0.5], 0.05)
        assert exact <= high <= exact + 0.03

    def test_the_reference_agrees_with_the_dual(self) -> None:
        # The bisection that other tests rely on.
        weights = np.array([[1.0, 2.0, 0.0, 4.0], [0.0, 5.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
        values = np.array([[-9.0, 0.2, 0.5, 1.0], [0.0, 0.3, 0.5, 1.0], [-0.2, 0.0, 0.2, 0.5]])
        for level in (0.01, 0.3, 3.0):
            expected = [by_the_dual(*row, level) for row in zip(weights, values, strict=True)]
            found = largest_means(weights, values, np.full(3, level), TOP)
            assert found == pytest.approx(expected, abs=1e-7)


def upper(
    estimates: GainEstimates,
    point: int,
    confidence: str,
    round_number: int,
    exploration: float = 1.0,
    under_way: float = 0.0,
) -> float:
    rule: Rule = estimates.rule._replace(
        confidence=CONFIDENCES.index(confidence), exploration=exploration
    )
    weights, values = np.zeros(BINS + 1), np.zeros(BINS + 1)
    bound, _, _ = _upper_bound(
        estimates.tallies,
        rule,
        0,
        point,
        under_way,
        under_way,
        math.log(round_number),
        math.inf,
        weights,
        values,
    )
    return bound


class TestEachConfidence:
    """Four pulls at 2 and two at 1: gains .7 and .4 by 2, two stopped; one of .9 by 1, one not."""

    @staticmethod
    def estimates() -> GainEstimates:
        estimates = estimates_of([0.75, 0.58, 0.0, 0.0], [0.5, 1.8, 9.0, 9.0])
        estimates.record(0, 1.0, 1.0, 1.0)
        estimates.record(0, 1.0, None, None)
        return estimates

    def test_the_case(self) -> None:
        estimates = self.estimates()
        assert estimates.counts(0).tolist() == [6, 4]
        # Kaplan-Meier: 4 of 6 go on beyond 1, of the 3 of them that may, 1 ends by 2.
        assert estimates.survival(0) == pytest.approx([4 / 6, 4 / 6 * 2 / 3])
        assert estimates.gains(0) == pytest.approx([1.6 / 6 - 0.5 * 4 / 6, 1.1 / 4 - 4 / 9])

    def test_printed(self) -> None:
        # Below Proposition 1, at t = 50 and alpha = 2.
        root = math.sqrt(2.0 * 2.0 * math.log(50.0))
        centre = 1.1 / 4 - 4 / 9
        expected = centre + root / math.sqrt(4.0) + 1.0 * root / math.sqrt(6.0)
        assert upper(self.estimates(), 1, "printed", 50, 2.0) == pytest.approx(expected)
        centre = 1.6 / 6 - 0.5 * 4 / 6
        expected = centre + root / math.sqrt(6.0) + 0.5 * root / math.sqrt(6.0)
        assert upper(self.estimates(), 0, "printed", 50, 2.0) == pytest.approx(expected)

    def test_published_curves(self) -> None:
        root = math.sqrt(2.0 * math.log(50.0))
        expected = 1.1 / 4 - 4 / 9 + root / 2.0
        assert upper(self.estimates(), 1, "published curves", 50) == pytest.approx(expected)

    def test_bernstein(self) -> None:
        # .7, .4, -1, -1 (as worth 2 each): the mean is -.225, V = .60..; from -1 to 1.
        gains = np.array([0.7, 0.4, -1.0, -1.0])
        half = math.sqrt(2.0 * gains.var() * math.log(50.0) / 4.0) + 3 * 2 * math.log(50.0) / 4.0
        assert upper(self.estimates(), 1, "bernstein", 50) == pytest.approx(gains.mean() + half)
        # At 1: .7, .9, and four stopped; a penalty of .5 is below the least gain of -.2.
        gains = np.array([0.7, 0.9, -0.5, -0.5, -0.5, -0.5])
        level = 2.0 * math.log(50.0) / 6.0
        half = math.sqrt(2.0 * gains.var() * level) + 3.0 * 1.5 * level
        assert upper(self.estimates(), 0, "bernstein", 50, 2.0) == pytest.approx(
            gains.mean() + half
        )

    def test_bernstein_where_time_costs_more_than_being_stopped(self) -> None:
        # Gains from 0 - 2 * 2 to 1, though a stop is fined with 1 only: the width is 5.
        estimates = estimates_of([1.0, 0.5], [0.5, 0.75], cost=Linear(2.0))
        level = math.log(50.0) / 2.0
        half = math.sqrt(2.0 * 0.25 * level) + 3.0 * 5.0 * level
        assert upper(estimates, 1, "bernstein", 50) == pytest.approx(-0.5 + half)

    def test_kl(self) -> None:
        # .7 and .4 lie on bins; two stopped at -1. No estimate of survival enters.
        expected = by_the_dual([1.0, 1.0, 2.0], [0.7, 0.4, -1.0], math.log(50.0) / 4.0)
        assert upper(self.estimates(), 1, "kl", 50) == pytest.approx(expected, abs=1e-7)

    def test_kl_plus(self) -> None:
        expected = by_the_dual([1.0, 1.0, 2.0], [0.7, 0.4, -1.0], math.log(50.0 / 4.0) / 4.0)
        assert upper(self.estimates(), 1, "kl+", 50) == pytest.approx(expected, abs=1e-7)
        # What was pulled more often than there were rounds is worth its mean.
        assert upper(self.estimates(), 1, "kl+", 4) == pytest.approx(-0.225)
        assert upper(self.estimates(), 1, "kl+", 2) == pytest.approx(-0.225)

    @pytest.mark.parametrize("confidence", CONFIDENCES)
    def test_pulls_under_way_narrow_it(self, confidence: str) -> None:
        bounds = [upper(self.estimates(), 1, confidence, 50, under_way=k) for k in (0.0, 1.0, 9.0)]
        assert bounds[0] > bounds[1] > bounds[2]

    def test_pulls_under_way_count_as_pulls(self) -> None:
        root = math.sqrt(2.0 * math.log(50.0))
        expected = 1.1 / 4 - 4 / 9 + root / math.sqrt(4.0 + 3.0) + root / math.sqrt(6.0 + 3.0)
        assert upper(self.estimates(), 1, "printed", 50, under_way=3.0) == pytest.approx(expected)
        expected = by_the_dual([1.0, 1.0, 2.0], [0.7, 0.4, -1.0], math.log(50.0) / 7.0)
        bound = upper(self.estimates(), 1, "kl", 50, under_way=3.0)
        assert bound == pytest.approx(expected, abs=1e-7)

    @pytest.mark.parametrize("confidence", CONFIDENCES)
    def test_higher_with_the_rounds_and_the_exploration(self, confidence: str) -> None:
        estimates = self.estimates()
        by_round = [upper(estimates, 1, confidence, t) for t in (20, 200, 20_000)]
        assert by_round == sorted(set(by_round))
        by_factor = [upper(estimates, 1, confidence, 50, alpha) for alpha in (0.5, 1.0, 2.0)]
        assert by_factor == sorted(set(by_factor))


class TestBoundsOnTheGain:
    def test_nothing_known(self) -> None:
        # Everything between the penalty, or the cost, of the limit and a reward of 1 for nothing.
        estimates = estimates_of([], [])
        assert estimates.bounds(0, 0, 0.1) == (-0.5, 1.0)
        assert estimates.bounds(0, 1, 0.1) == (-1.0, 1.0)
        dear = estimates_of([], [], cost=Linear(2.0), reward_range=(5.0, 7.0))
        assert dear.bounds(0, 0, 0.1) == (5.0 - 2.0, 7.0)
        assert dear.bounds(0, 1, 0.1) == (5.0 - 4.0, 7.0)

    @given(seen=outcomes, delta=st.floats(0.001, 0.5))
    def test_as_by_the_dual(self, seen: tuple[list[float], list[float]], delta: float) -> None:
        estimates = estimates_of(*seen)
        weights, values = weights_of(estimates, 1)
        n = float(weights.sum())
        level = (math.log(2.0 / delta) + math.log(n + 1.0) + 1.0) / n
        low, high = estimates.bounds(0, 1, delta)
        assert high == pytest.approx(by_the_dual(weights, values, level), abs=1e-6)
        # The lower one is the upper one of what is lost, and no gain is below -1.
        mirrored = by_the_dual(weights, -values, level)
        assert low == pytest.approx(-mirrored, abs=1e-6)

    @given(seen=outcomes)
    def test_they_are_on_both_sides_and_within_what_is_possible(
        self, seen: tuple[list[float], list[float]]
    ) -> None:
        estimates = estimates_of(*seen)
        for point, (limit, fine) in enumerate([(1.0, 0.5), (2.0, 1.0)]):
            mean = np.mean(
                [
                    reward - 0.1 * took if took <= limit else -fine
                    for reward, took in zip(*seen, strict=True)
                ]
            )
            low, high = estimates.bounds(0, point, 0.1)
            assert -fine - 1e-9 <= low <= mean + 1e-9
            assert mean - 1e-9 <= high <= 1.0 + 1e-9

    def test_wider_with_less_delta_narrower_with_more_pulls(self) -> None:
        widths = []
        for n, delta in ((10, 0.001), (10, 0.1), (100, 0.1), (1000, 0.1)):
            estimates = estimates_of([0.2, 0.9, 0.5, 0.0] * n, [1.0, 0.5, 1.5, 9.0] * n)
            low, high = estimates.bounds(0, 1, delta)
            widths.append(high - low)
        assert widths == sorted(widths, reverse=True)
        assert widths[-1] < 0.15 < 1.0 < widths[0]

    def test_mirrored_gains_have_mirrored_bounds(self) -> None:
        # Gains from 0 to 1, none stopped, a penalty that nothing suffers: y and 1 - y.
        rng = np.random.default_rng(3)
        rewards = rng.beta(0.3, 2.0, 60)
        free = {"cost": Linear(0.0), "penalty": Linear(0.0)}
        one = estimates_of(rewards, [0.5] * 60, **free)
        other = estimates_of(1.0 - rewards, [0.5] * 60, **free)
        low, high = one.bounds(0, 1, 0.05)
        mirrored = other.bounds(0, 1, 0.05)
        assert mirrored == pytest.approx((1.0 - high, 1.0 - low), abs=1e-7)
        # The bound is nearer on the side where there is less room.
        assert rewards.mean() - low < high - rewards.mean()

    def test_a_penalty_never_suffered_might_come(self) -> None:
        # 100 good pulls, none stopped; but a stop costs 10: P(stop) <= 1 - exp(-level).
        estimates = estimates_of([1.0] * 100, [0.0] * 100, penalty=Deadline(0.0, 1.5, 5.0))
        level = (math.log(2.0 / 0.05) + math.log(101.0) + 1.0) / 100.0
        kept = math.exp(-level)
        low, high = estimates.bounds(0, 1, 0.05)
        assert low == pytest.approx(kept * 1.0 + (1.0 - kept) * -10.0, abs=1e-6)
        assert high == pytest.approx(1.0, abs=1e-6)
        assert bounds_on_gain(estimates.tallies, estimates.rule, 0, 1, 0.0) == pytest.approx(
            (1.0, 1.0)
        )


def misses_at_any_time(seed: int, rounds: int, delta: float) -> tuple[bool, bool, float]:
    """Whether an interval, and one that forgets the penalty, ever missed; its width at the end.

    Two arms, whose longest pulls are rarely stopped, but dearly: the gains are very skewed. RCUCB
    chooses what is pulled next in the light of what came out.
    """
    limits, penalty = (0.5, 1.0), Deadline(slope=0.1, deadline=0.5, fine=12.0)
    policy = RCUCB(2, limits, cost=COST, penalty=penalty, reward_range=(0.0, 1.0), delta=delta)
    rng = np.random.default_rng(seed)
    # Seconds .4 or .8, or 2, too long for either; rewards 1 or 0.
    late, slow, good = (0.04, 0.07), (0.5, 0.3), (0.8, 0.7)
    truth = np.array(
        [
            [
                (1.0 - s - b) * (p - 0.04) - (s + b) * 0.05,
                (1.0 - s - b) * (p - 0.04) + s * (p - 0.08) - b * 12.0,
            ]
            for b, s, p in zip(late, slow, good, strict=True)
        ]
    )
    missed = refuted = False
    for _ in range(rounds):
        [pull] = policy.ask()
        arm = pull.arm
        chance = rng.random()
        took = 2.0 if chance < late[arm] else 0.8 if chance < late[arm] + slow[arm] else 0.4
        assert pull.limit is not None
        if took > pull.limit:
            observation = Observation(None, cost=pull.limit, censored_at=pull.limit)
        else:
            observation = Observation(float(rng.random() < good[arm]), cost=took)
        policy.tell(pull, observation)
        gains = policy.estimate(arm)
        counts = policy.plays[arm].sum(), policy.plays[arm, 1]
        for point in range(2):
            low, high = policy.interval(arm, point)
            missed |= not low <= truth[arm, point] <= high
            if counts[point]:
                half = math.sqrt(math.log(8.0 / delta) / (2.0 * counts[point]))
                refuted |= abs(gains[point] - truth[arm, point]) > half
    low, high = policy.interval(0, 0)
    return missed, refuted, high - low


@pytest.mark.slow
def test_intervals_hold_at_all_times_while_the_policy_chooses() -> None:
    delta, seeds = 0.1, 30
    runs = [misses_at_any_time(seed, 200, delta) for seed in range(seeds)]
    missed, refuted, widths = zip(*runs, strict=True)
    # delta, and four standard errors.
    most = delta * seeds + 4.0 * math.sqrt(delta * (1.0 - delta) * seeds)
    assert sum(missed) <= most
    # The same data refute an interval for gains within a range of 1: the test can fail.
    assert sum(refuted) > most
    # And the intervals say something.
    assert max(widths) < 0.8
