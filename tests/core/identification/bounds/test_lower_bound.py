import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.iise import load_instance
from benchmarks.simulation.blocks import run_rounds
from benchmarks.simulation.instances import GaussianInstance
from mfhpo.identification import bounds
from mfhpo.identification.bounds import cost_lower_bound, predict_cost
from mfhpo.identification.elimination import IISE
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.confidence import HoeffdingRadius, Radius
from mfhpo.knowledge.noise import SubGaussian
from mfhpo.problem import Problem

INFORMATION = math.log(1.0 / (2.4 * 0.001))  # for delta = .001


class RootRadius(Radius):
    """B(n) = 1 / sqrt(n), whatever the level: pull counts can be worked out by hand."""

    theorem = "none"
    assumption = "none"

    def _widths(self, n, level, *spreads):
        return 1.0 / np.sqrt(n)


def two_levels(n_arms, bias, sigma=1.0):
    return Problem(n_arms, costs=(1.0, 100.0), bias=bias, noise=SubGaussian(sigma))


class TestTheorem1:
    def test_each_arm_is_told_apart_where_it_is_cheapest(self):
        # Arm 1: 1 - .1 - .05 = .85 at the cheap fidelity, cost 2 / .85^2; 200 at the target.
        # Arm 0: .95 - 0 - .1 = .85 as well.
        bound = cost_lower_bound(
            two_levels(2, Bias.max(0.1, 0.0)), 0.001, means=[[0.95, 0.05], [1.0, 0.0]]
        )
        assert bound == pytest.approx(INFORMATION * 2 * 2 / 0.85**2)

    def test_noise_may_differ_between_fidelities(self):
        problem = Problem(2, (1.0, 4.0), Bias.max(0.0, 0.0), SubGaussian((4.0, 1.0)))
        # 1 * 2 * 16 at the cheap fidelity, 4 * 2 * 1 at the target.
        assert cost_lower_bound(problem, 0.001, gaps=[1.0]) == pytest.approx(INFORMATION * 2 * 8)

    def test_a_tolerance_lengthens_the_distances_and_frees_near_ties(self):
        problem = Problem(3, (1.0,), Bias.max(0.0), SubGaussian(1.0))
        # Gaps 1 and 2, epsilon .5: the answer is forced for all three arms.
        strict = cost_lower_bound(problem, 0.001, gaps=[1.0, 2.0], epsilon=0.5)
        assert strict == pytest.approx(INFORMATION * 2 * (2 / 1.5**2 + 1 / 2.5**2))
        # Epsilon 1: the second arm is a right answer too; only the third must be told apart.
        loose = cost_lower_bound(problem, 0.001, gaps=[1.0, 2.0], epsilon=1.0)
        assert loose == pytest.approx(INFORMATION * 2 / 3.0**2)
        assert cost_lower_bound(problem, 0.001, gaps=[1.0, 2.0], epsilon=2.0) == 0.0

    def test_degenerate_races(self):
        pair = two_levels(2, Bias.max(0.1, 0.0))
        assert cost_lower_bound(pair, 0.001, gaps=[0.0]) == math.inf
        assert cost_lower_bound(pair, 0.5, gaps=[0.0]) == 0.0  # guessing is right often enough
        assert cost_lower_bound(two_levels(1, Bias.max(0.1, 0.0)), 0.001, gaps=[]) == 0.0
        silent = two_levels(2, Bias.max(0.1, 0.0), sigma=0.0)
        assert cost_lower_bound(silent, 0.001, gaps=[1.0]) == 0.0

    @pytest.mark.parametrize(
        ("name", "se", "se_ratio", "iise", "iise_ratio"),
        [
            ("synthetic_a", 1.433e8, 297, 1.622e7, 33.6),
            ("synthetic_b", 2.655e8, 138, 7.077e7, 36.7),
        ],
    )
    def test_published_instances(self, data_folder, name, se, se_ratio, iise, iise_ratio):
        instance = load_instance(data_folder / "iise" / f"{name}.npz")
        bound = cost_lower_bound(instance.problem(), 0.001, means=instance.means)
        assert se / bound == pytest.approx(se_ratio, rel=0.005)
        assert iise / bound == pytest.approx(iise_ratio, rel=0.005)


def predicted(problem, radius, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "default_radius", lambda *_: radius)
        return predict_cost(problem, 0.05, **options)


class TestPrediction:
    def test_worked_by_hand(self):
        # xi .125: margin .25, alpha = 2 * .25 / (3 - 1) = .25, so the cheap phase lasts 256 pulls.
        problem = Problem(4, (1.0, 9.0), Bias.max(0.125, 0.0), SubGaussian(1.0))
        prediction = predicted(problem, RootRadius(), gaps=[1.25, 0.5, 0.25])
        # Cheap: 2 B <= 1.25 - .25 at 4 pulls, 2 B <= .5 - .25 at 64; gap .25 stays for 256, and
        # so does the best. Target: 2 B <= .25 at 64, for the last two.
        assert prediction.pulls == (4 + 64 + 256 + 256, 64 + 64)
        assert prediction.expected == 580 + 9 * 128
        # 2 B <= gap at 3, 16 and 64.
        assert prediction.top_fidelity_only == 9 * (3 + 16 + 2 * 64)
        assert prediction.lower_bound < prediction.expected

    def test_the_tolerance_ends_the_race(self):
        problem = Problem(2, (1.0,), Bias.max(0.0), SubGaussian(1.0))
        prediction = predicted(problem, RootRadius(), gaps=[0.25], epsilon=0.25)
        assert prediction.expected == 2 * 16  # 2 B <= .25 + .25

    def test_a_tie_never_ends(self):
        problem = two_levels(2, Bias.max(0.1, 0.0))
        prediction = predict_cost(problem, 0.05, gaps=[0.0])
        assert prediction.expected == math.inf
        assert prediction.pulls[1] == math.inf
        assert 0.0 < prediction.pulls[0] < math.inf

    @settings(max_examples=30)
    @given(
        seed=st.integers(0, 10**6),
        kind=st.sampled_from(["max", "order"]),
        epsilon=st.sampled_from([0.0, 0.1, 0.6]),
        block=st.sampled_from([100, 777, 1 << 15]),
    )
    def test_equals_what_the_engine_pays_without_noise(self, seed, kind, epsilon, block):
        rng = np.random.default_rng(seed)
        target = np.concatenate(([1.0], 1.0 - rng.uniform(0.2, 2.0, 5)))
        means = target + np.array([[0.2], [0.05], [0.0]]) * rng.uniform(-1.0, 1.0, (3, 6))
        silent = GaussianInstance(means, [1.0, 8.0, 30.0], variance=0.0)
        problem = silent.problem(kind, noise=SubGaussian(0.5))
        radius = HoeffdingRadius(0.5)
        prediction = predicted(problem, radius, means=means, epsilon=epsilon)
        for kind_of_race, expected in (
            (IISE, prediction.expected),
            (partial(IISE, variant="se"), prediction.top_fidelity_only),
        ):
            race = kind_of_race(problem, delta=0.05, epsilon=epsilon, radius=radius, audit=False)
            paid = run_rounds(race, silent, rng, resolution=0.0, block=block).cost
            assert paid == pytest.approx(expected)
        assert prediction.lower_bound <= prediction.expected

    @pytest.mark.parametrize("kind", ["max", "order"])
    @pytest.mark.parametrize("epsilon", [0.0, 0.5])
    def test_what_is_expected_is_mostly_paid(self, kind, epsilon):
        rng = np.random.default_rng(1)
        target = np.linspace(1.0, 0.0, 5)
        means = target + np.array([[0.05], [0.0]]) * rng.uniform(-1.0, 1.0, (2, 5))
        instance = GaussianInstance(means, [1.0, 20.0], variance=0.25)
        problem = instance.problem(kind)
        guess = predict_cost(problem, 0.1, means=means, epsilon=epsilon)
        races = [IISE(problem, delta=0.1, epsilon=epsilon, audit=False) for _ in range(50)]
        costs = [run_rounds(race, instance, rng).cost for race in races]
        assert np.mean(costs) == pytest.approx(guess.expected, rel=0.3)
