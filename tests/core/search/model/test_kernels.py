import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.search.model.kernels import warp

logs = st.floats(-3.0, 3.0)
places = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=20)


def test_by_hand():
    at = np.array([[0.25, 0.5], [0.81, 0.9]])
    found = warp(at, np.log([0.5, 1.0, 1.0, 2.0]))[0]
    assert found == pytest.approx(np.array([[0.5, 0.75], [0.9, 0.99]]))


def test_without_warping_places_stay():
    at = np.linspace(0.0, 1.0, 11)[:, None]
    assert warp(at, np.zeros(2))[0] == pytest.approx(at, abs=2e-6)


@given(places, logs, logs)
def test_it_keeps_the_order_and_the_range(at, a, b):
    found = warp(np.sort(at)[:, None], np.array([a, b]))[0][:, 0]
    assert (np.diff(found) >= -1e-12).all()
    assert (found >= 0.0).all()
    assert (found <= 1.0).all()


@given(st.floats(0.0, 10.0), logs, logs)
def test_what_is_outside_stays_as_far_outside(away, a, b):
    at = np.array([[0.0], [1.0], [-away], [1.0 + away]])
    low, high, below, above = warp(at, np.array([a, b]))[0][:, 0]
    assert below == pytest.approx(low - away)
    assert above == pytest.approx(high + away)
