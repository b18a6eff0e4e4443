import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import dblquad, quad
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from mfhpo.knowledge.confidence import StudentMixtureRadius
from mfhpo.knowledge.studentised import (
    BOTH_SIDES,
    LOG_WEIGHTS,
    SCALES,
    credited,
    log_evidence,
    log_evidence_of_ratios,
    rounded,
    wanted_of_two,
)


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


def log_average(sigma, compared, means, others, rho):
    """Draw values of arms with given means, and of other arms, at a standard deviation."""
    logs = LOG_WEIGHTS.copy()
    for k, scale in enumerate(SCALES):
        for values, mean in zip(compared, means, strict=True):
            # Values with a mean that is itself normal are jointly normal.
            n = len(values)
            spread = scale * sigma**2 * (np.eye(n) + np.ones((n, n)) / rho)
            logs[k] += multivariate_normal(np.full(n, mean), spread).logpdf(values)
            logs[k] -= norm.logpdf(values, mean, sigma).sum()
        for values in others:
            for seen in range(1, len(values)):
                square = (values[seen] - np.mean(values[:seen])) ** 2 * seen / (seen + 1)
                logs[k] += square * (1.0 - 1.0 / scale) / (2.0 * sigma**2)
                logs[k] -= seen / (seen + 1) * math.log(scale) / 2.0
    return logsumexp(logs)


def least_log_average(compared, means, others, rho):
    """The minimum over the standard deviation."""

    def at(log_sigma):
        return log_average(math.exp(log_sigma), compared, means, others, rho)

    return minimize_scalar(at, bounds=(-4.0, 4.0), method="bounded", options={"xatol": 1e-6}).fun


def one(function, *arguments):
    [found] = function(*(np.array([argument]) for argument in arguments))
    return float(found)


@pytest.mark.parametrize(
    ("means", "spread"),
    [((0.0, 0.0), 1.0), ((1.4, -0.6), 0.1), ((-3.0, 2.0), 1.0), ((9.0, 9.0), 0.1)],
)
def test_evidence_against_given_means_by_hand(means, spread):
    rho, rng = 1.7, np.random.default_rng(3)
    compared = [1.0 + spread * rng.normal(size=4), spread * rng.normal(size=3)]
    # Two values are worth 2 - (1 + 1/2) = 1/2 degree of freedom, one is worth none.
    others = [spread * rng.normal(7.0, 1.0, n) for n in (2, 2, 1)]
    explained, left = 0.0, sum(((values - values.mean()) ** 2).sum() for values in others)
    penalty = 0.0
    for values, mean in zip(compared, means, strict=True):
        around = ((values - mean) ** 2).sum()
        part = (values - mean).sum() ** 2 / (len(values) + rho)
        explained, left = explained + part, left + around - part
        penalty += math.log(1.0 + len(values) / rho) / 2.0
    found = one(log_evidence_of_ratios, explained / left, 4.0 + 3.0 + 2 * 0.5) - penalty
    expected = least_log_average(compared, means, others, rho)
    assert found == pytest.approx(expected, abs=1e-3)
    assert found <= expected + 1e-6


@given(
    ratios=st.lists(st.floats(0.0, 1e4), min_size=2, max_size=2).map(sorted),
    degrees=st.lists(st.floats(1.0, 1e4), min_size=2, max_size=2).map(sorted),
)
def test_evidence_grows_with_the_ratio_and_with_the_degrees(ratios, degrees):
    steps = rounded(np.array(degrees))
    assert steps[0] <= steps[1]
    assert (steps <= np.array(degrees) * (1.0 + 1e-12)).all()
    less, more = log_evidence_of_ratios(np.array(ratios), steps[[0, 0]])
    assert less <= more
    fewer, many = log_evidence_of_ratios(np.array(ratios)[[0, 0]], steps)
    # f grows with the degrees of freedom, and so does the minimum.
    assert fewer <= many + 1e-6


def test_degrees_of_freedom_of_other_arms():
    assert credited(np.array([0, 1, 2, 3])) == pytest.approx([0.0, 0.0, 0.5, 7.0 / 6.0])
    # Beyond what is looked up, never more than the harmonic numbers say.
    for n in (1023, 1024, 5000):
        exact = n - math.fsum(1.0 / k for k in range(1, n + 1))
        assert exact - 1e-6 < one(credited, n) <= exact + 1e-9
