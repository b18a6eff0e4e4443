from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfhpo.games import Hyperparameters, MultiOutputGP
from mfhpo.games.model.fitting import ObservedUtilities
from mfhpo.games.model.mogp import Observations, covariance
from tests.core.games.known_games import direct_posterior, drawn_hyperparameters

CLOSE = {"abs": 1e-9, "rel": 1e-9}


class Case:
    def __init__(self, seed, n, n_levels=3, n_features=2, n_points=6):
        rng = np.random.default_rng(seed)
        self.known = drawn_hyperparameters(rng, n_levels, n_features)
        self.features = rng.random((n, n_features))
        self.levels = rng.integers(n_levels, size=n)
        self.values = rng.standard_normal(n)
        self.points = rng.random((n_points, n_features))
        self.gp = MultiOutputGP(self.known)
        for x, level, value in zip(self.features, self.levels, self.values, strict=True):
            self.gp.add(x, int(level), float(value))

    def direct(self, features, level):
        at = (features, np.full(len(features), level))
        return direct_posterior(self.known, (self.features, self.levels), self.values, at)

    def check(self, features, level):
        means, covariances = self.direct(features, level)
        predicted, variances = self.gp.predict(features, level)
        assert predicted == pytest.approx(means, **CLOSE)
        assert variances == pytest.approx(np.diag(covariances), **CLOSE)
        return means, covariances

    def direct_with_target(self, features, level):
        n, top = len(features), self.known.n_levels - 1
        at = (np.concatenate((features, features)), np.repeat([level, top], n))
        told = (self.features, self.levels)
        both = direct_posterior(self.known, told, self.values, at)[1]
        return both[np.arange(n), n + np.arange(n)]


cases = st.builds(
    Case,
    seed=st.integers(0, 10_000),
    n=st.integers(0, 12),
    n_levels=st.integers(1, 4),
    n_features=st.integers(1, 3),
)


def test_covariance_by_hand():
    known = Hyperparameters.shared(1.0, 4.0, correlations=[0.6], noise=0.1, n_features=1)
    x = np.array([[0.0], [0.5]])
    low, high = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64)
    target, own = np.exp(-0.25), np.exp(-1.0)
    assert covariance(known, (x, high), (x, high))[0, 1] == pytest.approx(target)
    assert covariance(known, (x, low), (x, high))[0, 1] == pytest.approx(0.6 * target)
    assert covariance(known, (x, low), (x, low))[0, 1] == pytest.approx(0.36 * target + 0.64 * own)


@settings(max_examples=25)
@given(cases)
def test_predictions_are_those_of_a_direct_solve(case):
    rng = np.random.default_rng(1)
    features = rng.random((5, case.features.shape[1]))
    variances, shared = case.gp.with_target(features)
    for level in range(case.known.n_levels):
        means, covariances = case.check(features, level)
        assert case.gp.mean(features, level) == pytest.approx(means, **CLOSE)
        assert case.gp.covariances(features, level) == pytest.approx(covariances, **CLOSE)
        assert variances[level] == pytest.approx(np.diag(covariances), **CLOSE)
        assert shared[level] == pytest.approx(case.direct_with_target(features, level), **CLOSE)


@given(cases, st.data())
def test_deviations(case, data):
    n_features = case.features.shape[1]
    columns = np.array(
        sorted(data.draw(st.sets(st.integers(0, n_features - 1), min_size=1), label="columns"))
    )
    rng = np.random.default_rng(2)
    features, own = rng.random((3, n_features)), rng.random((4, len(columns)))
    deviating = np.repeat(features[:, None, :], 4, axis=1)
    deviating[:, :, columns] = own
    means, covariances = case.direct(deviating.reshape(12, n_features), case.known.n_levels - 1)
    found = case.gp.deviations(features, own, columns)
    assert found.means() == pytest.approx(means.reshape(3, 4), **CLOSE)
    chosen = rng.integers(4, size=(3, 2))
    variances = np.take_along_axis(np.diag(covariances).reshape(3, 4), chosen, axis=1)
    assert found.variances(chosen) == pytest.approx(variances, **CLOSE)


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_observations_of_the_same_utility_are_merged(seed):
    case = Case(seed=seed, n=0)
    rng = np.random.default_rng(seed)
    places = rng.random((3, 2))
    chosen = rng.integers(3, size=20)
    case.features, case.levels = places[chosen], rng.integers(2, size=20)
    case.values = rng.standard_normal(20)
    seen = ObservedUtilities()
    for x, level, value in zip(case.features, case.levels, case.values, strict=True):
        seen.add(x, int(level), float(value))
    case.gp = MultiOutputGP(case.known, seen.observations(np.ones(2)))
    assert case.gp.n == len(set(zip(chosen.tolist(), case.levels.tolist(), strict=True)))
    case.check(case.points, 2)


@given(cases, st.integers(0, 3))
def test_what_is_under_way_leaves_means_and_lessens_variances(case, level):
    level = min(level, case.known.n_levels - 1)
    place = np.full(case.features.shape[1], 0.4)
    means = [case.gp.predict(case.points, at)[0] for at in range(case.known.n_levels)]
    case.gp.add(place, level, None)
    case.features = np.concatenate((case.features, place[None, :]))
    case.levels = np.append(case.levels, level)
    case.values = np.append(case.values, 123.0)  # variances do not depend on it
    for at in range(case.known.n_levels):
        predicted, variances = case.gp.predict(case.points, at)
        assert predicted == pytest.approx(means[at], **CLOSE)
        expected = np.diag(case.direct(case.points, at)[1])
        assert variances == pytest.approx(expected, **CLOSE)
    assert case.gp.mean(case.points, 0) == pytest.approx(means[0], **CLOSE)


def test_what_a_copy_learns_is_not_learned():
    case = Case(seed=5, n=60)
    before = [each.tolist() for each in case.gp.predict(case.points, 0)]
    guessing = copy(case.gp)
    for place, value in ((case.features[0], None), (case.features[0], 3.0), (case.points[0], 2.0)):
        guessing.add(place, 0, value)
    assert guessing.predict(case.points, 0)[0].tolist() != before[0]
    assert [each.tolist() for each in case.gp.predict(case.points, 0)] == before


@given(cases)
def test_observations_that_are_learned_at_once(case):
    if not case.gp.n:
        return
    counts = 1.0 + np.arange(len(case.values))
    one_by_one = MultiOutputGP(case.known)
    for x, level, value, count in zip(case.features, case.levels, case.values, counts, strict=True):
        for _ in range(int(count)):
            one_by_one.add(x, int(level), float(value))
    told = Observations.once(case.features, case.levels, case.values)
    at_once = MultiOutputGP(case.known, replace(told, counts=counts))
    assert (at_once.n, one_by_one.n) == (len(counts), counts.sum())
    for level in range(case.known.n_levels):
        found, expected = (gp.predict(case.points, level) for gp in (at_once, one_by_one))
        assert found[0] == pytest.approx(expected[0], **CLOSE)
        assert found[1] == pytest.approx(expected[1], **CLOSE)
