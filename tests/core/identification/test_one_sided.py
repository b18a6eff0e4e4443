import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtr

from mfhpo.identification.likelihood.one_sided import Pairs, most_gain
from mfhpo.knowledge.studentised import LOG_WEIGHTS, SCALES, rounded

PRIOR = 2.3
SLACK = 0.02  # what the minimum may be missed by, and is lowered by
ROUNDING = 1e-6

# The weights of the two averages: how soon the other arm is expected to be told apart, and of what
# is averaged over both sides.
FAR = [(0.85, PRIOR), (0.15, PRIOR / 16.0)]
BOTH_SIDES = 0.1


def least_average(gap, counts, variances, degrees, prior_of_other):
    """The minimum, over means and variances, of the average likelihood ratio's logarithm."""
    priors = np.array([PRIOR, prior_of_other])
    twice = 2.0 * np.asarray(variances)
    scales, weights = (np.ones(1), np.zeros(1)) if degrees is None else (SCALES, LOG_WEIGHTS)
    degrees = 0.0 if degrees is None else float(degrees)
    whole = float(rounded(np.array([degrees + 2.0]))[0])

    def at(point):
        split, log_precision = point
        precision = math.exp(log_precision)
        parts = gap * np.array([split, 1.0 - split])
        explained = (counts**2 / (counts + priors) * parts**2 / twice).sum()
        left = degrees / 2.0 + (counts * priors / (counts + priors) * parts**2 / twice).sum()
        # In standard deviations of the sums under each scale of the alternative.
        z = counts * parts / np.sqrt((counts + priors) * twice / 2.0)
        z = z[:, None] * np.sqrt(precision / scales)
        sides = np.log(BOTH_SIDES + (1.0 - BOTH_SIDES) * 4.0 * ndtr(z[0]) * ndtr(z[1]))
        logs = weights + sides + left * precision * (1.0 - 1.0 / scales)
        if degrees:
            logs = logs - whole / 2.0 * np.log(scales)
        return explained * precision + logsumexp(logs)

    # The best of a grid at each of several precisions; where that is low, far from both means.
    precisions = np.linspace(-8.0, 4.0, 13) if degrees else np.zeros(1)
    splits = np.concatenate((np.linspace(-0.5, 1.5, 21), [-20.0, -5.0, -2.0, 3.0, 6.0, 20.0]))
    starts = sorted((min(((x, log) for x in splits), key=at) for log in precisions), key=at)[:8]
    found = [
        minimize(
            at if degrees else lambda x: at((x[0], 0.0)),
            start if degrees else start[:1],
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-11, "maxiter": 4000},
        )
        for start in starts
    ]
    penalty = np.log1p(counts / priors).sum() / 2.0
    return min(one.fun for one in found) - penalty


def pair(gap, counts, variances, degrees):
    return Pairs(
        np.array([gap]),
        np.array(counts)[:, None],
        np.array(variances)[:, None],
        None if degrees is None else np.array([degrees]),
    )


pairs = {
    "gap": st.floats(0.05, 6.0),
    "counts": st.tuples(st.integers(1, 60), st.integers(1, 60)),
    "variances": st.tuples(st.floats(0.2, 5.0), st.floats(0.2, 5.0)),
    "degrees": st.none() | st.floats(0.5, 300.0),
}


def random_pair(seed):
    rng = np.random.default_rng(seed)
    counts, variances = rng.integers(1, 61, 2), rng.uniform(0.2, 5.0, 2)
    return rng.uniform(0.05, 6.0), tuple(counts), tuple(variances), rng.uniform(0.5, 300.0)


@pytest.mark.parametrize(
    ("gap", "counts", "variances", "degrees"),
    [
        (3.0, (3, 2), (1.0, 1.0), 5.0),
        (0.05, (1, 60), (0.2, 5.0), None),
        (4.99, (42, 39), (0.5, 1.0), 27.865),  # the minimum is far from where it is likely
        (5.0, (21, 17), (2.69, 3.87), 9.488),
        *map(random_pair, range(10)),
    ],
)
def test_the_minimum_by_brute_force(gap, counts, variances, degrees):
    found = pair(gap, counts, variances, degrees).evidence(PRIOR, -math.inf)[0]
    expected = max(
        least_average(gap, np.array(counts), variances, degrees, prior) + math.log(share)
        for share, prior in FAR
    )
    assert expected - SLACK - ROUNDING <= found <= expected + ROUNDING


@settings(deadline=None)
@given(**pairs)
def test_one_side_adds_little_and_may_take_little(gap, counts, variances, degrees):
    both = pair(gap, counts, variances, degrees)
    on_both_sides = both.evidence(PRIOR, math.inf)[0]
    on_one = both.evidence(PRIOR, -math.inf)[0]
    # 1e-3 is how finely the evidence on both sides is tabulated.
    assert on_both_sides + math.log(BOTH_SIDES) - SLACK - 1e-3 <= on_one
    assert on_one <= on_both_sides + most_gain(2) + 1e-3


def test_what_is_wanted_decides_nothing_but_how_much_is_worked_out():
    rng = np.random.default_rng(0)
    n = 300
    counts, variances = rng.integers(1, 30, (2, n)), rng.uniform(0.5, 2.0, (2, n))
    many = Pairs(rng.uniform(0.1, 4.0, n), counts, variances, rng.uniform(1.0, 60.0, n))
    exact = many.evidence(PRIOR, -math.inf)
    for wanted in (1.0, 5.0):
        found = many.evidence(PRIOR, wanted)
        assert (found >= wanted).tolist() == (exact >= wanted).tolist()
        assert (exact >= wanted).any()
        assert (exact < wanted).any()


@pytest.mark.parametrize("gap", [1e-9, 1.0, 1e9])
def test_without_noise(gap):
    # A known variance of 0 says it all. One that seems to be 0 may be small: the evidence stays
    # what two values each can say whatever their unit.
    known = pair(gap, (2, 2), (0.0, 0.0), None).evidence(PRIOR, 3.0)[0]
    seen = pair(gap, (2, 2), (0.0, 0.0), 2.0).evidence(PRIOR, 3.0)[0]
    assert known > 1e100
    assert seen == pytest.approx(pair(1.0, (2, 2), (0.0, 0.0), 2.0).evidence(PRIOR, 3.0)[0])
    assert seen < 10.0


@pytest.mark.parametrize(("gap", "counts", "degrees"), [(18.0, (2, 2), 40.0), (18.0, (1, 1), 40.0)])
def test_the_minimum_is_found_where_the_noise_is_little_known(gap, counts, degrees):
    found = pair(gap, counts, (1.0, 1.0), degrees).evidence(PRIOR, -math.inf)[0]
    expected = max(
        least_average(gap, np.array(counts), (1.0, 1.0), degrees, prior) + math.log(share)
        for share, prior in FAR
    )
    assert found <= expected + 1e-6
