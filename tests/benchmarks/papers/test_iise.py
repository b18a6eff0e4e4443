import math

import numpy as np
import pytest
from scipy.stats import truncnorm

from benchmarks.papers.iise import (
    _EXCESS_KURTOSIS,
    _SCALE,
    ALGORITHMS,
    INSTANCES,
    TruncatedNormalInstance,
    fresh_instance,
    load_instance,
    measure,
    published,
    synthetic_a,
    synthetic_b,
)
from benchmarks.simulation.instances import GaussianInstance


@pytest.mark.slow
@pytest.mark.parametrize("name", list(INSTANCES))
def test_published_figures(data_folder, name):
    case = INSTANCES[name]
    instance = load_instance(data_folder / "iise" / f"{name}.npz", case.noise)
    figures = measure(instance, 20, mfe_fraction=case.mfe_fraction)
    assert list(figures) == list(ALGORITHMS)
    for algorithm, figure in figures.items():
        assert figure.errors == 0
        paper = published(name, algorithm)
        if paper is None:
            continue
        percent, ci95 = paper
        # Four standard errors of the difference: 20 runs here, 100 in the paper.
        tolerance = 4.0 * math.hypot(figure.ci95, ci95) / 1.96
        assert figure.percent == pytest.approx(percent, abs=tolerance), algorithm
        assert figure.ci95 < 0.1 * figure.percent


def test_runs_are_reproducible_and_the_best_known_order_holds():
    instance = fresh_instance("synthetic_a", seed=1)
    first = measure(instance, 2, seed=(3,), algorithms=("IISE", "IISE-gamma"))
    again = measure(instance, 2, seed=(3,), algorithms=("IISE", "IISE-gamma"))
    assert list(first) == ["SE", "IISE", "IISE-gamma"]
    for name, figure in first.items():
        assert figure.percent == again[name].percent
    assert first["IISE-gamma"].percent < first["IISE"].percent
    assert (first["SE"].percent, first["SE"].ci95) == (100.0, 0.0)
    assert 0.0 < first["IISE"].cpu_s < 5.0


class TestInstances:
    def test_moments_of_a_truncated_normal(self):
        exact = truncnorm(-1.6, 1.6, scale=0.05)
        arms = np.zeros(50000, dtype=np.int64)
        rng = np.random.default_rng(0)
        instance = TruncatedNormalInstance([[0.5]], [1.0])
        values = instance.running_sums(rng, arms, 0, 0, np.zeros(50000), np.array([1]))[:, 0] - 0.5
        assert np.abs(values).max() <= 0.08 + 1e-12
        assert values.std() == pytest.approx(exact.std(), rel=0.02)
        assert pytest.approx(exact.std()) == _SCALE
        assert pytest.approx(exact.stats(moments="k")) == _EXCESS_KURTOSIS

    def test_large_sums_of_truncated_normals(self):
        """The error that the docstring states, against a convolution on a grid."""
        grid = np.linspace(-0.08, 0.08, 801)
        density = truncnorm(-1.6, 1.6, scale=0.05).pdf(grid)
        density[[0, -1]] /= 2.0  # trapezoidal rule
        mass = np.array([1.0])
        for _ in range(32):
            mass = np.convolve(mass, density / density.sum())
        points = (np.arange(len(mass)) - (len(mass) - 1) / 2) * 0.0002
        exact = np.cumsum(mass) - mass / 2.0
        # The distribution function of what is drawn, by inverting z + c (z^3 - 3 z).
        z = np.linspace(-5.0, 5.0, 20001)
        drawn = _SCALE * math.sqrt(32) * (z + _EXCESS_KURTOSIS / (24 * 32) * (z**3 - 3 * z))
        normal = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in z])
        assert np.abs(np.interp(drawn, points, exact) - normal).max() < 1e-5

    @pytest.mark.parametrize(
        ("recipe", "shape", "costs", "xi"),
        [
            (synthetic_a, (4, 2000), [1, 10, 100, 1000], [1.15, 0.225, 0.0105, 0]),
            (synthetic_b, (5, 1000), [16, 64, 256, 1024, 4096], [1.15, 0.45, 0.105, 0.0105, 0]),
        ],
    )
    def test_recipes(self, recipe, shape, costs, xi):
        instance = recipe(np.random.default_rng(0))
        assert instance.means.shape == shape
        assert instance.costs.tolist() == costs
        assert instance.xi == pytest.approx(xi)
        assert instance.variance == 1.0
        # What is declared holds, and hardly less would.
        exact = GaussianInstance(instance.means, costs)
        assert (exact.xi <= instance.xi + 1e-12).all()
        assert (exact.gamma <= instance.gamma + 1e-12).all()
        assert exact.gamma[:-1] == pytest.approx(instance.gamma[:-1], rel=0.05)
        assert instance.means[-1].std() == pytest.approx(1.0, abs=0.1)

    def test_yahtzee_as_published(self, data_folder):
        instance = load_instance(data_folder / "iise" / "yahtzee.npz", "truncated normal")
        assert isinstance(instance, TruncatedNormalInstance)
        assert instance.variance == 0.25
        assert instance.costs[0] == 12.0**5
        assert instance.xi[0] == pytest.approx((0.8**6 - 0.8**13) / (1 - 0.8**6))
