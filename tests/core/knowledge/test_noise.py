import math

import numpy as np
import pytest
from scipy.stats import binom

from mfhpo.knowledge.noise import Bounded, PooledVariance, SubGaussian, declared_sigmas


def test_one_scale_for_each_fidelity():
    noise = SubGaussian([0.5, 0.1])
    assert (noise.at(0, 2), noise.at(1, 2)) == (0.5, 0.1)
    assert noise == SubGaussian((0.5, 0.1))
    assert hash(noise) == hash(SubGaussian((0.5, 0.1)))
    assert declared_sigmas(SubGaussian(2), 3) == [2.0, 2.0, 2.0]
    assert declared_sigmas(Bounded(0.0, 1.0), 2) == [0.5, 0.5]


def test_wrong_number_of_scales_is_named():
    with pytest.raises(ValueError, match=r"2 values \[0.5, 0.1\] but there are 3 fidelities"):
        SubGaussian((0.5, 0.1)).at(0, 3)


@pytest.mark.parametrize("sigma", [-1.0, math.nan, (0.5, -0.1)])
def test_a_scale_must_be_finite_and_nonnegative(sigma):
    with pytest.raises(ValueError, match="sigma must be a finite number of at least 0"):
        SubGaussian(sigma)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (math.nan, 1.0), (0.0, math.inf)])
def test_bounds_must_be_ordered_and_finite(low, high):
    with pytest.raises(ValueError, match="low must be below high and both finite"):
        Bounded(low, high)


def test_bound_from_tables():
    # The first renewal, at 4 degrees, may fail with 0.05 / 2 = 0.025: the tables' lower 2.5 %
    # point is 0.4844. The second, at 8 degrees, with 0.05 / 6 = 1 / 120: for even degrees the
    # distribution is a sum, 1 - exp(-y) (1 + y + y^2 / 2 + y^3 / 6) at 2 y = 1.5600.
    pooled = PooledVariance(0.05)
    pooled.add(3.0, 4)
    assert pooled.bound == pytest.approx(3.0 / 0.4844, rel=1e-3)
    pooled.add(100.0, 3)
    assert pooled.bound == pytest.approx(3.0 / 0.4844, rel=1e-3)  # not renewed at 7 degrees
    pooled.add(1.0, 1)
    assert pooled.bound == pytest.approx(104.0 / 1.5600, rel=1e-3)


def test_degrees_that_jump_spend_every_renewal_passed():
    # 20 degrees pass 4, 8 and 16: the third renewal may fail with 0.12 / (3 * 4) = 0.01, and the
    # tables' lower 1 % point for 20 degrees is 8.260.
    pooled = PooledVariance(0.12)
    pooled.add(16.52, 20)
    assert pooled.renewals == 3
    assert pooled.bound == pytest.approx(2.0, rel=1e-3)


def test_no_variance_gives_a_bound_of_zero():
    pooled = PooledVariance(0.05)
    pooled.add(-1e-18, 4)  # rounding
    assert pooled.bound == 0.0


def lowest_bound(blocks, degrees, level):
    pooled, lowest = PooledVariance(level), math.inf
    for squares in blocks:
        pooled.add(squares, degrees)
        lowest = min(lowest, pooled.bound)
    return lowest


def test_all_bounds_hold_together():
    rng, level, n_paths = np.random.default_rng(20240501), 0.1, 1000
    n_arms, n_rounds, variance = 8, 33, 2.5
    means = rng.normal(0.0, 10.0, (n_paths, n_arms, 1))
    values = means + rng.normal(0.0, math.sqrt(variance), (n_paths, n_arms, n_rounds))
    counts = np.arange(1, n_rounds)
    earlier = values.cumsum(axis=2)[:, :, :-1] / counts
    growth = (values[:, :, 1:] - earlier) ** 2 * counts / (counts + 1)
    blocks = growth.transpose(0, 2, 1).reshape(n_paths, -1, 4).sum(axis=2)
    lowest = np.array([lowest_bound(path, 4, level) for path in blocks.tolist()])
    allowed = binom.ppf(1.0 - 1e-6, n_paths, level)
    assert (lowest < variance).sum() <= allowed
    assert (0.8 * lowest < variance).sum() > allowed  # so that the test could tell


def chosen_squares(values, prediction):
    """What an adversarial rule adds: squared errors of prediction, or around the mean.

    It pulls an arm, of mean 0, once more only where the next square is likely to be small.
    """
    squares, count, mean = [], 0, 0.0
    for value in values:
        if count:
            squares.append((value - mean) ** 2 * (1.0 if prediction else count / (count + 1)))
        mean = (count * mean + value) / (count + 1)
        count += 1
        if abs(mean) > 0.5 or (not prediction and count == 2):
            count, mean = 0, 0.0
    return squares


def test_prediction_errors_hold_for_any_rule():
    level, n_paths = 0.1, 1000
    paths = np.random.default_rng(7).standard_normal((n_paths, 100)).tolist()
    allowed = binom.ppf(1.0 - 1e-6, n_paths, level)
    missed = {
        prediction: sum(lowest_bound(chosen_squares(v, prediction), 1, level) < 1.0 for v in paths)
        for prediction in (True, False)
    }
    assert missed[True] <= allowed
    # What the rule does to squares around the mean is what prediction errors are for.
    assert missed[False] > allowed
