import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.knowledge.statistics import PullStatistics

values_lists = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(values_lists, st.floats(-10.0, 10.0))
def test_against_numpy(values, guess):
    statistics = PullStatistics(1, 1, guess)
    growths = [statistics.add(0, 0, value) for value in values]
    scale = max(1.0, max(abs(value) for value in values) ** 2)
    squares = float(((np.array(values) - np.mean(values)) ** 2).sum())
    earlier = [guess] + [float(np.mean(values[:n])) for n in range(1, len(values))]
    errors = sum((value - mean) ** 2 for value, mean in zip(values, earlier, strict=True))
    assert statistics.counts[0, 0] == len(values)
    assert statistics.sums[0, 0] == pytest.approx(sum(values), abs=1e-9 * scale)
    assert statistics.squares[0, 0] == pytest.approx(squares, abs=1e-9 * scale)
    assert statistics.prediction_errors[0, 0] == pytest.approx(errors, abs=1e-9 * scale)
    assert sum(growths) == pytest.approx(squares, abs=1e-9 * scale)
    assert min(growths) >= 0.0


def test_a_small_spread_around_a_large_mean_is_kept():
    # A sum of squares minus a squared sum would lose all of it.
    statistics = PullStatistics(1, 1)
    for value in (1e9 + 1.0, 1e9 - 1.0, 1e9 + 1.0, 1e9 - 1.0):
        statistics.add(0, 0, value)
    assert statistics.squares[0, 0] == pytest.approx(4.0, rel=1e-6)


@given(st.floats(-1e6, 1e6), st.integers(2, 60))
def test_equal_values_have_no_spread(value, count):
    # The mean of several 0.3 is not 0.3.
    statistics = PullStatistics(1, 1)
    assert [statistics.add(0, 0, value) for _ in range(count)] == [0.0] * count
    assert statistics.squares[0, 0] == statistics.cubes[0, 0] == 0.0
