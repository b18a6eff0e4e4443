import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import ndtr

from mfhpo.identification.likelihood.one_sided import MOST_GAIN, evidence

PRIOR = 2.3
SLACK = 0.02  # what the minimum may be missed by, and is lowered by
ROUNDING = 1e-6

# The weights of the two averages: how soon the other arm is expected to be told apart, and of what
# is averaged over both sides.
FAR = [(0.85, PRIOR), (0.15, PRIOR / 16.0)]
BOTH_SIDES = 0.1


def least_average(gap, counts, variances, prior_of_other):
    """The minimum, over means, of the average likelihood ratio's logarithm."""
    priors, twice = np.array([PRIOR, prior_of_other]), 2.0 * np.asarray(variances)

    def at(point):
        parts = gap * np.array([point[0], 1.0 - point[0]])
        explained = (counts**2 / (counts + priors) * parts**2 / twice).sum()
        # In standard deviations of the sums under the alternative.
        z = counts * parts / np.sqrt((counts + priors) * twice / 2.0)
        return explained + np.log(BOTH_SIDES + (1.0 - BOTH_SIDES) * 4.0 * ndtr(z[0]) * ndtr(z[1]))

    splits = np.concatenate((np.linspace(-0.5, 1.5, 21), [-20.0, -5.0, -2.0, 3.0, 6.0, 20.0]))
    starts = sorted(splits, key=lambda split: at((split,)))[:8]
    options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 4000}
    found = [minimize(at, [x], method="Nelder-Mead", options=options).fun for x in starts]
    return min(found) - np.log1p(counts / priors).sum() / 2.0


def evidence_of(gap, counts, variances, wanted):
    columns = np.array([gap]), np.array(counts)[:, None], np.array(variances)[:, None]
    return evidence(*columns, PRIOR, wanted)[0]


pairs = {
    "gap": st.floats(0.05, 6.0),
    "counts": st.tuples(st.integers(1, 60), st.integers(1, 60)),
    "variances": st.tuples(st.floats(0.2, 5.0), st.floats(0.2, 5.0)),
}


@settings(deadline=None, max_examples=25)
@given(**pairs)
def test_the_minimum_by_brute_force(gap, counts, variances):
    found = evidence_of(gap, counts, variances, -math.inf)
    expected = max(
        least_average(gap, np.array(counts), variances, prior) + math.log(share)
        for share, prior in FAR
    )
    assert expected - SLACK - ROUNDING <= found <= expected + ROUNDING


@settings(deadline=None)
@given(**pairs)
def test_one_side_adds_little_and_may_take_little(gap, counts, variances):
    on_both_sides = evidence_of(gap, counts, variances, math.inf)
    on_one = evidence_of(gap, counts, variances, -math.inf)
    assert on_both_sides + math.log(BOTH_SIDES) - SLACK <= on_one + ROUNDING
    assert on_one <= on_both_sides + MOST_GAIN + ROUNDING


def test_what_is_wanted_decides_nothing_but_how_much_is_worked_out():
    rng = np.random.default_rng(0)
    n = 300
    counts, variances = rng.integers(1, 30, (2, n)), rng.uniform(0.5, 2.0, (2, n))
    many = rng.uniform(0.1, 4.0, n), counts, variances
    exact = evidence(*many, PRIOR, -math.inf)
    for wanted in (1.0, 5.0):
        found = evidence(*many, PRIOR, wanted)
        assert (found >= wanted).tolist() == (exact >= wanted).tolist()
        assert (exact >= wanted).any()
        assert (exact < wanted).any()


@pytest.mark.parametrize("gap", [1e-9, 1.0, 1e9])
def test_a_variance_of_0_says_it_all(gap):
    assert evidence_of(gap, (2, 2), (0.0, 0.0), 3.0) > 1e100
