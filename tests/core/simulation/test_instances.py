from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp, truncnorm

from mfhpo.simulation.instances import (
    BernoulliInstance,
    GaussianInstance,
    Instance,
    TruncatedNormalInstance,
    load_instance,
    synthetic_a,
    synthetic_b,
)

MEANS = [[0.2, 0.4, 0.3], [0.25, 0.5, 0.75]]
COSTS = [1.0, 10.0]

INSTANCES: dict[str, Callable[[], Instance]] = {
    "gaussian": lambda: GaussianInstance(MEANS, COSTS, variance=0.04),
    "bernoulli": lambda: BernoulliInstance(MEANS, COSTS),
    "truncated": lambda: TruncatedNormalInstance(MEANS, COSTS),
}


@pytest.fixture(params=list(INSTANCES))
def instance(request: pytest.FixtureRequest) -> Instance:
    return INSTANCES[request.param]()


class TestAnyInstance:
    def test_running_sums_go_on_from_the_sums(self, instance: Instance) -> None:
        arms, totals = np.array([2, 0]), np.array([6, 7, 1000, 5000])
        start = np.array([1e6, -1e6])
        sums = instance.running_sums(np.random.default_rng(2), arms, 1, 5, start, totals)
        assert sums.shape == (2, 4)
        drawn = (sums - start[:, None]) / (totals - 5)
        assert drawn[:, 3] == pytest.approx(instance.means[1, arms], abs=0.08)

    def test_the_sum_of_many_does_not_depend_on_the_steps(self, instance: Instance) -> None:
        """Sums of 40 drawn at once are distributed as sums of 40 drawn one by one."""
        rng = np.random.default_rng(3)
        arms = np.zeros(4000, dtype=np.int64)
        nothing = np.zeros(4000)
        steps = instance.running_sums(rng, arms, 0, 0, nothing, np.arange(1, 41))[:, -1]
        at_once = instance.running_sums(rng, arms, 0, 0, nothing, np.array([40]))[:, -1]
        assert ks_2samp(steps, at_once).pvalue > 1e-3

    def test_increments_are_independent(self, instance: Instance) -> None:
        rng = np.random.default_rng(4)
        arms = np.ones(4000, dtype=np.int64)
        sums = instance.running_sums(rng, arms, 0, 0, np.zeros(4000), np.array([1, 2, 50, 99]))
        correlations = np.corrcoef(np.diff(sums, axis=1, prepend=0.0), rowvar=False)
        assert np.abs(correlations - np.eye(4)).max() < 0.06


def test_bias_bounds_are_the_smallest_that_hold() -> None:
    instance = GaussianInstance([[0.0, 0.75], [0.5, 1.0]], costs=[1.0, 2.0])
    assert instance.xi.tolist() == [0.5, 0.0]  # biases -.5 and -.25
    assert instance.gamma.tolist() == [0.25, 0.0]


def test_truncated_normal_moments() -> None:
    instance = TruncatedNormalInstance([[0.5]], [1.0])
    exact = truncnorm(-1.6, 1.6, scale=0.05)
    arms = np.zeros(50000, dtype=np.int64)
    rng = np.random.default_rng(0)
    values = instance.running_sums(rng, arms, 0, 0, np.zeros(50000), np.array([1]))[:, 0] - 0.5
    assert np.abs(values).max() <= 0.08 + 1e-12
    assert values.std() == pytest.approx(exact.std(), rel=0.02)
    assert instance._scale == pytest.approx(exact.std())
    assert instance._excess_kurtosis == pytest.approx(exact.stats(moments="k"))
    assert instance.variance == pytest.approx(0.05**2)
    assert exact.std() <= 0.05


def test_truncated_normal_large_sums() -> None:
    """The error that the docstring states, against a convolution on a grid."""
    instance = TruncatedNormalInstance([[0.0]], [1.0])
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
    drawn = (
        instance._scale
        * math.sqrt(32)
        * (z + instance._excess_kurtosis / (24 * 32) * (z**3 - 3 * z))
    )
    normal = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in z])
    assert np.abs(np.interp(drawn, points, exact) - normal).max() < 1e-5


@pytest.mark.parametrize(
    ("recipe", "shape", "costs", "xi"),
    [
        (synthetic_a, (4, 2000), [1, 10, 100, 1000], [1.15, 0.225, 0.0105, 0]),
        (synthetic_b, (5, 1000), [16, 64, 256, 1024, 4096], [1.15, 0.45, 0.105, 0.0105, 0]),
    ],
)
def test_recipes(
    recipe: Callable[..., GaussianInstance],
    shape: tuple[int, int],
    costs: list[float],
    xi: list[float],
) -> None:
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
    assert recipe(np.random.default_rng(0), n_arms=7).n_arms == 7


class TestLoading:
    @pytest.mark.parametrize(
        ("name", "shape"),
        [
            ("synthetic_a", (4, 2000)),
            ("synthetic_b", (5, 1000)),
            ("yahtzee", (8, 13)),
            ("bai_4x5", (5, 4)),
            ("bai_5x2", (2, 5)),
            ("forever", (2, 2)),
        ],
    )
    def test_published(self, data_folder: Path, name: str, shape: tuple[int, int]) -> None:
        assert load_instance(data_folder / "iise" / f"{name}.npz").means.shape == shape

    def test_yahtzee(self, data_folder: Path) -> None:
        instance = load_instance(data_folder / "iise" / "yahtzee.npz", "truncated normal")
        assert isinstance(instance, TruncatedNormalInstance)
        assert (instance.sd, instance.cut, instance.variance) == (0.05, 0.08, 0.25)
        assert instance.costs[0] == 12.0**5
        assert instance.xi[0] == pytest.approx((0.8**6 - 0.8**13) / (1 - 0.8**6))

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(
            FileNotFoundError, match=r"no file .*a\.npz\. .*published with the pape"
        ):
            load_instance(tmp_path / "a.npz")

    def test_missing_arrays(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", means=MEANS, xi=[0.1, 0.0])
        with pytest.raises(ValueError, match=r"has no costs and no variance \(it has means, xi\)"):
            load_instance(tmp_path / "a.npz")

    @pytest.mark.filterwarnings("ignore::ResourceWarning")  # NumPy leaves the file open
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_not_an_archive(self, tmp_path: Path) -> None:
        (tmp_path / "a.npz").write_text("means")
        (tmp_path / "b.npz").touch()
        (tmp_path / "c.npz").write_bytes(b"PK\x03\x04 cut short")
        np.save(tmp_path / "d.npy", np.zeros(3))
        for name in ("a.npz", "b.npz", "c.npz", "d.npy"):
            with pytest.raises(ValueError, match=r"is not a NumPy \.npz archive"):
                load_instance(tmp_path / name)


class TestErrors:
    @pytest.mark.parametrize("means", [[1.0, 2.0], [[]], [[1.0, math.nan]]])
    def test_means(self, means: list[float]) -> None:
        with pytest.raises(ValueError, match="means must be finite"):
            GaussianInstance(means, [1.0])

    def test_per_fidelity(self) -> None:
        with pytest.raises(ValueError, match="costs must have one value per fidelity, 2"):
            GaussianInstance(MEANS, [1.0])
        with pytest.raises(ValueError, match="xi must have"):
            GaussianInstance(MEANS, COSTS, xi=[0.0])
        with pytest.raises(ValueError, match="gamma must have"):
            GaussianInstance(MEANS, COSTS, gamma=[0.0])

    def test_costs(self) -> None:
        with pytest.raises(ValueError, match="costs must increase"):
            GaussianInstance(MEANS, [2.0, 1.0])
        with pytest.raises(ValueError, match="costs must be positive"):
            GaussianInstance(MEANS, [0.0, 1.0])

    def test_kinds_of_their_own(self) -> None:
        with pytest.raises(ValueError, match="probabilities"):
            BernoulliInstance([[0.5, 1.5]], [1.0])
        with pytest.raises(ValueError, match="sd and cut must be positive"):
            TruncatedNormalInstance([[0.5]], [1.0], sd=0.0)
        with pytest.raises(ValueError, match="n_arms must be at least 1"):
            synthetic_a(np.random.default_rng(0), n_arms=0)
