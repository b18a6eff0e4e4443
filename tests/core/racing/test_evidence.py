import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo import IISE, MFLUCB, MFTopTwo
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.confidence import MixtureRadius, StudentMixtureRadius
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, SubGaussian
from mfhpo.problem import Problem
from mfhpo.racing.evidence import Evidence
from mfhpo.racing.noise_evidence import NoNoiseWarning
from tests.core.racing.plays import play

BOTH = np.array([0, 1])


def evidence(noise, n_arms=2, variances=False):
    problem = Problem(n_arms, costs=(1.0, 10.0), bias=Bias.max(0.5, 0.0), noise=noise)
    return Evidence(problem, 0.1, (0, 1), None, variances=variances)


def told(noise, values, **options):
    """Evidence of what arms gave at the cheaper fidelity, in turn."""
    found = evidence(noise, n_arms=len(values), **options)
    for turn in range(max(map(len, values))):
        for arm, of_arm in enumerate(values):
            if turn < len(of_arm):
                found.add(arm, 0, of_arm[turn])
    return found


class TestVariances:
    def test_declared(self):
        found = evidence(SubGaussian((2.0, 0.5)), variances=True)
        assert found.noise.variances(BOTH).tolist() == [[4.0, 0.25], [4.0, 0.25]]
        assert found.noise.delta == pytest.approx(0.1)

    def test_bounded_values_leave_half_of_delta_to_the_intervals(self):
        # Values within [a, b] have a variance proxy of (b - a)^2 / 4.
        found = evidence(Bounded(-1.0, 2.0), variances=True)
        assert found.noise.variances(BOTH).tolist() == [[2.25, 2.25], [2.25, 2.25]]
        assert found.noise.delta == pytest.approx(0.05)
        assert evidence(Bounded(-1.0, 2.0)).noise.delta == pytest.approx(0.1)

    @pytest.mark.parametrize("noise", [Gaussian(), EstimatedNoise()])
    def test_guesses_lean_on_the_others(self, noise):
        # Squares 2 and 8 around the means, of 4 repeats: 2.5 each, which count for two repeats.
        found = told(noise, [[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]])
        assert found.noise.variances(BOTH)[:, 0] == pytest.approx([7.0 / 4.0, 13.0 / 4.0])
        assert np.isinf(found.noise.variances(BOTH)[:, 1]).all()

    def test_an_interval_is_its_own_arms(self):
        """However quiet the others are, and however many values they have."""
        loud = [-1.0, 2.0, 0.5, 3.0, -2.0, 1.0]
        quiet = list(np.random.default_rng(0).normal(0.0, 0.01, 100))
        alone, beside = told(EstimatedNoise(), [loud, []]), told(EstimatedNoise(), [loud, quiet])
        assert alone.summary(0, 0) == beside.summary(0, 0)
        squares = found_squares(loud)
        radius = StudentMixtureRadius()(np.array([6]), 0.1 / 4.0, squares=np.array([squares]))
        assert alone.summary(0, 0)[2] == pytest.approx(radius[0])

    def test_whose_spread_counts_for_whom(self):
        rng = np.random.default_rng(0)
        quiet = [list(rng.normal(0.0, 0.1, 20)) for _ in range(3)]
        found = told(EstimatedNoise(), [*quiet, [0.0], [0.0, 0.1], [-3.0, 3.0]])
        squares, degrees = found.noise.squares_of_others(np.arange(6), 0)
        # Of one value alone, and of an arm that spreads more, nothing is told by others.
        assert (degrees == 0.0).tolist() == [False, False, False, True, False, True]
        assert found.noise.spread_more(np.arange(6), 0).tolist() == [5]
        # 20 values are worth 20 - (1 + ... + 1/20) = 16.40 degrees of freedom, two 1/2.
        assert degrees[4] == pytest.approx(3.0 * 16.4023 + 0.5, abs=1e-3)
        others = sum(found_squares(row) for row in quiet) + 18.0
        assert squares[4] == pytest.approx(16.0 * others)


def found_squares(values):
    return float(np.square(np.array(values) - np.mean(values)).sum())


class TestEqualValues:
    def test_they_say_nothing_while_all_are_equal(self):
        found = told(EstimatedNoise(), [[3.0] * 4, [2.0]])
        with pytest.warns(NoNoiseWarning):
            found.add(0, 0, 3.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it is said once
            for _ in range(100):
                found.add(0, 0, 3.0)
        assert math.isinf(found.summary(0, 0)[2])
        assert found.noise.is_hidden(0)

    def test_a_step_that_was_not_seen_may_still_be(self):
        """Scores on 50 rows: what is constant is known no better than others' usual step says."""
        found = told(EstimatedNoise(), [[1.0] * 20, [0.9, 0.92, 0.92, 0.94]])
        squares = -math.log(0.1 / 4.0) * 0.02**2
        radius = StudentMixtureRadius()(np.array([20]), 0.1 / 4.0, squares=np.array([squares]))
        assert found.summary(0, 0)[2] == pytest.approx(radius[0])
        assert found.noise.squares(BOTH, 0)[0] == pytest.approx(squares)
        # Of the other arm, one in three values repeats the one before: it shows what there is.
        assert found.noise.squares(BOTH, 0)[1] == pytest.approx(
            found_squares([0.9, 0.92, 0.92, 0.94])
        )

    def test_values_that_never_repeat_are_not_rounded(self):
        values = list(np.random.default_rng(0).normal(0.0, 1.0, 10))
        found = told(EstimatedNoise(), [values, values[:3][::-1]])
        assert found.noise.squares(BOTH, 0)[0] == pytest.approx(found_squares(values))

    def test_whoever_declares_no_noise_is_told_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = told(SubGaussian(0.0), [[1.0] * 9, [2.0] * 9])
        assert not found.noise.is_hidden(0)
        assert found.summary(0, 0)[2] == 0.0

    @pytest.mark.parametrize("noise", [SubGaussian(0.1), Bounded(0.0, 5.0)])
    def test_they_are_noticed_whatever_was_declared(self, noise):
        with pytest.warns(NoNoiseWarning):
            found = told(noise, [[1.0] * 4, [2.0] * 4])
        assert found.noise.is_hidden(0)


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


class TestLeads:
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
    def test_by_hand(self, bias, fidelity, needed):
        found = self.found(1.0, fidelity)
        assert found.leads(0, np.array([1]), bias) == pytest.approx([1.0 - needed])
        assert found.leads(1, np.array([0]), bias) == pytest.approx([-1.0 - needed])

    @pytest.mark.parametrize("bias", [Bias.max(0.5, 0.0), Bias.order(0.5, 0.0)])
    def test_what_was_not_seen_does_not_lead(self, bias):
        found = evidence(SubGaussian(self.SIGMA))
        assert found.leads(0, np.array([1]), bias).tolist() == [-np.inf]
        found.add(0, 1, 100.0)
        assert found.leads(0, np.array([1]), bias).tolist() == [-np.inf]
        found.add(1, 0, 0.0)  # max bounds compare fidelities, order bounds do not
        assert np.isfinite(found.leads(0, np.array([1]), bias)).tolist() == [bias.kind == "max"]


@pytest.mark.parametrize("policy", [IISE, MFTopTwo, MFLUCB])
def test_a_race_whose_noise_is_not_seen_ends_without_a_certificate(policy):
    means = [0.1, 0.5, 0.3]
    race = policy(Problem(3, costs=(1.0,), bias=Bias.max(0.0), noise=EstimatedNoise()))
    with pytest.warns(NoNoiseWarning) as caught:
        pulls = play(race, lambda pull: means[pull.arm], most=100)
    assert len(caught) == 1
    answer = race.recommend()
    assert (answer.certified, answer.finished) == (False, True)
    assert answer.interval == (-math.inf, math.inf)
    assert "declare sigma=0" in answer.reason
    assert len(pulls) <= 20
    known = policy(Problem(3, costs=(1.0,), bias=Bias.max(0.0), noise=SubGaussian(0.0)))
    play(known, lambda pull: means[pull.arm], most=100)
    assert (known.recommend().arm, known.recommend().certified) == (1, True)
