import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.identification.likelihood.betting import bounds, log_evidence

BETS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, math.inf)
numbers = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=6)


def test_evidence_by_hand():
    # Of four values with a mean of at most 1/2 the first is expected to be 1/2. After a 1, the
    # other three add up to 1. No bet may lose more than 3/4 of the capital.
    first = [1.0 + min(bet, 0.75 / 0.5) * 0.5 for bet in BETS]
    second = [
        c * (1.0 + min(bet, 0.75 * 3) * (0.5 - 1 / 3)) for c, bet in zip(first, BETS, strict=True)
    ]
    one, two = np.array([1.0]), np.array([1.0, 0.5])
    assert log_evidence(one, 0.5, 4) == pytest.approx(math.log(sum(first) / 7))
    assert log_evidence(two, 0.5, 4) == pytest.approx(math.log(sum(second) / 7))
    # Once the others cannot bring the mean down any more it is sure.
    assert log_evidence(np.array([1.0, 1.0, 0.5]), 0.5, 4) == math.inf
    assert log_evidence(np.array([1.0, 1.0]), 0.5, 4) < math.inf
    endless = [first[k] * (1.0 + min(bet, 1.5) * 0.0) for k, bet in enumerate(BETS)]
    assert log_evidence(two, 0.5, math.inf) == pytest.approx(math.log(sum(endless) / 7))


@given(numbers)
def test_evidence_against_a_true_mean_is_rarely_large(values):
    # Over all orders of a set, exactly: no threshold is reached more often than Ville allows.
    orders = [np.array(order) for order in itertools.permutations(values)]
    for mean in (np.mean(values), min(1.0, np.mean(values) + 0.1)):
        found = np.array([log_evidence(order, float(mean), len(values)) for order in orders])
        for threshold in found:
            assert (found >= threshold).mean() <= math.exp(-threshold) * (1.0 + 1e-6)


@given(numbers, st.integers(0, 4), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_evidence_falls_with_the_mean(values, left, one, other):
    values, size = np.array(values), len(values) + left
    low, high = sorted((one, other))
    assert log_evidence(values, low, size) >= log_evidence(values, high, size) - 1e-9


@given(numbers, st.integers(0, 20))
def test_bounds_contain_the_seen_mean_and_what_is_possible_and_end_at_the_mean(values, left):
    values = np.array(values)
    size = len(values) + left
    low, high = bounds(values, size, 0.05)
    least, most = values.sum() / size, (values.sum() + left) / size
    assert least - 1e-6 <= low <= values.mean() + 1e-6
    assert values.mean() - 1e-6 <= high <= most + 1e-6
    assert left or low == high == values.mean()


@pytest.mark.parametrize("size", [50, math.inf])
def test_bounds_at_all_times(size):
    rng = np.random.default_rng(0)
    wanted, n, wrong = math.log(1.0 / 0.1), 400, 0
    for _ in range(n):
        values = (rng.random(50) < 0.2).astype(float) * rng.random(50)
        mean = 0.1 if math.isinf(size) else float(values.mean())
        wrong += log_evidence(values, mean, size) >= wanted
    assert wrong <= 0.1 * n + 3.0 * math.sqrt(0.09 * n)
