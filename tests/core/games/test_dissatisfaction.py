"""What players gain by deviating, and where the largest gain is smallest, by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mfhpo.games import Hyperparameters, MultiOutputGP
from mfhpo.games.actions import Actions
from mfhpo.games.dissatisfaction import Beliefs, Estimate
from mfhpo.search import Numeric, OneOf
from tests.core.games.known_games import FloatArray

SIGNS = {Estimate.MEAN: 0.0, Estimate.LOWER: -1.0, Estimate.UPPER: 1.0}
BETA = 1.5


def believing(actions: Actions, seed: int, n: int, rate: float = 5.0) -> Beliefs:
    """Beliefs after n observations of utilities at random, at both levels."""
    rng = np.random.default_rng(seed)
    known = Hyperparameters.shared(
        rate, rate, correlations=[0.8], noise=0.01, n_features=actions.n_features
    )
    points = actions.features(actions.profiles)
    models = []
    for _ in actions.players:
        gp = MultiOutputGP(known, points)
        features = actions.features(rng.random((n, len(actions.parameters))))
        for row in features:
            gp.add(row, int(rng.integers(2)), rng.standard_normal())
        models.append(gp)
    return Beliefs(actions, models, BETA)


def places(n: int) -> Numeric:
    return Numeric(tuple(np.linspace(0.0, 1.0, n).tolist()))


def bounds(beliefs: Beliefs, player: int, cube: FloatArray, sign: float) -> FloatArray:
    """A player's utility at profiles, so many half-widths above the mean."""
    model = beliefs.models[player]
    means, variances = model.predict(beliefs.actions.features(cube), 1)
    return means + sign * beliefs.beta * np.sqrt(variances)


def brute_force(
    beliefs: Beliefs, cube: FloatArray, estimate: Estimate, own: list[FloatArray]
) -> FloatArray:
    """Eq. 32 one profile, one player and one deviation at a time; to stay is one."""
    gains = np.zeros((len(cube), len(own)))
    sign = SIGNS[estimate]
    for row, profile in enumerate(cube):
        for player, values in enumerate(own):
            there = np.repeat(profile[None, :], len(values) + 1, axis=0)
            there[:-1, beliefs.actions.cube_columns[player]] = values
            best = bounds(beliefs, player, there, sign).max()
            gains[row, player] = best - bounds(beliefs, player, profile[None, :], -sign)[0]
    return gains


def discrete() -> Actions:
    """Three players with 4, 3 and 6 actions."""
    return Actions(
        {
            "a": {"x": places(4)},
            "b": {"kind": OneOf(3)},
            "c": {"y": places(3), "mode": OneOf(2)},
        }
    )


# One profile.


@pytest.mark.parametrize("estimate", Estimate)
@given(seed=st.integers(0, 1_000), n=st.integers(0, 12))
@settings(max_examples=8)
def test_gains_of_a_few_actions(estimate: Estimate, seed: int, n: int) -> None:
    actions = discrete()
    beliefs = believing(actions, seed, n)
    cube = actions.profiles[::5]
    expected = brute_force(beliefs, cube, estimate, actions.own)
    assert beliefs.dissatisfaction(cube, estimate) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("estimate", Estimate)
@given(seed=st.integers(0, 1_000), rate=st.sampled_from([5.0, 60.0]))
@settings(max_examples=8)
def test_gains_of_many_actions_at_one_profile(estimate: Estimate, seed: int, rate: float) -> None:
    actions = Actions({"a": {"x": places(25)}, "b": {"y": Numeric()}})
    beliefs = believing(actions, seed, 12, rate)
    cube = np.random.default_rng(seed).random((1, 2))
    cube[:, 0] = 0.25
    expected = brute_force(beliefs, cube, estimate, actions.own)
    assert beliefs.dissatisfaction(cube, estimate) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("estimate", [Estimate.LOWER, Estimate.UPPER])
def test_gains_of_many_actions_at_many_profiles(estimate: Estimate) -> None:
    """Some deviations are left out: gains are those at single profiles, or a little less."""
    actions = Actions({"a": {"x": places(25)}, "b": {"y": places(25)}})
    for seed in range(4):
        beliefs = believing(actions, seed, 15)
        cube = np.random.default_rng(seed).permutation(actions.profiles)[:100]
        at_once = beliefs.dissatisfaction(cube, estimate)
        exact = np.concatenate([beliefs.dissatisfaction(row[None, :], estimate) for row in cube])
        assert (at_once <= exact + 1e-9).all()
        assert np.mean(exact - at_once) < 0.05
        # Those who stay are never left out.
        assert (
            at_once >= brute_force(beliefs, cube, estimate, [np.zeros((0, 1))] * 2) - 1e-9
        ).all()


@given(st.integers(0, 1_000), st.integers(0, 10))
@settings(max_examples=20)
def test_no_player_loses_by_the_means(seed: int, n: int) -> None:
    actions = Actions({"a": {"x": Numeric(), "kind": OneOf(3)}, "b": {"y": Numeric()}})
    beliefs = believing(actions, seed, n)
    cube = np.random.default_rng(seed).random((20, 3))
    mean = beliefs.dissatisfaction(cube, Estimate.MEAN)
    assert (mean >= 0.0).all()
    lower = beliefs.dissatisfaction(cube, Estimate.LOWER)
    upper = np.concatenate([beliefs.dissatisfaction(row[None], Estimate.UPPER) for row in cube])
    assert (lower <= mean + 1e-9).all()
    assert (mean <= upper + 1e-9).all()


@pytest.mark.parametrize("estimate", Estimate)
def test_best_responses(estimate: Estimate) -> None:
    actions = Actions({"a": {"x": Numeric()}, "b": {"y": places(12), "kind": OneOf(2)}})
    for seed in range(5):
        beliefs = believing(actions, seed, 10, rate=20.0)
        profile = np.random.default_rng(seed).random((1, 3))
        for player, own in enumerate(actions.own):
            there = np.repeat(profile, len(own), axis=0)
            there[:, actions.cube_columns[player]] = own
            values = bounds(beliefs, player, there, SIGNS[estimate])
            got = beliefs.best_response(profile, player, estimate)
            assert got.tolist() == [there[int(np.argmax(values))].tolist()]


def test_gains_before_anything_is_known() -> None:
    beliefs = believing(discrete(), seed=0, n=0)
    profile = beliefs.actions.profiles[:1]
    for estimate, expected in (
        (Estimate.MEAN, 0.0),
        (Estimate.LOWER, -2.0 * BETA),
        (Estimate.UPPER, 2.0 * BETA),
    ):
        gains = beliefs.dissatisfaction(profile, estimate)
        assert gains == pytest.approx(np.full((1, 3), expected))


# The least.


@pytest.mark.parametrize("estimate", Estimate)
@given(seed=st.integers(0, 1_000), n=st.integers(1, 12))
@settings(max_examples=5)
def test_the_least_of_a_finite_game(estimate: Estimate, seed: int, n: int) -> None:
    actions = discrete()
    beliefs = believing(actions, seed, n)
    worst = brute_force(beliefs, actions.profiles, estimate, actions.own).max(axis=1)
    found = beliefs.least(estimate, np.random.default_rng(0))
    (row,) = np.flatnonzero((actions.profiles == found).all(axis=1))
    assert worst[row] == pytest.approx(worst.min(), abs=1e-9)


@pytest.mark.parametrize("estimate", [Estimate.MEAN, Estimate.LOWER])
@pytest.mark.parametrize("product", [True, False])
def test_the_least_of_a_continuous_game(
    estimate: Estimate, product: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search from a grid, and one from quasi-random profiles, against a dense grid."""
    if not product:
        monkeypatch.setattr("mfhpo.games.actions._PRODUCT", 100)
    actions = Actions({"row": {"x": Numeric()}, "column": {"y": Numeric()}})
    assert (actions.shape is not None) == product
    axis = np.linspace(0.0, 1.0, 121)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    fine = np.linspace(0.0, 1.0, 1001)[:, None]
    sign = SIGNS[estimate]
    missed = []
    for seed in range(6):
        beliefs = believing(actions, seed, 14, rate=8.0)
        worst = np.full((121, 121), -np.inf)
        for player in (0, 1):
            there = bounds(beliefs, player, grid, sign).reshape(121, 121)
            here = bounds(beliefs, player, grid, -sign).reshape(121, 121)
            worst = np.maximum(worst, there.max(axis=player, keepdims=True) - here)
        found = beliefs.least(estimate, np.random.default_rng(seed))
        assert ((found >= 0.0) & (found <= 1.0)).all()
        got = brute_force(beliefs, found[None, :], estimate, [fine, fine]).max()
        missed.append(got - worst.min())
    # In standard deviations of the utilities; the grid itself is about .005 off. Bounds have many
    # local minima, of which quasi-random profiles may miss the least.
    misses = 0 if product or estimate is Estimate.MEAN else 1
    assert np.mean(missed) < (0.05 if misses else 0.01)
    assert np.sort(missed)[-1 - misses] < 0.04
    assert max(missed) < (0.3 if misses else 0.04)


def test_a_start_that_is_given_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mfhpo.games.actions._PRODUCT", 1)
    monkeypatch.setattr("mfhpo.games.dissatisfaction._ROUNDS", 0)
    actions = Actions({"row": {"x": Numeric()}, "column": {"y": Numeric()}})
    known = Hyperparameters.shared(10.0, 10.0, correlations=[0.8], noise=1e-4, n_features=2)
    models = [MultiOutputGP(known, actions.features(actions.profiles)) for _ in range(2)]
    equilibrium = np.array([0.4317, 0.7121])
    for model in models:
        model.add(equilibrium, 1, 2.0)
    beliefs = Beliefs(actions, models, BETA)
    without = beliefs.least(Estimate.MEAN, np.random.default_rng(0))
    assert without.tolist() != equilibrium.tolist()
    found = beliefs.least(Estimate.MEAN, np.random.default_rng(0), equilibrium[None, :])
    assert found.tolist() == equilibrium.tolist()


class Thorough(Beliefs):
    """Works out all players' gains at all profiles, and all responses anew in every round."""

    def _improved(
        self,
        profiles: FloatArray,
        gains: FloatArray,
        estimate: Estimate,
        rng: np.random.Generator,
    ) -> FloatArray:
        starts, worst = profiles, gains.max(axis=1)
        on_grid = self.actions.shape is not None
        step, n_moves = (0.03, 6) if on_grid else (0.1, 12)
        n, n_parameters = profiles.shape
        for _ in range(24):
            if step < 0.001:
                break
            tried, everyone = [], profiles.copy()
            for player, columns in enumerate(self.actions.cube_columns):
                tried.append(self.best_response(profiles, player, estimate))
                everyone[:, columns] = tried[-1][:, columns]
            tried.append(everyone)
            shift = step * rng.standard_normal((n_moves, n, n_parameters))
            alone = rng.integers(n_parameters, size=(n_moves // 2, n, 1))
            shift[: n_moves // 2] *= np.arange(n_parameters) == alone
            tried.extend(np.clip(profiles + shift, 0.0, 1.0))
            values = self.dissatisfaction(np.concatenate(tried), estimate).max(axis=1)
            values = values.reshape(-1, n)
            moved = False
            for row, move in enumerate(values.argmin(axis=0)):
                if values[move, row] < worst[row]:
                    profiles, moved = profiles.copy(), True
                    profiles[row], worst[row] = tried[move][row], values[move, row]
            step *= 1.0 if moved else 0.5
        ends = np.concatenate((profiles, starts))
        found: FloatArray = ends[self.dissatisfaction(ends, estimate).max(axis=1).argmin()]
        return found


@pytest.mark.parametrize("estimate", Estimate)
@pytest.mark.parametrize("owned", [(2, 2, 2), (1, 1), (3,)])
@pytest.mark.parametrize("all_looked_at", [1024, 110])
def test_what_is_not_worked_out_changes_nothing(
    estimate: Estimate,
    owned: tuple[int, ...],
    all_looked_at: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor does it how many deviations of those that moved could be looked at."""
    monkeypatch.setattr("mfhpo.games.dissatisfaction._ALL_LOOKED_AT", all_looked_at)
    players = {
        f"player {player}": {f"x{player}_{own}": Numeric() for own in range(n_own)}
        for player, n_own in enumerate(owned)
    }
    actions = Actions(players)
    for seed, n, rate in ((0, 20, 4.0), (1, 2, 4.0), (5, 4, 20.0)):
        quick = believing(actions, seed, n, rate)
        found, expected = (
            beliefs.least(estimate, np.random.default_rng(seed))
            for beliefs in (quick, Thorough(actions, quick.models, BETA))
        )
        assert found == pytest.approx(expected, abs=1e-9)
