import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo import IISE, MFLUCB, MFTopTwo
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.confidence import HoeffdingRadius, MixtureRadius, Radius, TightestRadius
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, SubGaussian
from mfhpo.problem import Problem
from mfhpo.racing.evidence import Evidence
from mfhpo.racing.noise_evidence import NoNoiseWarning
from tests.core.knowledge.studentised_by_hand import u_where_f_is
from tests.core.racing.plays import play

BOTH = np.array([0, 1])


def evidence(noise, n_arms=2, variances=False):
    problem = Problem(n_arms, costs=(1.0, 10.0), bias=Bias.max(0.5, 0.0), noise=noise)
    return Evidence(problem, 0.1, (0, 1), None, variances=variances)


class TestVarianceBounds:
    def test_declared(self):
        found = evidence(SubGaussian((2.0, 0.5)), variances=True)
        assert found.noise.variance_bounds(BOTH).tolist() == [[4.0, 0.25], [4.0, 0.25]]
        assert found.noise.delta == pytest.approx(0.1)
        assert not found.noise.estimates_variances

    def test_bounded_values_leave_half_of_delta_to_the_intervals(self):
        # Values within [a, b] have a variance proxy of (b - a)^2 / 4.
        found = evidence(Bounded(-1.0, 2.0), variances=True)
        assert found.noise.variance_bounds(BOTH).tolist() == [[2.25, 2.25], [2.25, 2.25]]
        assert found.noise.delta == pytest.approx(0.05)
        assert evidence(Bounded(-1.0, 2.0)).noise.delta == pytest.approx(0.1)

    def test_each_arms_own(self):
        # 9 values are worth 9 - (1 + 1/2 + ... + 1/9) = 6.17 degrees of freedom, 8 are worth 5.28,
        # which are too few for 1/10 of delta over four pairs, 1/400. The squares are 60.
        found = evidence(Gaussian(), variances=True)
        for value in range(9):
            assert math.isinf(found.noise.variance_bounds(BOTH)[1, 0])
            found.add(1, 0, float(value))
        bounds = found.noise.variance_bounds(BOTH)
        assert bounds[1, 0] == pytest.approx(
            60.0 / 2.0 / u_where_f_is(math.log(400.0), 6.0), rel=1e-3
        )
        assert np.isinf(bounds[[0, 0, 1], [0, 1, 1]]).all()
        assert found.noise.delta == pytest.approx(0.09)
        assert found.noise.estimates_variances

    def test_one_for_all_arms(self):
        # Around the arms' means the squares are 10 and 6. 5 values are worth 2.717 degrees of
        # freedom, both arms together 5. 1/10 of delta over two fidelities: 1/200.
        found = evidence(EstimatedNoise(), variances=True)
        for values in ((0.0, 4.0), (1.0, 4.0), (2.0, 5.0), (3.0, 7.0), (4.0, 5.0)):
            assert np.isinf(found.noise.variance_bounds(BOTH)).all()
            for arm in (0, 1):
                found.add(arm, 0, values[arm])
        expected = 16.0 / 2.0 / u_where_f_is(math.log(200.0), 5.0)
        bounds = found.noise.variance_bounds(BOTH)
        assert bounds[:, 0] == pytest.approx([expected, expected], rel=1e-3)
        assert np.isinf(bounds[:, 1]).all()
        assert found.noise.delta == pytest.approx(0.09)

    def test_an_arm_that_spreads_more_has_its_own(self):
        found = evidence(EstimatedNoise(), n_arms=3, variances=True)
        rng = np.random.default_rng(0)
        for _ in range(100):
            for arm in (0, 1):
                found.add(arm, 0, 0.01 * rng.standard_normal())
        for value in (-7.0, 7.0):
            found.add(2, 0, value)
        bounds = found.noise.variance_bounds(np.arange(3))[:, 0]
        # Its sample variance is 98. One degree of freedom, and hardly more from arms so unlike it.
        assert bounds[2] > 98.0
        assert (bounds[:2] < 0.1).all()

    def test_no_noise(self):
        # As above 1/200 needs 5 degrees of freedom, and 8 values are worth 5.28.
        found = evidence(EstimatedNoise(), variances=True)
        for _ in range(4):
            found.add(0, 0, 3.0)
        with pytest.warns(NoNoiseWarning):
            found.add(0, 0, 3.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it is said once
            found.add(0, 0, 3.0)
            found.add(0, 0, 3.0)
        assert np.isinf(found.noise.variance_bounds(BOTH)[:, 0]).all()
        found.add(0, 0, 3.0)
        assert found.noise.variance_bounds(BOTH)[:, 0].tolist() == [0.0, 0.0]


class TestIntervals:
    @given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(["max", "order", "none"]))
    def test_those_of_several_arms_are_those_of_each(self, seed, kind):
        rng = np.random.default_rng(seed)
        found = evidence(SubGaussian(0.3), n_arms=3)
        for _ in range(int(rng.integers(0, 25))):
            found.add(int(rng.integers(3)), int(rng.integers(2)), 0.1 * rng.standard_normal())
        bias = {"max": Bias.max(0.5, 0.0), "order": Bias.order(0.5, 0.0), "none": None}[kind]
        lows, highs = found.intervals(np.arange(3), bias)
        for arm in range(3):
            assert (lows[arm], highs[arm]) == found.interval(arm, bias)

    def test_contradictory_fidelities_show_it(self):
        # `interval` skips what contradicts; `intervals` is empty.
        found = evidence(SubGaussian(1e-3))
        found.add(0, 0, 0.0)
        found.add(0, 1, 9.0)
        lows, highs = found.intervals(np.array([0]), Bias.max(0.5, 0.0))
        assert lows[0] > highs[0]
        low, high = found.interval(0, Bias.max(0.5, 0.0))
        assert low <= high


class TestSeparated:
    """One value of each arm; at level 0.1 / 4 its radius is B."""

    SIGMA = 0.01
    B = float(MixtureRadius(SIGMA)(np.array([1]), 0.1 / 4)[0])

    def found(self, gap, fidelity):
        found = evidence(SubGaussian(self.SIGMA))
        found.add(0, fidelity, gap)
        found.add(1, fidelity, 0.0)
        return found

    @pytest.mark.parametrize(
        ("bias", "fidelity", "needed"),
        [
            (Bias.max(0.5, 0.0), 0, 2 * B + 1.0),
            (Bias.max(0.5, 0.0), 1, 2 * B),
            (Bias.order(0.5, 0.0), 0, 2 * B + 0.5),
            (Bias.order(0.5, 0.0), 1, 2 * B),
        ],
    )
    @pytest.mark.parametrize("epsilon", [0.0, 0.05])
    def test_by_hand(self, bias, fidelity, needed, epsilon):
        others = np.array([1])
        apart = self.found(needed - epsilon + 1e-9, fidelity)
        assert apart.separated(0, others, bias, epsilon).tolist() == [True]
        close = self.found(needed - epsilon - 1e-9, fidelity)
        assert close.separated(0, others, bias, epsilon).tolist() == [False]
        assert apart.separated(1, np.array([0]), bias, epsilon).tolist() == [False]

    @pytest.mark.parametrize("bias", [Bias.max(0.5, 0.0), Bias.order(0.5, 0.0)])
    def test_what_was_not_seen_is_not_separated(self, bias):
        found = evidence(SubGaussian(self.SIGMA))
        assert found.separated(0, np.array([1]), bias).tolist() == [False]
        found.add(0, 1, 100.0)
        assert found.separated(0, np.array([1]), bias).tolist() == [False]
        found.add(1, 0, 0.0)  # max bounds compare fidelities, order bounds do not
        assert found.separated(0, np.array([1]), bias).tolist() == [bias.kind == "max"]


class TestRadii:
    @pytest.mark.parametrize("n_radii", [1, 3])
    def test_another_number_is_an_error(self, n_radii):
        problem = Problem(2, costs=(1.0, 10.0), noise=SubGaussian(1.0))
        with pytest.raises(ValueError, match=f"radius has {n_radii} entries but there are 2"):
            Evidence(problem, 0.1, (0, 1), [HoeffdingRadius(1.0)] * n_radii)

    @pytest.mark.parametrize("radius", [3.0, [3.0, 3.0], "mixture"])
    def test_anything_else_is_an_error(self, radius):
        problem = Problem(2, costs=(1.0, 10.0), noise=SubGaussian(1.0))
        with pytest.raises(TypeError, match=r"radius must be a mfhpo\.Radius"):
            Evidence(problem, 0.1, (0, 1), radius)


class Growing(Radius):
    theorem = assumption = "none"
    changes = True
    factor = 1.0

    def _widths(self, n, level, squares, prediction_errors):
        return self.factor / n


class TestHalfWidths:
    @pytest.mark.parametrize(
        "noise", [EstimatedNoise(), SubGaussian(1.0), Gaussian(), Bounded(-9.0, 9.0)]
    )
    @given(seed=st.integers(0, 10_000))
    def test_what_was_asked_before_changes_nothing(self, noise, seed):
        rng = np.random.default_rng(seed)
        asked, told = evidence(noise, n_arms=4), []
        n_arms, n_fidelities = asked.counts.shape
        arms = np.arange(n_arms)
        for _ in range(15):
            told.append(
                (int(rng.integers(n_arms)), int(rng.integers(n_fidelities)), rng.standard_normal())
            )
            asked.add(*told[-1])
            fresh = evidence(noise, n_arms=4)
            for observation in told:
                fresh.add(*observation)
            some, m = rng.permutation(arms)[: rng.integers(1, n_arms + 1)], int(rng.integers(2))
            under_way = asked.half_widths(some, m, asked.counts[some, m] + 1)
            under_way[:] = 0.0
            expected = fresh.half_widths(some, m).tolist()
            known = asked.half_widths(some, m)
            assert known.tolist() == expected
            known[:] = 0.0
            assert asked.half_widths(some, m, fresh.counts[some, m]).tolist() == expected
        before = fresh.state_dict()
        for target in (asked, fresh):
            target.add(0, 0, 100.0)
            target.half_widths(arms, 0)
            target.load_state_dict(before)
        again = evidence(noise, n_arms=4)
        again.load_state_dict(before)
        for m in range(n_fidelities):
            assert asked.half_widths(arms, m).tolist() == again.half_widths(arms, m).tolist()

    def test_a_radius_that_changes(self):
        radius = Growing()
        problem = Problem(2, costs=(1.0, 10.0), noise=SubGaussian(1.0))
        seen = Evidence(problem, 0.1, (0, 1), radius)
        seen.add(0, 0, 1.0)
        assert seen.half_widths(np.array([0]), 0).tolist() == [1.0]
        radius.factor = 2.0
        assert seen.half_widths(np.array([0]), 0).tolist() == [2.0]
        assert TightestRadius((HoeffdingRadius(1.0), radius)).changes
        assert not TightestRadius((HoeffdingRadius(1.0), MixtureRadius(1.0))).changes


@pytest.mark.parametrize("policy", [IISE, MFTopTwo, MFLUCB])
def test_a_race_without_any_noise_is_over_after_few_repeats(policy):
    means = [0.1, 0.5, 0.3]
    race = policy(Problem(3, costs=(1.0,), bias=Bias.max(0.0), noise=EstimatedNoise()))
    with pytest.warns(NoNoiseWarning) as caught:
        play(race, lambda pull: means[pull.arm], most=100)
    assert len(caught) == 1
    assert race.recommend().certified
    assert race.recommend().arm == 1
    # The winner is repeated until outcomes that were not seen are rare.
    assert max(race.summary(arm, 0)[0] for arm in (0, 2)) <= 8
