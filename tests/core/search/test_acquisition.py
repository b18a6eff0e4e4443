"""Expected improvement, and the search for its top."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from mfhpo.search.acquisition import _Cube, best_place, expected_improvement

FloatArray = npt.NDArray[np.float64]


def by_integration(z: float) -> float:
    """Mean of max(z + a standard normal variable, 0)."""
    if z > 0.0:
        return z + by_integration(-z)
    # Shifted to its lower end, so that nothing cancels and nothing underflows in the integral.
    scaled, _ = quad(lambda t: t * np.exp(-0.5 * t * t + z * t), 0.0, np.inf, epsrel=1e-11)
    return float(scaled * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))


@pytest.mark.parametrize("z", [-5.5, -3.0, -1.0, -0.2, 0.0, 0.3, 1.0, 4.0, 12.0])
def test_it_is_the_integral(z: float) -> None:
    for spread in (0.01, 1.0, 7.0):
        for best in (-3.0, 0.0, 2.0):
            mean = np.array([best + z * spread])
            improvement = expected_improvement(mean, np.array([spread]), best)
            assert improvement[0] == pytest.approx(spread * by_integration(z), rel=1e-7)


@pytest.mark.parametrize("z", [-6.5, -8.0, -12.0, -20.0, -30.0, -37.0])
def test_far_below_it_is_the_integral_up_to_a_twentieth(z: float) -> None:
    improvement = expected_improvement(np.array([z]), np.array([1.0]), 0.0)
    assert improvement[0] == pytest.approx(by_integration(z), rel=0.05)


def test_it_rises_with_the_mean_from_tail_to_tail() -> None:
    means = np.linspace(-40.0, 40.0, 801)
    improvement = expected_improvement(means, np.ones(801), 0.0)
    assert np.isfinite(improvement).all()
    assert (improvement[means > -38.0] > 0.0).all()
    assert (np.diff(improvement[means > -38.0]) > 0.0).all()


@given(st.floats(-30.0, 30.0), st.floats(0.01, 10.0), st.floats(1.1, 10.0))
def test_it_rises_with_the_spread(mean: float, spread: float, factor: float) -> None:
    spreads = np.array([spread, spread * factor])
    low, high = expected_improvement(np.full(2, mean), spreads, 0.0)
    assert low <= high or (mean > 0.0 and low == pytest.approx(high))


@given(st.floats(-50.0, 50.0), st.floats(0.01, 10.0), st.floats(-50.0, 50.0))
def test_it_is_at_least_what_the_mean_gains(mean: float, spread: float, best: float) -> None:
    improvement = expected_improvement(np.array([mean]), np.array([spread]), best)[0]
    gain = mean - best
    assert max(gain, 0.0) * (1.0 - 1e-12) <= improvement <= max(gain, 0.0) + 0.4 * spread


def test_it_keeps_the_shape() -> None:
    assert expected_improvement(np.zeros((3, 4)), np.ones((3, 4)), 0.0).shape == (3, 4)


@given(st.floats(-3.0, 3.0), st.floats(0.01, 3.0), st.floats(0.01, 3.0))
def test_noise_leaves_the_share_of_the_spread_that_an_observation_takes_away(
    mean: float, spread: float, noise: float
) -> None:
    exact = expected_improvement(np.array([mean]), np.array([spread]), 0.0)[0]
    noisy = expected_improvement(np.array([mean]), np.array([spread]), 0.0, noise)[0]
    share = 1.0 - math.sqrt(noise**2 / (noise**2 + spread**2))
    assert noisy == pytest.approx(share * exact, rel=1e-9)


def test_noise_by_hand() -> None:
    improvement = expected_improvement(np.array([0.0]), np.array([3.0]), 0.0, 4.0)[0]
    assert improvement == pytest.approx(0.2 * 3.0 / math.sqrt(2.0 * math.pi))


# The search for the top.


def bump(top: FloatArray, width: float = 0.3) -> Callable[[FloatArray], FloatArray]:
    def merit(places: FloatArray) -> FloatArray:
        heights: FloatArray = np.exp(-((places - top) ** 2).sum(axis=1) / (2.0 * width**2))
        return heights

    return merit


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_top_of_a_bump(seed: int) -> None:
    rng = np.random.default_rng(seed)
    top = rng.random(3)
    good = rng.random((4, 3))
    place = best_place(bump(top), good, rng)
    assert place.shape == (3,)
    assert np.abs(place - top).max() < 0.1


def test_it_looks_around_what_is_good() -> None:
    """A peak in sixteen dimensions that random places do not meet."""
    rng = np.random.default_rng(0)
    top = rng.random(16)
    found = []
    for good in (top + 0.1, rng.random(16)):
        merit = bump(top, 0.2)
        found.append(float(merit(best_place(merit, np.clip(good, 0, 1)[None, :], rng)[None, :])[0]))
    assert found[0] > 0.1 > found[1]


def test_it_finds_a_narrow_peak_near_what_is_good() -> None:
    rng = np.random.default_rng(0)
    merit = bump(top := rng.random(8), 0.1)
    place = best_place(merit, np.clip(top + 0.1, 0, 1)[None, :], rng)
    assert merit(place[None, :])[0] > 0.1


@pytest.mark.parametrize("d", [3, 7])
def test_it_finds_a_top_in_a_corner(d: int) -> None:
    """Also where the merit at a random place is next to nothing, and so is a small step's gain."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        corner = rng.integers(2, size=d).astype(float)
        place = best_place(bump(corner, 0.2), rng.random((5, d)), rng)
        assert np.abs(place - corner).max() < 0.1
        assert (place < 1.0).all()


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_it_finds_a_top_near_an_end_by_orders_of_magnitude(end: float) -> None:
    """A thousandth of the range away from it, where a tenth of that and ten times it are bad."""

    def merit(places: FloatArray) -> FloatArray:
        away = np.abs(places[:, 0] - end) + 1e-6
        heights: FloatArray = -((np.log10(away) + 3.0) ** 2) - (places[:, 1] - 0.4) ** 2
        return heights

    for seed in range(5):
        rng = np.random.default_rng(seed)
        place = best_place(merit, rng.random((5, 2)), rng)
        assert merit(place[None, :])[0] > -0.1


def test_it_finds_the_corner_and_not_the_lower_top_within() -> None:
    """The top within is broad and known, that in the corner of six dimensions is twice as high."""
    within, corner = bump(np.full(6, 0.4), 0.5), bump(np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]), 0.4)

    def merit(places: FloatArray) -> FloatArray:
        heights: FloatArray = within(places) + 2.0 * corner(places)
        return heights

    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        place = best_place(merit, np.full((3, 6), 0.4), rng)
        found.append(float(merit(place[None, :])[0]) > 1.95)
    assert np.mean(found) >= 0.5


@pytest.mark.parametrize("choice", [0, 2, 5])
def test_of_coordinates_without_an_order_no_end_is_preferred(choice: int) -> None:
    """Six parameters with six choices each, of which one is right."""

    def merit(places: FloatArray) -> FloatArray:
        right = (places[:, :6] * 6.0).astype(int) == choice
        heights: FloatArray = right.sum(axis=1) - (places[:, 6] - 0.3) ** 2
        return heights

    ordered = np.array([False] * 6 + [True])
    best = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        place = best_place(merit, rng.random((3, 7)), rng, ordered)
        best.append(bool(merit(place[None, :])[0] > 5.9))
    assert np.mean(best) >= 0.8


def test_a_coordinate_without_an_order_stays_or_is_drawn_anywhere() -> None:
    cube = _Cube(np.array([True, False]), np.random.default_rng(0))
    moved = cube.moved(np.array([[0.1, 0.1]]), copies=4000, step=0.01, share=1.0)
    assert 0.02 < np.abs(moved[:, 0] - 0.1).max() < 0.06
    assert (moved[:, 1] == 0.1).all()
    anew = cube.partly_anew(np.full((4000, 2), 0.1), share=1.0)
    low, high = anew[:, 0], 1.0 - anew[:, 0]
    for from_end in (low, high):
        assert (from_end <= 1e-9).mean() == pytest.approx(1.0 / 6.0, abs=0.02)
        # A sixth by orders of magnitude, of which there are four: a quarter of them in each.
        for least in (1e-4, 1e-3, 1e-2):
            between = (from_end > least) & (from_end < 10.0 * least)
            expected = 1.0 / 24.0 + 9.0 * least / 3.0
            assert between.mean() == pytest.approx(expected, abs=0.015)
    assert np.quantile(anew[:, 1], [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.03)


@pytest.mark.parametrize("height", [0.0, -1.0, 1e-320])
def test_a_flat_merit_gives_some_place_of_the_cube(height: float) -> None:
    rng = np.random.default_rng(0)
    place = best_place(lambda places: np.full(len(places), height), np.ones((2, 4)), rng)
    assert place.shape == (4,)
    assert ((place >= 0.0) & (place < 1.0)).all()


def test_every_place_tried_is_in_the_cube_and_the_best_is_returned() -> None:
    seen: list[FloatArray] = []

    def merit(places: FloatArray) -> FloatArray:
        seen.append(places)
        heights: FloatArray = np.sin(20.0 * places).sum(axis=1)
        return heights

    rng = np.random.default_rng(0)
    place = best_place(merit, np.array([[0.0, 0.999], [0.5, 0.0]]), rng)
    tried = np.vstack(seen)
    assert ((tried >= 0.0) & (tried < 1.0)).all()
    heights = np.sin(20.0 * tried).sum(axis=1)
    assert np.sin(20.0 * place).sum() == heights.max()


def test_the_same_randomness_gives_the_same_place() -> None:
    good = np.array([[0.2, 0.4]])
    one, other = (
        best_place(bump(np.array([0.6, 0.6])), good, np.random.default_rng(3)) for _ in range(2)
    )
    assert np.array_equal(one, other)
