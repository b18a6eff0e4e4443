import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad

from mfhpo.knowledge.confidence import StudentMixtureRadius
from mfhpo.knowledge.student import BOTH_SIDES, log_evidence, wanted_of_two


def by_integrals(values, null, prior):
    """The average likelihood ratio over effects of both signs, and of positive ones, twice."""
    squares = [(value - null) ** 2 for value in values]
    n = len(values)

    def of_null(sigma):
        return math.exp(-sum(squares) / (2.0 * sigma**2)) / sigma ** (n + 1)

    def of_effect(effect, sigma):
        moved = sum((value - null - effect * sigma) ** 2 for value in values)
        density = math.sqrt(prior / (2.0 * math.pi)) * math.exp(-prior * effect**2 / 2.0)
        return math.exp(-moved / (2.0 * sigma**2)) / sigma ** (n + 1) * density

    below = quad(of_null, 0.0, 60.0)[0]
    left = dblquad(of_effect, 0.01, 60.0, -20.0, 0.0, epsabs=0.0, epsrel=1e-4)[0]
    right = dblquad(of_effect, 0.01, 60.0, 0.0, 20.0, epsabs=0.0, epsrel=1e-4)[0]
    return (left + right) / below, 2.0 * right / below


@pytest.mark.parametrize(("values", "null"), [([1.0, 2.0, 4.0], 0.0), ([1.0, 1.5, 0.2, 2.0], 1.6)])
def test_it_is_the_average_of_likelihood_ratios(values, null):
    both, one = by_integrals(values, null, prior=0.5)
    squares = np.square(np.array(values) - np.mean(values)).sum()
    found = log_evidence(np.array([np.mean(values) - null]), len(values), squares, 0.5)
    expected = BOTH_SIDES * both + (1.0 - BOTH_SIDES) * one
    assert math.exp(found[0]) == pytest.approx(expected, rel=1e-3)


def test_one_value_says_nothing_and_the_radius_of_both_signs_agrees():
    assert log_evidence(np.array([5.0, -3.0]), np.ones(2), np.zeros(2), 0.1).tolist() == [0.0, 0.0]
    # The other sign can hardly be meant there, so that one sign gives nearly twice as much.
    [radius] = StudentMixtureRadius(0.1)(np.array([12]), 0.01, squares=np.array([11.0]))
    [found] = log_evidence(np.array([radius]), np.array([12.0]), np.array([11.0]), 0.1)
    assert found == pytest.approx(
        math.log(100.0 * (BOTH_SIDES + 2.0 * (1.0 - BOTH_SIDES))), abs=0.01
    )


@given(
    distances=st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 100.0)),
    count=st.integers(2, 200),
    scale=st.floats(1e-6, 1e6),
)
def test_it_grows_with_the_distance_and_has_no_unit(distances, count, scale):
    near, far = sorted(distances)
    squares = np.full(2, count - 1.0)
    found = log_evidence(np.array([near, far]), np.full(2, float(count)), squares, 0.1)
    assert found[0] <= found[1] + 1e-9
    scaled = log_evidence(
        scale * np.array([near, far]), np.full(2, float(count)), scale**2 * squares, 0.1
    )
    assert scaled == pytest.approx(found, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("level", [0.1, 0.01, 1e-5])
def test_the_sum_of_two_exponential_variables(level):
    y = wanted_of_two(level)
    assert (1.0 + y) * math.exp(-y) == pytest.approx(level)
