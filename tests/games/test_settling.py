"""Where best responses lead, by one model and by several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from mfhpo.games import MFUCBPNE, Hyperparameters, MultiOutputGP, Query
from mfhpo.games.actions import Actions
from mfhpo.games.answers import Answers
from mfhpo.games.settling import _unrest, best_response, settled
from mfhpo.search import Numeric
from tests.games.known_games import FloatArray

UNITS = np.ones(2)


def two_players(x: Numeric | None = None) -> Actions:
    return Actions({"row": {"x": x or Numeric()}, "column": {"y": Numeric()}})


def knowing(
    utility: Callable[[FloatArray], float], n_features: int = 2, mean: float = 0.0
) -> MultiOutputGP:
    """A model after many exact observations of a smooth utility."""
    known = Hyperparameters.shared(4.0, 4.0, correlations=[0.8], noise=1e-6, n_features=n_features)
    model = MultiOutputGP(replace(known, offsets=np.full(2, mean)))
    for place in np.random.default_rng(0).random((40 * n_features - 20, n_features)):
        model.add(place, 1, utility(place))
    return model


def wanting(player: int, best: float, n_features: int = 2) -> MultiOutputGP:
    """A model of a player that wants to be at a place, whatever the others do."""
    return knowing(lambda place: -float((place[player] - best) ** 2), n_features)


def guessing(seed: int, n: int) -> MultiOutputGP:
    """A model after observations at random."""
    rng = np.random.default_rng(seed)
    known = Hyperparameters.shared(5.0, 5.0, correlations=[0.8], noise=0.01, n_features=2)
    model = MultiOutputGP(known)
    for place in rng.random((n, 2)):
        model.add(place, 1, rng.standard_normal())
    return model


def largest_gain(profile: FloatArray, possible: Sequence[Sequence[MultiOutputGP]]) -> float:
    """By brute force: one player and one model at a time, deviations .00125 apart."""
    gains = []
    for player, models in enumerate(possible):
        there = np.repeat(profile[None, :], 801, axis=0)
        there[:, player] = np.linspace(0.0, 1.0, 801)
        utility = np.mean([model.predict(there, 1)[0] for model in models], axis=0)
        here = np.mean([model.predict(profile[None, :], 1)[0] for model in models])
        gains.append(max(float(utility.max()), float(here)) - float(here))
    return max(gains)


@pytest.mark.parametrize("best", [(0.4119, 0.7129), (0.0, 0.9871), (1.0, 0.0)])
def test_best_responses_settle_between_the_actions_of_the_grid(best: tuple[float, float]) -> None:
    possible = [[wanting(0, best[0])], [wanting(1, best[1])]]
    # The grid's actions are .025 apart; what is believed is some .002 off.
    for start in (np.array([0.5, 0.5]), np.array([0.0, 1.0])):
        assert settled(start, two_players(), possible, UNITS) == pytest.approx(best, abs=4e-3)


def test_whole_numbers_stay_whole() -> None:
    whole = Numeric(tuple(np.linspace(0.0, 1.0, 201).tolist()))
    possible = [[wanting(0, 0.4101)], [wanting(1, 0.7129)]]
    reached = settled(np.array([0.5, 0.5]), two_players(whole), possible, UNITS)
    assert reached[0] == pytest.approx(0.41, abs=1e-12)


def test_of_several_models_the_mean_counts() -> None:
    """Of -(x - a)**2 and -(x - b)**2 the mean is largest half-way, and of three at their mean."""
    possible = [
        [wanting(0, 0.2), wanting(0, 0.5)],
        [wanting(1, 0.3), wanting(1, 0.9), wanting(1, 0.9)],
    ]
    reached = settled(np.array([0.2, 0.3]), two_players(), possible, UNITS)
    assert reached == pytest.approx([0.35, 0.7], abs=4e-3)


def test_a_steep_utility_outweighs_a_flat_one() -> None:
    """-9 (x - .2)**2 / 2 - (x - .8)**2 / 2 is largest at .26."""
    steep = knowing(lambda place: -9.0 * float((place[0] - 0.2) ** 2))
    possible = [[steep, wanting(0, 0.8)], [wanting(1, 0.5)]]
    reached = settled(np.array([0.8, 0.5]), two_players(), possible, UNITS)
    assert reached == pytest.approx([0.26, 0.5], abs=8e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_models", [1, 3])
def test_settling_makes_nothing_worse(seed: int, n_models: int) -> None:
    possible = [
        [guessing(100 * seed + 10 * player + index, n=25) for index in range(n_models)]
        for player in range(2)
    ]
    start = np.random.default_rng(seed).random(2)
    reached = settled(start, two_players(), possible, UNITS)
    assert largest_gain(reached, possible) <= largest_gain(start, possible) + 1e-6


def test_players_who_run_after_each_other_are_left_where_they_were() -> None:
    """Row wants to be where column is, column to be far from row: there is no rest."""
    row = knowing(lambda place: -float((place[0] - place[1]) ** 2))
    column = knowing(lambda place: float((place[0] - place[1]) ** 2))
    start = np.array([0.5, 0.5])
    possible = [[row], [column]]
    assert largest_gain(start, possible) == pytest.approx(0.25, abs=0.01)
    assert settled(start, two_players(), possible, UNITS).tolist() == start.tolist()


def test_the_best_profile_on_the_way_is_taken_where_responses_lead_away_from_it() -> None:
    """With slopes of 1.5 and -1.5 responses circle around (.5, .5), further out each time."""
    row = knowing(lambda place: -float((place[0] - 0.5 - 1.5 * (place[1] - 0.5)) ** 2))
    column = knowing(lambda place: -float((place[1] - 0.5 + 1.5 * (place[0] - 0.5)) ** 2))
    possible = [[row], [column]]
    start = np.array([1.0, 0.55])
    reached = settled(start, two_players(), possible, UNITS)
    assert largest_gain(reached, possible) < 0.25 * largest_gain(start, possible)


def test_gains_are_counted_in_units() -> None:
    """Row would gain .3**2, column .2**2."""
    possible = [[wanting(0, 0.7)], [wanting(1, 0.5)]]
    profile, actions = np.array([0.4, 0.3]), two_players()
    assert _unrest(profile, actions, possible, UNITS) == pytest.approx(0.09, abs=2e-3)
    smaller = np.array([1.0, 0.1])
    assert _unrest(profile, actions, possible, smaller) == pytest.approx(0.4, abs=0.02)


def test_a_best_response_moves_one_player() -> None:
    models = [wanting(1, 0.25)]
    moved = best_response(np.array([0.123, 0.9]), 1, two_players(), models, unit=1.0)
    assert moved.tolist() == pytest.approx([0.123, 0.25])


def unobserved() -> MultiOutputGP:
    return MultiOutputGP(
        Hyperparameters.shared(4.0, 4.0, correlations=[0.8], noise=1e-6, n_features=2)
    )


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize(
    "model", [unobserved(), knowing(lambda place: 7.0, mean=7.0)], ids=["unobserved", "constant"]
)
def test_a_player_with_nothing_to_gain_stays(model: MultiOutputGP, player: int) -> None:
    """By its model 7 everywhere, up to rounding, or nothing at all."""
    profile = np.array([0.613, 0.287])
    moved = best_response(profile, player, two_players(), [model], unit=7.0)
    assert moved.tolist() == profile.tolist()


@pytest.fixture(scope="module")
def three_players() -> Answers:
    """Two models of a, whose best places are .3 and .6; b wants to be where c is, c is content."""
    numbers = {name: {name: Numeric()} for name in "abc"}
    possible = [
        [wanting(0, best, n_features=3) for best in (0.3, 0.6)],
        [knowing(lambda place: -float((place[1] - place[2]) ** 2), 3)] * 2,
        [knowing(lambda place: 5.0, 3, mean=5.0)] * 2,
    ]
    constants = [None, None, 5.0]
    return Answers(Actions(numbers), possible, constants, np.random.default_rng(0))


def test_an_answer_is_by_the_mean_over_the_models(three_players: Answers) -> None:
    stable = three_players.most_stable(np.array([0.3, 0.1, 0.8]))
    assert stable == pytest.approx([0.45, 0.8, 0.8], abs=0.01)


def test_deviations_are_by_the_mean_over_the_models(three_players: Answers) -> None:
    found = three_players.deviations(np.array([0.3, 0.1, 0.8]), 0.9)
    assert found["a"].profile["a"] == pytest.approx(0.45, abs=0.02)
    assert found["b"].profile["b"] == pytest.approx(0.8, abs=0.02)
    # Nothing is better for c than to stay.
    assert found["c"].profile["c"] == pytest.approx(0.8, abs=1e-12)


@pytest.mark.parametrize("content", [7.0, None], ids=["constant", "never measured"])
def test_the_others_find_their_places_around_a_player_who_has_no_wish(
    content: float | None,
) -> None:
    """a wants to be where c is, b half-way between them; c was seen from .5 to .8 only.

    If c were sent to an end of its range, nobody would know what the others gain there.
    """
    game = {name: {name: Numeric()} for name in "abc"}
    policy = MFUCBPNE(game, [1, 8], budget=2_000)
    rng = np.random.default_rng(0)
    for a, b, c in rng.random((40, 3)) * [1.0, 1.0, 0.3] + [0.0, 0.0, 0.5]:
        utilities = [-float((a - c) ** 2), -float((b - (a + c) / 2.0) ** 2), content]
        policy.tell(Query({"a": a, "b": b, "c": c}, (1, 1, 1)), utilities)
    answer = policy.recommend().profile
    assert answer["a"] == pytest.approx(answer["c"], abs=0.05)
    assert answer["b"] == pytest.approx(answer["c"], abs=0.05)
