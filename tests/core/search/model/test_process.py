import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.search.model.kernels import FINER, warp
from mfhpo.search.model.process import LevelData, LevelProcess, _factor


def some_data(n, d, n_levels, rng, n_arms=None):
    n_arms = n_arms or max(1, 2 * n // 3)
    places = rng.random((n_arms, d))
    arms = rng.integers(n_arms, size=n)
    return LevelData(places[arms], rng.integers(n_levels, size=n), rng.normal(size=n))


def some_parameters(process, rng):
    """Near the first guess, but with noise enough that rounding does not show."""
    parameters = process._parameters + 0.3 * rng.normal(size=process._parameters.size)
    parameters[process._noise_at] += 2.0
    return parameters


def covariances(process, data, parameters):
    features = data.features.copy()
    numbers = process._numbers
    features[:, numbers] = warp(features[:, numbers], parameters[process._exponents_at])[0]
    scales, smooth, rough, *_ = process._unpacked(parameters)
    between, alone = smooth @ smooth.T, rough @ rough.T
    own = np.exp(parameters[process._own_at])
    target = process.n_levels - 1
    n = len(data.values)
    matrix = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            r = math.dist(features[i] / scales, features[j] / scales)
            matern = five_halves(r)
            finer = FINER * math.sqrt(5) * r
            rough_matern = (1 + finer) * math.exp(-finer)
            levels = data.levels[i], data.levels[j]
            matrix[i, j] = between[levels] * matern + alone[levels] * rough_matern
            if process.n_levels > 1 and levels == (target, target):
                r = math.dist(features[i] / own[:-1], features[j] / own[:-1])
                matrix[i, j] += own[-1] ** 2 * five_halves(r)
    return matrix


def conditioned(data, d, n_levels, numbers=None, **options):
    process = LevelProcess(d, n_levels, numbers)
    process.fit(data, **options)
    process.condition(data)
    return process


def five_halves(r):
    return (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)


def posterior(process, data, asked):
    every = LevelData(
        np.vstack([data.features, asked.features]),
        np.append(data.levels, asked.levels),
        np.append(data.values, asked.values),
    )
    n = len(data.values)
    matrix = covariances(process, every, process._parameters)
    noise = process._unpacked(process._parameters)[3]
    seen = matrix[:n, :n] + np.diag(noise[data.levels] ** 2)
    gain = np.linalg.solve(seen, matrix[:n, n:]).T
    return gain @ data.values, matrix[n:, n:] - gain @ matrix[:n, n:]


@pytest.mark.parametrize(
    ("d", "n_levels", "n_warped"), [(1, 1, 0), (2, 1, 1), (1, 2, 1), (5, 4, 0), (5, 4, 5)]
)
def test_gradient_of_the_fit(d, n_levels, n_warped):
    rng = np.random.default_rng([d, n_levels])
    process = LevelProcess(d, n_levels, np.arange(d) < n_warped)
    data = some_data(18, d, n_levels, rng).by_level()
    indicators = np.eye(n_levels)[data.levels]
    parameters = some_parameters(process, rng)
    _, gradient = process._loss(parameters, data, indicators)
    step = 1e-4
    for index in range(len(parameters)):
        moved = step * np.eye(len(parameters))[index]
        above, _ = process._loss(parameters + moved, data, indicators)
        below, _ = process._loss(parameters - moved, data, indicators)
        assert gradient[index] == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-5)


def test_loss_by_plain_linear_algebra():
    rng = np.random.default_rng(0)
    process = LevelProcess(2, 3, np.array([False, True]))
    data = some_data(15, 2, 3, rng).by_level()
    centre = process._parameters.copy()
    losses, expected = [], []
    for _ in range(3):
        parameters = some_parameters(process, rng)
        losses.append(process._loss(parameters, data, np.eye(3)[data.levels])[0])
        noise = process._unpacked(parameters)[3]
        matrix = covariances(process, data, parameters) + np.diag(noise[data.levels] ** 2)
        likelihood = data.values @ np.linalg.solve(matrix, data.values)
        likelihood += np.linalg.slogdet(matrix)[1]
        prior = ((parameters - centre) ** 2) @ process._precision
        expected.append(0.5 * float(likelihood + prior))
    assert np.diff(losses) == pytest.approx(np.diff(expected), abs=1e-3)


@pytest.mark.parametrize(("n_levels", "numbers"), [(1, None), (3, np.array([False, True]))])
def test_predictions_by_plain_linear_algebra(n_levels, numbers):
    rng = np.random.default_rng(n_levels)
    process = LevelProcess(2, n_levels, numbers)
    process._parameters = some_parameters(process, rng)
    data = some_data(20, 2, n_levels, rng)
    process.condition(data)
    known = LevelData(data.features[:6], np.full(6, n_levels - 1), np.zeros(6))
    new = LevelData(rng.random((6, 2)), known.levels, np.zeros(6))
    for asked in (known, new):
        mean, spread = process.at_target(asked.features)
        expected, covariance = posterior(process, data, asked)
        assert mean == pytest.approx(expected, abs=2e-3)
        assert spread == pytest.approx(np.sqrt(np.diag(covariance)), abs=2e-3)
        at_levels = LevelData(asked.features, np.arange(6) % n_levels, np.zeros(6))
        expected, _ = posterior(process, data, at_levels)
        means = process.expected(at_levels.features, at_levels.levels)
        assert means == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("known", [True, False])
def test_what_an_observation_would_tell(known):
    """As found by making it: how the target's mean moves, and what spread is left."""
    rng = np.random.default_rng(5)
    process = LevelProcess(2, 3, np.array([True, False]))
    process._parameters = some_parameters(process, rng)
    data = some_data(20, 2, 3, rng)
    place = data.features[:1] if known else rng.random((1, 2))
    noise = process._unpacked(process._parameters)[3]
    for level in range(3):
        process.condition(data)
        mean, moved, left = process.learnt_at(place, np.array([level]))
        assert mean == pytest.approx(process.at_target(place)[0])
        asked = LevelData(place, np.array([level]), np.zeros(1))
        expected, covariance = posterior(process, data, asked)
        seen = math.sqrt(covariance[0, 0] + noise[level] ** 2)
        after = []
        for value in (expected[0] - seen, expected[0], expected[0] + seen):
            process.condition(
                LevelData(
                    np.vstack([data.features, place]),
                    np.append(data.levels, level),
                    np.append(data.values, value),
                )
            )
            after.append(process.at_target(place))
        means = np.array([float(there[0][0]) for there in after])
        assert means[1] == pytest.approx(mean[0], abs=2e-3)
        assert np.abs(means - means[1]) == pytest.approx([moved[0], 0.0, moved[0]], abs=2e-3)
        assert float(after[0][1][0]) == pytest.approx(left[0], abs=5e-3)


def fitted(low, places, target):
    n = len(target)
    data = LevelData(
        np.vstack([places, places]), np.repeat([0, 1], n), np.concatenate([low, target])
    )
    return conditioned(data, places.shape[1], 2, steps=60)


def unit(values):
    return (values - values.mean()) / values.std()


def correlation(low, places, target):
    prior = fitted(low, places, target)._over_levels
    return float(prior[0, 1] / math.sqrt(prior[0, 0] * prior[1, 1]))


def test_what_a_level_says_of_the_target_is_found_out():
    rng = np.random.default_rng(0)
    places = rng.random((50, 2))
    target = unit(np.sin(4.0 * places[:, 0]) + places[:, 1])
    for low in (rng.normal(size=50), unit(np.sin(9.0 * places[:, 1] + 1.0))):
        assert abs(correlation(low, places, target)) < 0.4
    rng = np.random.default_rng(0)
    places = rng.random((50, 2))
    low = unit(target + 0.1 * rng.normal(size=50))
    assert correlation(low, places, target) > 0.85
    assert correlation(-target, places, target) < -0.8
    # The same without anything that is smooth: the rough part tells.
    own = rng.normal(size=50)
    low = unit(own + 0.2 * rng.normal(size=50))
    assert correlation(low, places, unit(own)) > 0.85


def test_noise_is_told_from_differences_of_arms():
    rng = np.random.default_rng(0)
    places = np.tile(rng.random((40, 1)), (2, 1))
    truth = unit(np.sin(5.0 * places[:, 0]))
    found = []
    for noise in (0.0, 0.5):
        values = truth + noise * rng.normal(size=80)
        data = LevelData(places, np.zeros(80, dtype=int), values)
        found.append(float(conditioned(data, 1, 1, steps=60)._noise[0]))
    assert found[0] < 0.1
    assert found[1] == pytest.approx(0.5, rel=0.3)


def test_draws_know_that_few_values_may_mislead():
    gains = []
    for seed in range(40):
        rng = np.random.default_rng([7, seed])
        places = rng.random((32, 4))
        weights = rng.normal(size=4) * (rng.random(4) < 0.5)
        values = np.sin(4.0 * places @ weights) + np.where(places[:, 0] > 0.7, places[:, 1], 0.0)
        values = (values - values.mean()) / (values.std() or 1.0)
        data = LevelData(places[:12], np.zeros(12, dtype=np.int64), values[:12])
        process = LevelProcess(4, 1)
        process.fit(data)
        densities = []
        for model in [process, *[process.drawn(rng) for _ in range(10)]]:
            model.condition(data)
            means, spreads = model.at_target(places[12:])
            variance = spreads**2 + model.target_noise**2
            densities.append(-0.5 * ((values[12:] - means) ** 2 / variance + np.log(variance)))
        together = np.log(np.mean(np.exp(densities[1:]), axis=0))
        gains.append(float((together - densities[0]).mean()))
    assert np.mean(gains) > 2.0 * np.std(gains) / math.sqrt(len(gains))


def test_every_draw_can_be_conditioned():
    rng = np.random.default_rng(3)
    places = 0.5 + 1e-6 * rng.random((120, 3))
    data = LevelData(places, rng.integers(3, size=120), rng.normal(size=120))
    fitted = LevelProcess(3, 3, np.array([True, True, False]))
    unfitted = LevelProcess(3, 3, np.array([True, True, False]))
    fitted.fit(data, steps=20)
    fitted._parameters[fitted._exponents_at] = 2.9
    for process in (fitted, unfitted):
        before = process._parameters.copy()
        for _ in range(30):
            drawn = process.drawn(rng)
            drawn.condition(data)
            means, spreads = drawn.at_target(rng.random((5, 3)))
            assert np.isfinite(means).all()
            assert (spreads > 0.0).all()
            assert np.abs(drawn._parameters[drawn._exponents_at]).max() <= 3.0
        assert process._parameters == pytest.approx(before, abs=0.0)


def test_what_rounding_leaves_no_factor_gets_a_larger_diagonal():
    covariance = np.ones((60, 60)) - 1e-6 * np.eye(60)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(covariance)
    before = covariance.copy()
    factor = _factor(covariance)
    assert (covariance == before).all()
    off = factor @ factor.T - covariance
    assert np.abs(off).max() < 1e-3
    assert np.allclose(off, np.diag(np.diag(off)), atol=1e-12)


@pytest.mark.parametrize("n_levels", [1, 3])
def test_joint_values_at_the_target_have_the_means_and_spreads_of_single_ones(n_levels):
    rng = np.random.default_rng(n_levels)
    process = LevelProcess(2, n_levels, np.array([True, False]))
    data = some_data(20, 2, n_levels, rng)
    process.fit(data, steps=5)
    process.condition(data)
    asked = np.vstack([rng.random((6, 2)), data.features[:2]])
    means, covariance = process.jointly_at_target(asked)
    one_by_one, spreads = process.at_target(asked)
    assert means == pytest.approx(one_by_one)
    assert np.sqrt(np.diag(covariance)) == pytest.approx(spreads, abs=1e-5)
    assert covariance == pytest.approx(covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > -1e-8
    # The same place twice is the same value.
    twice = process.jointly_at_target(np.vstack([asked[:1], asked[:1]]))[1]
    assert twice == pytest.approx(np.full((2, 2), covariance[0, 0]))


logs = st.floats(-3.0, 3.0)
places = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=20)


def test_warping_by_hand():
    at = np.array([[0.25, 0.5], [0.81, 0.9]])
    found = warp(at, np.log([0.5, 1.0, 1.0, 2.0]))[0]
    assert found == pytest.approx(np.array([[0.5, 0.75], [0.9, 0.99]]))


@given(places, logs, logs)
def test_warping_keeps_the_order_and_the_range(at, a, b):
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
