import numpy as np
import pytest

from mfhpo.games import MFUCBPNE
from mfhpo.games.costs import LevelCosts, best_levels
from tests.core.games.known_games import ON_A_GRID, play

COSTS = {"row": (1.0, 8.0), "column": (1.5, 4.0, 12.0)}


def tracking(profile, level):
    x, y = profile["x"], profile["y"]
    row = -((x - 0.6 * y - (0.05, 0.0, 0.0)[level]) ** 2)
    return [row, -100.0 * (y - 0.5 - 0.2 * x - (0.1, 0.03, 0.0)[level]) ** 2]


def test_what_a_query_costs():
    costs = LevelCosts(COSTS, list(ON_A_GRID), joint=False)
    assert costs.tops == (1, 2)
    assert costs.of((0, 1)) == 5.0
    assert (costs.least, costs.of_evaluation) == (2.5, 20.0)
    assert costs.table().tolist() == [[1.0, 8.0, 8.0], [1.5, 4.0, 12.0]]
    joint = LevelCosts((1.0, 8.0), list(ON_A_GRID), joint=True)
    assert (joint.of((1, 1)), joint.least, joint.table().tolist()) == (8.0, 1.0, [[1.0, 8.0]])


def test_levels_that_a_player_does_not_have_are_never_chosen():
    # By hand: 3 for 1 + 1.5 beats all else, though the row's third level would cost no more.
    information = np.array([[[2.0, 3.0, -np.inf], [1.0, 1.1, 1.2]]])
    table = LevelCosts(COSTS, list(ON_A_GRID), joint=False).table()
    for budget in (20.0, 19.0, 3.0):
        levels, ratios = best_levels(information, table, budget)
        assert levels.tolist() == [[0, 0]]
        assert ratios.tolist() == [1.2]


def test_players_with_levels_of_their_own():
    policy = MFUCBPNE(ON_A_GRID, COSTS, 120.0)
    seen = {query.levels for query in play(policy, tracking)}
    assert {row for row, _ in seen} == {0, 1}
    assert len({column for _, column in seen}) >= 2
    assert policy.cost == sum(policy.cost_of(query) for query, *_ in policy.history) <= 120.0
    answer = policy.recommend()
    assert answer.n_evaluations >= 2
    # The nearest places to .341 and .568.
    assert abs(answer.profile["x"] - 0.3 / 0.88) <= 1.5 / 16
    assert abs(answer.profile["y"] - 0.5 / 0.88) <= 1.5 / 16


@pytest.mark.parametrize("averaging", [False, True])
def test_known_noise_is_each_players_own_by_its_costs(averaging):
    policy = MFUCBPNE(ON_A_GRID, COSTS, 60.0, averaging=averaging, sigma=0.5)
    row, column = (model.hyperparameters.noise for model in policy.models)
    expected = ([0.25] * 2, [0.25] * 3)
    if averaging:
        expected = ([0.25, 0.25 / 8], [0.25 / 1.5, 0.25 / 4, 0.25 / 12])
    assert row == pytest.approx(np.array(expected[0]))
    assert column == pytest.approx(np.array(expected[1]))
