import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfhpo.games import Hyperparameters, MultiOutputGP
from mfhpo.games.model.fitting import drawn_hyperparameters, first_guess, fit
from mfhpo.games.model.mogp import Observations, covariance
from mfhpo.games.model.posterior import Assumptions, Posterior, Standardised

KINDS = [(False, None), (False, 0.05), (True, None), (True, 0.05)]


def assuming(averaging=False, noise=None, n_levels=2, n_features=1):
    weights = np.array([1.0, 0.5, 0.2, 0.1])[:n_levels] if averaging else np.ones(n_levels)
    return Assumptions(n_levels, np.arange(n_features), weights, averaging, noise)


def believing(told, assumptions, unit=1.0):
    return Posterior(Standardised(told, np.zeros(assumptions.n_levels), unit), assumptions)


def drawn_from(known, n, seed):
    rng = np.random.default_rng(seed)
    n_levels, n_features = known.length_scales.shape
    features = rng.random((n, n_features))
    features[n // 2 :] = features[: n - n // 2]
    levels = rng.integers(n_levels, size=n)
    total = covariance(known, (features, levels), (features, levels))
    total += np.diag(known.noise[levels])
    values = known.offsets[levels] + np.linalg.cholesky(total) @ rng.standard_normal(n)
    return Observations.once(features, levels, values)


def random_observations(seed, n, assumptions):
    rng = np.random.default_rng(seed)
    features = rng.random((n, len(assumptions.groups)))
    levels = rng.integers(assumptions.n_levels, size=n)
    return Observations.once(features, levels, rng.standard_normal(n))


@pytest.mark.parametrize(("averaging", "noise"), KINDS)
@given(seed=st.integers(0, 10_000), n_levels=st.integers(1, 3), unit=st.sampled_from([1.0, 0.6]))
@settings(max_examples=10)
def test_gradient_is_that_of_differences(averaging, noise, seed, n_levels, unit):
    assumptions = replace(
        assuming(averaging, noise, n_levels, n_features=3), groups=np.array([0, 0, 1])
    )
    posterior = believing(random_observations(seed, 12, assumptions), assumptions, unit)
    parameters = np.random.default_rng(seed).normal(-0.5, 0.7, posterior.size)
    differences = [
        (posterior.loss(parameters + step) - posterior.loss(parameters - step)) / 2e-5
        for step in 1e-5 * np.eye(posterior.size)
    ]
    loss, gradient = posterior.loss_and_gradient(parameters)
    assert loss == posterior.loss(parameters)
    assert gradient == pytest.approx(np.array(differences), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("averaging", [False, True])
def test_loss_is_a_density_of_a_normal_vector(averaging):
    assumptions = assuming(averaging, noise=0.09, n_levels=2)
    told = random_observations(0, 6, assumptions)
    posterior = believing(told, assumptions)
    first, second = np.zeros((2, posterior.size))
    first[0], second[0] = np.log(0.3), np.log(0.6)

    def density(length):
        known = Hyperparameters(
            length_scales=np.full((2, 1), length),
            correlations=np.array([1.0 if averaging else 0.5]),
            scales=np.ones(2),
            noise=0.09 * assumptions.noise_weights,
            offsets=np.zeros(2),
        )
        at = (told.features, told.levels)
        total = covariance(known, at, at) + np.diag(known.noise[told.levels])
        # A mean of standard deviation 1, and each level's own of .5 - one of both if they average.
        same = np.ones((6, 6)) if averaging else told.levels[:, None] == told.levels
        total += 1.0 + 0.25 * same
        sign, determinant = np.linalg.slogdet(total)
        assert sign == 1.0
        return float(0.5 * determinant + 0.5 * told.values @ np.linalg.solve(total, told.values))

    # The prior of the logarithm of a length scale: mean log .5, standard deviation 1.
    prior = 0.5 * (np.log(0.3 / 0.5) ** 2 - np.log(0.6 / 0.5) ** 2)
    got = posterior.loss(first) - posterior.loss(second)
    assert got == pytest.approx(density(0.3) - density(0.6) + prior, abs=1e-5)


def test_what_data_were_drawn_from_is_found():
    known = Hyperparameters(
        length_scales=np.array([[0.1, 0.6], [0.15, 0.8]]),
        correlations=np.array([0.9]),
        scales=np.array([30.0, 20.0]),
        noise=np.array([4.0, 4.0]),
        offsets=np.array([100.0, 120.0]),
    )
    fits = [
        fit(drawn_from(known, 160, seed), assuming(n_levels=2, n_features=2)) for seed in range(3)
    ]
    for found in fits:
        assert 0.5 < found.length_scales[1, 0] / 0.15 < 2.0
        assert found.length_scales[1, 1] > 2.0 * found.length_scales[1, 0]
        assert 0.75 < found.correlations[0] < 0.99
        assert 2.0 < found.noise[1] < 8.0
        assert 8.0 < found.scales[1] < 50.0
        assert abs(found.offsets[1] - 120.0) < 40.0
    mean = np.mean([found.length_scales[1] for found in fits], axis=0)
    assert 0.11 < mean[0] < 0.2
    assert 0.5 < mean[1] < 1.6


def test_the_unit_of_utilities_does_not_matter():
    factor, shift, assumptions = 2e4, -3e5, assuming()
    known = Hyperparameters.shared(20.0, 20.0, correlations=[0.8], noise=0.05, n_features=1)
    told = drawn_from(known, 40, seed=2)
    other = replace(told, values=factor * told.values + shift)
    for make in (first_guess, fit):
        found, moved = make(told, assumptions), make(other, assumptions)
        assert moved.length_scales == pytest.approx(found.length_scales, rel=1e-3)
        assert moved.correlations == pytest.approx(found.correlations, rel=1e-3)
        assert moved.scales == pytest.approx(factor * found.scales, rel=1e-3)
        assert moved.noise == pytest.approx(factor**2 * found.noise, rel=1e-2)
        expected = factor * found.offsets + shift
        assert moved.offsets == pytest.approx(expected, abs=1e-3 * factor)


@pytest.mark.parametrize(("averaging", "noise"), KINDS)
@pytest.mark.parametrize("value", [0.0, 1e9])
def test_constant_values(averaging, noise, value):
    told = random_observations(0, 12, assuming(averaging, noise))
    told = replace(told, values=np.full(12, value))
    found = fit(told, assuming(averaging, noise))
    gp = MultiOutputGP(found, told)
    means, variances = gp.predict(np.linspace(0.0, 1.0, 5)[:, None], 1)
    assert means == pytest.approx(np.full(5, value), rel=1e-9, abs=1e-6)
    assert np.isfinite(variances).all()


def test_drawn_hyperparameters_spread_as_the_priors_where_nothing_is_known():
    told = Observations.once(np.array([[0.4]]), np.array([1]), np.array([3.0]))
    assumptions = Assumptions(n_levels=2, groups=np.array([0]), noise_weights=np.ones(2))
    drawn = drawn_hyperparameters(told, assumptions, 400, np.random.default_rng(0))
    lengths = np.log([known.length_scales[-1, 0] for known in drawn])
    assert lengths.mean() == pytest.approx(np.log(0.5), abs=0.2)
    assert lengths.std() == pytest.approx(1.0, abs=0.15)


@pytest.mark.slow
def test_drawn_hyperparameters_agree_where_much_is_known():
    rng = np.random.default_rng(0)
    x = rng.random((150, 1))
    values = np.sin(9.0 * x[:, 0]) + 0.2 * rng.standard_normal(150)
    told = Observations.once(x, rng.integers(2, size=150), values)
    assumptions = Assumptions(n_levels=2, groups=np.array([0]), noise_weights=np.ones(2))
    best = fit(told, assumptions)
    drawn = drawn_hyperparameters(told, assumptions, 100, np.random.default_rng(1))
    # Noise is relative to each level's scale: both levels' together are known from all values.
    noise = np.log([known.noise for known in drawn]).mean(axis=1)
    # The variance of the noise's logarithm is about 2 / n.
    assert noise.mean() == pytest.approx(np.log(best.noise).mean(), abs=0.05)
    assert noise.std() == pytest.approx(math.sqrt(2.0 / 150.0), rel=0.3)
    lengths = np.log([known.length_scales[-1, 0] for known in drawn])
    assert lengths.std() < 0.4
    again = drawn_hyperparameters(told, assumptions, 100, np.random.default_rng(1))
    assert [known.noise[0] for known in again] == [known.noise[0] for known in drawn]


def test_repeated_observations_count_as_they_do_one_by_one():
    rng = np.random.default_rng(3)
    x, levels = rng.random((6, 1)), np.array([0, 1, 0, 1, 0, 1])
    counts = np.array([1, 2, 3, 1, 4, 2])
    values = [rng.standard_normal(count) for count in counts]
    apart = Observations.once(
        np.repeat(x, counts, axis=0), np.repeat(levels, counts), np.concatenate(values)
    )
    merged = Observations(
        x,
        levels,
        np.array([of.mean() for of in values]),
        counts.astype(float),
        np.array([((of - of.mean()) ** 2).sum() for of in values]),
    )
    assumptions = Assumptions(n_levels=2, groups=np.array([0]), noise_weights=np.array([1.0, 0.5]))
    for seed in range(4):
        first, second = (0.5 * np.random.default_rng(s).standard_normal(6) for s in (seed, 9))
        differences = []
        for told in (apart, merged):
            (one, slope), (two, _) = (
                believing(told, assumptions).loss_and_gradient(at) for at in (first, second)
            )
            differences.append([one - two, *slope])
        # Jitter counts once for each row.
        assert differences[0] == pytest.approx(differences[1], rel=1e-4, abs=1e-5)
