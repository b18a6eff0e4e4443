import numpy as np
import pytest

from benchmarks.papers import nash
from benchmarks.papers.nash_applications import access, informed_power, power
from mfhpo.games import GamePolicy, Query
from mfhpo.search import Numeric


def test_the_profile_of_the_largest_probability(monkeypatch):
    monkeypatch.setattr(nash, "_DRAWS", 2_000)
    places = tuple((np.arange(11) / 10).tolist())
    players = {"row": {"x": Numeric(places)}, "column": {"y": Numeric(places)}}
    for seed in range(5):
        policy = GamePolicy(players, (1, 5), 120.0, nash.ProbabilityOfEquilibrium())
        rng = np.random.default_rng(seed)
        for x, y in rng.choice(places, (6, 2)).tolist():
            policy.tell(Query({"x": x, "y": y}, (1, 1)), rng.standard_normal(2).tolist())
        probability = np.ones(121)
        for player, model in enumerate(policy.models):
            covariances = model.covariances(policy.points, 1) + 1e-9 * np.eye(121)
            means = model.mean(policy.points, 1)
            utilities = rng.multivariate_normal(
                means, covariances, size=2_000, method="cholesky", check_valid="ignore"
            ).reshape(-1, 11, 11)
            stays = utilities == utilities.max(axis=1 + player, keepdims=True)
            probability *= stays.mean(axis=0).ravel()
        query = policy.ask()
        assert query is not None
        asked = round(110 * query.profile["x"] + 10 * query.profile["y"])
        assert policy.actions.profiles[asked].tolist() == list(query.profile.values())
        assert probability[asked] > probability.max() - 0.04


@pytest.mark.slow
def test_random_access_ends_at_its_equilibrium():
    """The middle one of three games: which queries one makes may hang on a rounding error."""
    games = [access(seed=seed) for seed in range(3)]
    assert np.median([found["largest error"] for found in games]) <= 0.02
    assert all(found["evaluations"] * 100.0 <= found["budget"] for found in games)


@pytest.mark.slow
def test_power_allocation_with_levels_of_many_realisations():
    row = power((0, 5, 60_000.0, (1_000, 4_000)))
    assert row["evaluations"] >= 1
    assert row["largest gain"] > 0.0
    assert row["expected"] == pytest.approx(12.85, abs=0.01)
    error = max(abs(power / row["expected"] - 1.0) for power in row["powers"])
    assert row["largest error"] == pytest.approx(error)


@pytest.mark.slow
def test_a_design_around_the_equilibrium_leads_near_to_it():
    row = informed_power((0, 10_000.0))
    assert row["queries"] == row["evaluations"] == 20
    error = max(abs(power / row["expected"] - 1.0) for power in row["powers"])
    assert row["largest error"] == pytest.approx(error)
    # The design goes up to 7.2 decibels away, which is up to 5 times the power.
    assert 0.0 < error < 1.0
