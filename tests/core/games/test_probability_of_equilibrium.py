"""The search that goes where an equilibrium is most probable."""

from __future__ import annotations

import numpy as np
import pytest

from mfhpo.games import Query
from mfhpo.games.baselines import ProbabilityOfEquilibrium
from mfhpo.search import Numeric
from tests.core.games.known_games import two_players

PLACES = tuple((np.arange(11) / 10).tolist())


def searching(budget: float = 120.0, draws: int = 100) -> ProbabilityOfEquilibrium:
    players = {"row": {"x": Numeric(PLACES)}, "column": {"y": Numeric(PLACES)}}
    return ProbabilityOfEquilibrium(players, (1, 5), budget, draws=draws)


def test_it_takes_the_profile_of_the_largest_probability() -> None:
    """Against draws of the utilities of all profiles at once."""
    for seed in range(5):
        policy = searching(draws=2_000)
        rng = np.random.default_rng(seed)
        for x, y in rng.choice(PLACES, (6, 2)).tolist():
            profile = {"x": x, "y": y}
            policy.tell(Query(profile, (1, 1)), rng.standard_normal(2).tolist())
        probability = np.ones(121)
        for player, model in enumerate(policy.models):
            covariances = model.covariances(policy.points, 1) + 1e-9 * np.eye(121)
            utilities = rng.multivariate_normal(
                model.point_means, covariances, size=2_000, method="cholesky", check_valid="ignore"
            ).reshape(-1, 11, 11)
            stays = utilities == utilities.max(axis=1 + player, keepdims=True)
            probability *= stays.mean(axis=0).ravel()
        query = policy.ask()
        assert query is not None
        asked = round(110 * query.profile["x"] + 10 * query.profile["y"])
        assert policy.actions.profiles[asked].tolist() == list(query.profile.values())
        assert probability[asked] > probability.max() - 0.04


def test_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match=r"^draws must be at least 1"):
        searching(draws=0)
    three = {name: {name: Numeric()} for name in "abc"}
    with pytest.raises(ValueError, match=r"^players must have few actions, .* got 68921 profiles"):
        ProbabilityOfEquilibrium(three, (1, 5), 100)
    assert ProbabilityOfEquilibrium(two_players(), (1, 5), 100).ask() is not None
