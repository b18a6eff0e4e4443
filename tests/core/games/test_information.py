import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mfhpo.games.costs import best_levels, information_of
from tests.core.games.known_games import direct_posterior
from tests.core.games.model.test_mogp import Case

SLACK = 1e-9


@given(st.integers(0, 10_000), st.integers(0, 8), st.integers(1, 4))
def test_information_is_what_entropies_differ_by(seed, n, n_levels):
    case = Case(seed, n, n_levels, n_points=1)
    top, noise = n_levels - 1, case.known.noise
    at = (np.repeat(case.points, n_levels, axis=0), np.arange(n_levels))
    told = case.features, case.levels
    posterior = direct_posterior(case.known, told, case.values, at)[1]
    of_target = information_of(case.gp, case.points, "target")
    at_level = information_of(case.gp, case.points, "level")
    for level in range(n_levels):
        # H(u_M) + H(y_m) - H(u_M, y_m), of normal variables.
        both = posterior[np.ix_([level, top], [level, top])].copy()
        if level == top:
            both[:] = posterior[top, top]
        both[0, 0] += noise[level]
        expected = 0.5 * np.log(both[0, 0] * both[1, 1] / np.linalg.det(both))
        assert of_target[level].item() == pytest.approx(expected, abs=1e-9)
        own = 0.5 * np.log((posterior[level, level] + noise[level]) / noise[level])
        assert at_level[level].item() == pytest.approx(own, abs=1e-9)
        # What is between them cannot tell more than itself.
        assert of_target[level].item() <= at_level[level].item() + 1e-9
    assert of_target[top].item() == pytest.approx(at_level[top].item(), abs=1e-9)


def brute_force(information, costs, budget):
    n_players, n_levels = costs.shape
    players = np.arange(n_players)
    best = np.full(len(information), -np.inf)
    for levels in itertools.product(range(n_levels), repeat=n_players):
        paid = costs[players, levels].sum()
        if paid <= budget * (1.0 + SLACK):
            best = np.maximum(best, information[:, players, levels].sum(axis=1) / paid)
    return best


@st.composite
def choices(draw, costs_of):
    n_players, n_levels = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 100_000)))
    row = st.lists(costs_of, min_size=n_levels, max_size=n_levels).map(sorted)
    costs = np.array([draw(row) for _ in range(n_players)], dtype=float)
    information = rng.exponential(size=(3, n_players, n_levels)) ** 2
    return np.round(information, draw(st.sampled_from([1, 12]))), costs


def between(costs, share):
    least, most = costs.min(axis=1).sum(), costs.max(axis=1).sum()
    return least + share * (most - least)


@given(choices(st.floats(0.1, 20.0)), st.floats(0.0, 1.5), st.sampled_from([1.0, 1e-4, 1 / 3, 1e5]))
def test_levels_of_the_most_information_per_cost_within_a_budget(case, share, unit):
    information, costs = case
    costs, budget = unit * costs, unit * float(between(costs, share))
    levels, ratios = best_levels(information, costs, budget)
    players = np.arange(len(costs))
    paid = costs[players, levels].sum(axis=1)
    assert (paid <= budget * (1.0 + 2.0 * SLACK)).all()
    gained = np.take_along_axis(information, levels[:, :, None], axis=2).sum(axis=(1, 2))
    assert gained / paid == pytest.approx(ratios, rel=1e-8, abs=1e-12)
    assert (ratios <= brute_force(information, costs, budget) * (1.0 + 1e-8)).all()
    best = brute_force(information, costs, np.inf)
    free, found = best_levels(information, costs, float(costs.max(axis=1).sum()))
    assert (found >= best * (1.0 - 1e-8)).all()
    can_pay = costs[players, free].sum(axis=1) <= budget
    assert (ratios[can_pay] >= best[can_pay] * (1.0 - 1e-8)).all()


def test_levels_that_no_price_tells_apart():
    costs = np.array([[3.0, 1.0], [3.0, 1.0]])
    levels, ratios = best_levels(np.zeros((2, 2, 2)), costs, budget=4.0)
    assert (levels.tolist(), ratios.tolist()) == ([[1, 1]] * 2, [0.0, 0.0])


def test_a_budget_that_pays_for_nothing():
    costs = np.array([[2.0, 8.0], [3.0, 8.0]])
    with pytest.raises(ValueError, match=r"^budget must be at least 5, .* got 4\.5"):
        best_levels(np.ones((1, 2, 2)), costs, budget=4.5)
    assert best_levels(np.ones((1, 2, 2)), costs, budget=5.0)[0].tolist() == [[0, 0]]
