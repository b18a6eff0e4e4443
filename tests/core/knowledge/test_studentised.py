import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from mfhpo.knowledge.studentised import (
    LOG_WEIGHTS,
    SCALES,
    credited,
    log_evidence,
    rounded,
)


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


def test_the_weights_of_the_scales_add_up_to_one():
    assert logsumexp(LOG_WEIGHTS) == pytest.approx(0.0)
    assert (SCALES <= 1.0).all()


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
    found = one(log_evidence, explained / left, 4.0 + 3.0 + 2 * 0.5) - penalty
    expected = least_log_average(compared, means, others, rho)
    assert found == pytest.approx(expected, abs=1e-3)
    assert found <= expected + 1e-6


def test_without_degrees_of_freedom_nothing_is_told():
    assert one(log_evidence, 100.0, 0.0) == -math.inf


@given(
    ratios=st.lists(st.floats(0.0, 1e4), min_size=2, max_size=2).map(sorted),
    degrees=st.lists(st.floats(1.0, 1e4), min_size=2, max_size=2).map(sorted),
)
def test_evidence_grows_with_the_ratio_and_with_the_degrees(ratios, degrees):
    steps = rounded(np.array(degrees))
    assert steps[0] <= steps[1]
    assert (steps <= np.array(degrees) * (1.0 + 1e-12)).all()
    less, more = log_evidence(np.array(ratios), steps[[0, 0]])
    assert less <= more
    fewer, many = log_evidence(np.array(ratios)[[0, 0]], steps)
    # f grows with the degrees of freedom, and so does the minimum.
    assert fewer <= many + 1e-6


def test_degrees_of_freedom_of_other_arms():
    assert credited(np.array([0, 1, 2, 3])) == pytest.approx([0.0, 0.0, 0.5, 7.0 / 6.0])
    # Beyond what is looked up, never more than the harmonic numbers say.
    for n in (1023, 1024, 5000):
        exact = n - math.fsum(1.0 / k for k in range(1, n + 1))
        assert exact - 1e-6 < one(credited, n) <= exact + 1e-9
