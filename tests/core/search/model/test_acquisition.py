import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from mfhpo.search.model.acquisition import best_place, expected_improvement


def by_integration(z):
    """Mean of max(z + a standard normal variable, 0)."""
    if z > 0.0:
        return z + by_integration(-z)
    # Shifted to its lower end, so that nothing cancels and nothing underflows in the integral.
    scaled, _ = quad(lambda t: t * np.exp(-0.5 * t * t + z * t), 0.0, np.inf, epsrel=1e-11)
    return float(scaled * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))


@pytest.mark.parametrize("spread", [0.01, 7.0])
def test_it_is_the_integral(spread):
    for z in (-37.0, -20.0, -8.0, -6.5, -5.5, -3.0, -1.0, -0.2, 0.0, 0.3, 4.0, 12.0):
        improvement = expected_improvement(np.array([2.0 + z * spread]), np.array([spread]), 2.0)
        close = 0.05 if z < -6.0 else 1e-7
        assert improvement[0] == pytest.approx(spread * by_integration(z), rel=close)


@given(st.floats(-3.0, 3.0), st.floats(0.01, 3.0), st.floats(0.01, 3.0))
def test_noise_leaves_the_share_of_the_spread_that_an_observation_takes_away(mean, spread, noise):
    exact = expected_improvement(np.array([mean]), np.array([spread]), 0.0)[0]
    noisy = expected_improvement(np.array([mean]), np.array([spread]), 0.0, noise)[0]
    share = 1.0 - math.sqrt(noise**2 / (noise**2 + spread**2))
    assert noisy == pytest.approx(share * exact, rel=1e-9)


def bump(top, width=0.3):
    def merit(places):
        return np.exp(-((places - top) ** 2).sum(axis=1) / (2.0 * width**2))

    return merit


def test_it_finds_a_top_in_a_corner():
    """Also where the merit at a random place is next to nothing, and so is a small step's gain."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        corner = rng.integers(2, size=7).astype(float)
        place, _ = best_place(bump(corner, 0.2), rng.random((5, 7)), rng, np.ones(7, dtype=bool))
        assert np.abs(place - corner).max() < 0.1
        assert (place < 1.0).all()


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_it_finds_a_top_near_an_end_by_orders_of_magnitude(end):
    """A thousandth of the range away from it, where a tenth of that and ten times it are bad."""

    def merit(places):
        away = np.abs(places[:, 0] - end) + 1e-6
        return -((np.log10(away) + 3.0) ** 2) - (places[:, 1] - 0.4) ** 2

    for seed in range(5):
        rng = np.random.default_rng(seed)
        place, _ = best_place(merit, rng.random((5, 2)), rng, np.ones(2, dtype=bool))
        assert merit(place[None, :])[0] > -0.1


def test_every_place_tried_is_in_the_cube_and_the_best_is_returned():
    seen = []

    def merit(places):
        seen.append(places)
        return np.sin(20.0 * places).sum(axis=1)

    rng = np.random.default_rng(0)
    place, _ = best_place(merit, np.array([[0.0, 0.999], [0.5, 0.0]]), rng, np.ones(2, dtype=bool))
    tried = np.vstack(seen)
    assert ((tried >= 0.0) & (tried < 1.0)).all()
    heights = np.sin(20.0 * tried).sum(axis=1)
    assert np.sin(20.0 * place).sum() == heights.max()
