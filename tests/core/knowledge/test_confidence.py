import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from mfhpo.knowledge.confidence import (
    EmpiricalBernsteinRadius,
    HoeffdingRadius,
    MixtureRadius,
    StudentMixtureRadius,
    default_radius,
    pulls_until,
)
from mfhpo.knowledge.noise import Bounded, EstimatedNoise, Gaussian, SubGaussian

RADII = (
    HoeffdingRadius(2.0),
    MixtureRadius(2.0),
    EmpiricalBernsteinRadius(-1.0, 3.0),
    StudentMixtureRadius(prior=0.01),
    default_radius(Bounded(-1.0, 3.0), 0, 1),
)
every_radius = pytest.mark.parametrize("radius", RADII, ids=repr)

levels = st.floats(1e-12, 0.99)
counts = st.integers(1, 10**9)


def at(radius, count, level=0.05, squares=0.0, errors=0.0):
    return float(radius(np.array(count), level, np.array(squares), np.array(errors)))


@pytest.mark.parametrize(
    ("radius", "seen", "expected"),
    [
        # 4 * 100^2 / 0.05 = 800000, its logarithm 13.59237; 2 * 13.59237 / 100 = 0.2718474, with
        # root 0.5213899; times sigma = 2.
        (HoeffdingRadius(2.0), (100,), 1.0427796),
        # x - ln(1 + x) = 2 ln(20) = 5.991465 has the root x = 8.211968 (ln(9.211968) = 2.220503),
        # so rho = 16 / 8.211968 = 1.948376. At n = 16: (n + rho) = 17.948376, ln(17.948376 /
        # 1.948376) = 2.220503, 17.948376 * 8.211968 = 147.3915, its root 12.14049, over 16.
        (MixtureRadius(1.0), (16,), 0.7587806),
        # At n = 1: 2.948376 (ln(2.948376 / 1.948376) + 5.991465) = 18.886481, with root 4.345858.
        (MixtureRadius(3.0), (1,), 3.0 * 4.345858),
        # In units of the range, V = 8 is 4 doublings above the start of 1/2: l = 1.4 ln 5 +
        # 4.822069 = 7.075282; 1.4355 sqrt(8 * 7.075282) + 7.075282 = 17.875191, over 1000 pulls.
        (EmpiricalBernsteinRadius(0.0, 1.0), (1000, 0.05, 0.0, 8.0), 0.017875191),
        (EmpiricalBernsteinRadius(5.0, 7.0), (1000, 0.05, 0.0, 32.0), 0.035750382),
        # Without any variance: 1.4355 sqrt(0.5 * 4.822069) + 4.822069 = 7.051043.
        (EmpiricalBernsteinRadius(0.0, 1.0), (100,), 0.07051043),
        # T = (101 / 0.05^2)^(1/100) = 40400^0.01 = 1.1118951, n + c - T c = 99.888105;
        # 0.1118951 * 101 * 99 / (100 * 99.888105) = 0.1120092, with root 0.3346778.
        (StudentMixtureRadius(1.0), (100, 0.05, 99.0), 0.3346778),
        # c = 0.1, level 0.01: T = (20.1 / (0.1 * 0.0001))^(1/20) = 2010000^0.05 = 2.0661403;
        # 1.0661403 * 20.1 * 19 / (20 * (20.1 - 0.20661403)) = 1.0233526, with root 1.0116089.
        (StudentMixtureRadius(0.1), (20, 0.01, 19.0), 1.0116089),
    ],
)
def test_by_hand(radius, seen, expected):
    assert at(radius, *seen) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("prior", "level", "first"), [(1.0, 1e-3, 8), (1.0, 1e-7, 14), (0.1, 1e-3, 5), (0.1, 1e-7, 9)]
)
def test_student_is_infinite_for_too_few_pulls(prior, level, first):
    radius = StudentMixtureRadius(prior)
    assert at(radius, first - 1, level, squares=1.0) == math.inf
    assert math.isfinite(at(radius, first, level, squares=1.0))


def test_for_bounded_values_the_smaller_radius_counts_at_half_the_level():
    bernstein, mixture = EmpiricalBernsteinRadius(0.0, 1.0), MixtureRadius(0.5)
    both = default_radius(Bounded(0.0, 1.0), 0, 1)
    few, many = at(both, 2, 0.1, errors=0.3), at(both, 10**5, 0.1, errors=100.0)
    assert few == at(mixture, 2, 0.05)
    assert many == at(bernstein, 10**5, 0.05, errors=100.0)
    assert few < at(bernstein, 2, 0.05, errors=0.3)
    assert many < at(mixture, 10**5, 0.05)


@pytest.mark.parametrize("level", [1e-12, 0.05, 0.5])
def test_no_other_rho_is_better_where_the_mixture_is_tuned(level):
    rho = 16.0 * np.geomspace(1e-4, 1e4, 100_001)
    total = 16.0 + rho
    best = float((total * (np.log(total / rho) - 2.0 * math.log(level)) / 16.0**2).min())
    tuned = at(MixtureRadius(1.0), 16, level) ** 2
    assert best * (1.0 - 1e-6) <= tuned <= best * (1.0 + 1e-12)


@pytest.mark.parametrize("level", [1e-7, 0.05])
def test_stitched_boundary_is_above_the_lines_it_is_made_of(level):
    # Epoch k = V in [2^k, 2^(k+1)) / 2, for values in [0, 1]; the one-sided error probability of
    # its line is (level / 2) / (zeta(1.4) (k + 1)^1.4), and these sum to level / 2.
    for k in range(40):
        r = math.log(3.105547277977567 * (k + 1) ** 1.4 / (level / 2.0))
        middle = 0.5 * 2.0 ** (k + 0.5)
        slope = math.sqrt(2.0 * r / middle)
        a = slope / (1.0 + slope)
        v = 0.5 * 2.0 ** (k + np.linspace(0.0, 1.0, 101))
        line = r / a + v * a / (2.0 * (1.0 - a))
        radius = EmpiricalBernsteinRadius(0.0, 1.0)
        boundary = radius(np.ones(101), level, prediction_errors=v)
        assert np.all(boundary >= line * (1.0 - 1e-12))
        logs = 1.4 * np.log1p(np.log2(2.0 * v)) + math.log(3.105547277977567 / (level / 2.0))
        k1, k2 = (2.0**0.25 + 2.0**-0.25) / math.sqrt(2.0), (math.sqrt(2.0) + 1.0) / 2.0
        printed = np.sqrt(k1**2 * v * logs + (k2 * logs) ** 2) + k2 * logs
        assert np.all(boundary <= printed)


@pytest.mark.parametrize("prior", [0.1, 1.0, 5.0])
def test_student_martingale_is_one_over_level_on_the_boundary(prior):
    level, count = 0.03, 40
    values = np.random.default_rng(3).normal(7.0, 4.0, count)
    squares = float(((values - values.mean()) ** 2).sum())
    for sign in (-1.0, 1.0):
        mean = values.mean() + sign * at(StudentMixtureRadius(prior), count, level, squares)
        s, v = (values - mean).sum(), ((values - mean) ** 2).sum()
        ratio = (count + prior) * v / ((count + prior) * v - s**2)
        martingale = math.sqrt(prior / (count + prior)) * ratio ** (count / 2)
        assert martingale == pytest.approx(1.0 / level, rel=1e-9)


@every_radius
@given(count=counts, level=levels, share=st.floats(1e-6, 1.0), variance=st.floats(0.0, 1e6))
@settings(max_examples=40, deadline=None)
def test_a_radius_falls_with_the_pulls_and_with_the_level(radius, count, level, share, variance):
    width = at(radius, count, level, count * variance, count * variance)
    assert width >= 0.0  # and not NaN
    later = at(radius, count + 1, level, (count + 1) * variance, (count + 1) * variance)
    assert later <= width * (1.0 + 1e-9)
    surer = at(radius, count, level * share, count * variance, count * variance)
    assert surer >= width * (1.0 - 1e-9)


@every_radius
@pytest.mark.filterwarnings("error")
def test_what_was_not_seen_is_infinite_and_extremes_are_no_trouble(radius):
    unseen = np.array([[0, 0], [0, 5]])
    widths = radius(unseen, 0.3, np.zeros((2, 2)), np.zeros((2, 2)))
    assert np.isinf(widths).tolist() == [[True, True], [True, False]]
    n = np.array([[20.0], [1e6], [1e15]])
    spread = np.array([0.0, -1e-17, 1e308, np.inf, np.nan])
    for level in (1e-300, 1e-160, 1e-15, 0.5, 1.0 - 1e-16):
        widths = radius(n, level, spread, spread)
        assert np.all(widths >= 0.0)
    assert np.all(np.isfinite(widths[:, :2]))
    assert widths.shape == (
        (3, 5) if radius.needs_squares or radius.needs_prediction_errors else (3, 1)
    )
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        at(radius, 10, math.nan)


def test_no_variance_and_no_sigma_are_zero():
    assert at(StudentMixtureRadius(), 20, squares=0.0) == 0.0
    assert at(MixtureRadius(0.0), 20) == 0.0


def test_default_radius_follows_the_declaration():
    assert default_radius(SubGaussian(0.3), 0, 3) == MixtureRadius(0.3)
    assert default_radius(SubGaussian((0.5, 0.1)), 1, 2) == MixtureRadius(0.1)
    for unknown in (Gaussian(), EstimatedNoise()):
        assert default_radius(unknown, 0, 1) == StudentMixtureRadius()


@every_radius
@pytest.mark.parametrize("width", [100.0, 0.3, 1e-5])
def test_pulls_until_is_the_first(radius, width):
    level, variance = 1e-3, 0.25
    pulls = pulls_until(radius, level, width, variance)
    assert pulls == int(pulls) >= 1
    assert at(radius, pulls, level, pulls * variance, pulls * variance) <= width
    if pulls > 1:
        fewer = pulls - 1
        assert at(radius, fewer, level, fewer * variance, fewer * variance) > width


def test_pulls_until_by_hand():
    # sqrt(2 ln(4 n^2 / 0.05) / n) is 0.50060 at n = 110 and 0.49867 at n = 111.
    assert pulls_until(HoeffdingRadius(1.0), 0.05, 0.5) == 111.0


def test_pulls_until_may_never_come():
    for width in (0.0, -1.0, math.nan, 1e-9):
        assert pulls_until(MixtureRadius(1.0), 0.05, width) == math.inf
    assert pulls_until(MixtureRadius(1.0), 0.05, 1e-6) < math.inf
    assert pulls_until(MixtureRadius(1.0), 0.05, math.inf) == 1.0
    assert pulls_until(MixtureRadius(0.0), 0.05, 1e-9) == 1.0
    with pytest.raises(ValueError, match="StudentMixtureRadius needs squares, got None"):
        pulls_until(StudentMixtureRadius(), 0.05, 0.1)


N_PATHS, N_STEPS, LEVEL = 1000, 1000, 0.1
ALLOWED = float(binom.ppf(1.0 - 1e-6, N_PATHS, LEVEL))


@dataclass(frozen=True)
class Paths:
    """What N_PATHS races of one arm have seen: shape (N_PATHS, N_STEPS), and the true means."""

    values: np.ndarray
    means: np.ndarray | float
    guess: float = 0.0

    def missed(self, radius, shrink=1.0):
        n = np.arange(1, N_STEPS + 1)
        running = self.values.cumsum(axis=1) / n
        earlier = np.hstack([np.full((N_PATHS, 1), self.guess), running[:, :-1]])
        errors = (self.values - earlier) ** 2
        squares = (errors * (n - 1) / n).cumsum(axis=1)
        widths = radius(n[None, :], LEVEL, squares, errors.cumsum(axis=1))
        # A value that never varies has an error of nothing but rounding.
        off = np.abs(running - self.means) > shrink * widths + 1e-12
        return int(off.any(axis=1).sum())


@pytest.fixture(scope="module")
def gaussian():
    values = 5.0 + 2.0 * np.random.default_rng(11).standard_normal((N_PATHS, N_STEPS))
    return Paths(values, 5.0)


@pytest.fixture(scope="module")
def of_many_scales(gaussian):
    rng = np.random.default_rng(13)
    sigmas = 10.0 ** rng.uniform(-2.0, 2.0, (N_PATHS, 1))
    means = rng.normal(0.0, 10.0, (N_PATHS, 1))
    return Paths(means + sigmas * (gaussian.values - 5.0) / 2.0, means)


@pytest.mark.parametrize("radius", [HoeffdingRadius(2.0), MixtureRadius(2.0)], ids=repr)
def test_sub_gaussian_radii_cover_gaussian_means(radius, gaussian):
    assert gaussian.missed(radius) <= ALLOWED


def test_student_covers_whatever_the_variance(of_many_scales):
    for prior in (0.1, 1.0):
        assert of_many_scales.missed(StudentMixtureRadius(prior)) <= ALLOWED


@pytest.mark.parametrize("probability", [0.5, 0.1, 0.002])
def test_bounded_radii_cover_bernoulli_means(probability):
    rng = np.random.default_rng(15)
    values = (rng.random((N_PATHS, N_STEPS)) < probability).astype(np.float64)
    paths = Paths(values, probability, guess=0.5)
    bernstein = EmpiricalBernsteinRadius(0.0, 1.0)
    assert paths.missed(bernstein) <= ALLOWED
    assert paths.missed(default_radius(Bounded(0.0, 1.0), 0, 1)) <= ALLOWED
    # The boundary is built for the worst case and is not sharp: only half of it fails.
    assert probability != 0.1 or paths.missed(bernstein, shrink=0.5) > ALLOWED
