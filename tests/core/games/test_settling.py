from dataclasses import replace

import numpy as np
import pytest

from mfhpo.games import MFUCBPNE, Hyperparameters, MultiOutputGP, Query
from mfhpo.games.actions import Actions
from mfhpo.games.dissatisfaction import Beliefs, Estimate
from mfhpo.games.statements import best_response, settled
from mfhpo.search import Numeric
from tests.core.games.known_games import believing, two_players

UNITS = np.ones(2)
ACTIONS = Actions(two_players())


def knowing(utility, n_features=2, mean=0.0):
    known = Hyperparameters.shared(4.0, 4.0, correlations=[0.8], noise=1e-6, n_features=n_features)
    model = MultiOutputGP(replace(known, offsets=np.full(2, mean)))
    if utility is None:
        return model
    for place in np.random.default_rng(0).random((100 * n_features - 140, n_features)):
        model.add(place, 1, utility(place))
    return model


def settle(start, models):
    return settled(start, Beliefs(ACTIONS, models, beta=1.5), UNITS)


def wanting(player, best, n_features=2):
    return knowing(lambda place: -float((place[player] - best) ** 2), n_features)


def largest_gain(profile, models):
    """By brute force: one player at a time, deviations .00125 apart."""
    gains = []
    for player, model in enumerate(models):
        there = np.repeat(profile[None, :], 801, axis=0)
        there[:, player] = np.linspace(0.0, 1.0, 801)
        utility = model.predict(there, 1)[0]
        here = float(model.predict(profile[None, :], 1)[0][0])
        gains.append(max(float(utility.max()), here) - here)
    return max(gains)


@pytest.mark.parametrize("best", [(0.4119, 0.7129), (0.0, 0.9871), (1.0, 0.0)])
def test_best_responses_settle_between_the_actions_of_the_grid(best):
    models = [wanting(0, best[0]), wanting(1, best[1])]
    # The grid's actions are .025 apart; what is believed is some .002 off.
    for start in (np.array([0.5, 0.5]), np.array([0.0, 1.0])):
        assert settle(start, models) == pytest.approx(best, abs=4e-3)


@pytest.mark.parametrize("seed", range(2))
def test_settling_makes_nothing_worse(seed):
    rng = np.random.default_rng(seed)
    models = [believing(ACTIONS, 10 * seed + player, 25).models[0] for player in range(2)]
    least = Beliefs(ACTIONS, models, beta=1.5).least(Estimate.MEAN, rng)
    for start in (least, rng.random(2)):
        reached = settle(start, models)
        assert largest_gain(reached, models) <= largest_gain(start, models) + 1e-6


def test_players_who_run_after_each_other_are_left_where_they_were():
    row = knowing(lambda place: -float((place[0] - place[1]) ** 2))
    column = knowing(lambda place: float((place[0] - place[1]) ** 2))
    start = np.array([0.5, 0.5])
    models = [row, column]
    assert largest_gain(start, models) == pytest.approx(0.25, abs=0.01)
    assert settle(start, models).tolist() == start.tolist()


def test_the_best_profile_on_the_way_is_taken_where_responses_lead_away_from_it():
    """With slopes of 1.5 and -1.5 responses circle around (.5, .5), further out each time."""
    row = knowing(lambda place: -float((place[0] - 0.5 - 1.5 * (place[1] - 0.5)) ** 2))
    column = knowing(lambda place: -float((place[1] - 0.5 + 1.5 * (place[0] - 0.5)) ** 2))
    models = [row, column]
    start = np.array([1.0, 0.55])
    reached = settle(start, models)
    assert largest_gain(reached, models) < 0.25 * largest_gain(start, models)


# Nothing was observed, or everything is 7.
@pytest.mark.parametrize("model", [knowing(None), knowing(lambda place: 7.0, mean=7.0)])
def test_a_player_with_nothing_to_gain_stays(model):
    profile = np.array([0.613, 0.287])
    moved = best_response(profile, 1, Beliefs(ACTIONS, [model, model], beta=1.5), unit=7.0)
    assert moved.tolist() == profile.tolist()


def test_the_others_find_their_places_around_a_player_who_has_no_wish():
    """c, whom a and b follow, was seen from .5 to .8 only: nobody knows what they gain beyond."""
    game = {name: {name: Numeric()} for name in "abc"}
    policy = MFUCBPNE(game, [1, 8], budget=2_000)
    rng = np.random.default_rng(0)
    for a, b, c in rng.random((40, 3)) * [1.0, 1.0, 0.3] + [0.0, 0.0, 0.5]:
        utilities = [-float((a - c) ** 2), -float((b - (a + c) / 2.0) ** 2), 7.0]
        policy.tell(Query({"a": a, "b": b, "c": c}, (1, 1, 1)), utilities)
    answer = policy.recommend().profile
    assert answer["a"] == pytest.approx(answer["c"], abs=0.05)
    assert answer["b"] == pytest.approx(answer["c"], abs=0.05)
