import numpy as np
import pytest

from mfhpo.games import Hyperparameters, MultiOutputGP
from mfhpo.games.actions import Actions
from mfhpo.games.statements import DrawnGames, DrawnUtilities
from mfhpo.search import Numeric, OneOf
from tests.core.games.known_games import believing

SINGLE = 1e-5  # draws are made in single precision


def believed(n, seed=0):
    rng = np.random.default_rng(seed)
    known = Hyperparameters(
        length_scales=np.array([[0.3, 0.4], [0.5, 0.4], [0.4, 0.6]]),
        correlations=np.array([0.7, 0.9]),
        scales=np.array([1.0, 3.0, 2.0]),
        noise=np.array([0.1, 0.05, 0.02]),
        offsets=np.array([-1.0, 4.0, 1.0]),
    )
    gp = MultiOutputGP(known)
    for _ in range(n):
        level = int(rng.integers(3))
        gp.add(rng.random(2), level, float(known.offsets[level] + rng.standard_normal()))
    return gp


@pytest.mark.parametrize("n", [0, 12])
def test_draws_have_the_posterior_means_and_covariances(n):
    gp = believed(n)
    points = np.random.default_rng(1).random((6, 2))
    # Means over the random features too, which differ from batch to batch.
    drawn = np.concatenate(
        [DrawnUtilities(gp, 60, np.random.default_rng(seed))(points) for seed in range(40)], axis=1
    )
    assert drawn.shape == (6, 2400)
    means, variances = gp.predict(points, 2)
    # 2,400 draws: standard errors are a fiftieth of the standard deviations, and of variances 3%.
    assert (np.abs(drawn.mean(axis=1) - means) < 0.1 * np.sqrt(variances) + 0.02).all()
    covariances = gp.covariances(points, 2)
    assert np.cov(drawn) == pytest.approx(covariances, abs=0.15 * variances.max())


UNITS = np.array([1.0, 3.0])


def test_gains_in_each_drawn_game():
    actions = Actions({"a": {"x": Numeric((0.0, 0.3, 1.0))}, "b": {"y": OneOf(2), "z": OneOf(2)}})
    models = believing(actions, 0, 8, rate=2.0).models
    own = [[gp] for gp in models]
    drawn = DrawnGames(actions, own, UNITS, 20, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    utilities = [
        DrawnUtilities(model, 20, rng)(actions.features(actions.profiles)) for model in models
    ]
    expected = np.zeros((12, 20, 2))
    for row, profile in enumerate(actions.profiles):
        for player, columns in enumerate(actions.cube_columns):
            stay = np.setdiff1d(np.arange(3), columns)
            alike = (actions.profiles[:, stay] == profile[stay]).all(axis=1)
            best = utilities[player][alike].max(axis=0)
            expected[row, :, player] = best - utilities[player][row]
    gains = drawn.dissatisfaction(actions.profiles)
    assert gains == pytest.approx(expected, abs=SINGLE)
    worst = (expected / UNITS).max(axis=2).mean(axis=1)
    assert drawn.worst_of_all_profiles() == pytest.approx(worst, abs=SINGLE)


def test_games_are_drawn_from_all_models_that_may_be_true():
    actions = Actions({"one": {"x": Numeric((0.0, 1.0))}})
    models = []
    for better in (1.0, 5.0):
        known = Hyperparameters.shared(9.0, 9.0, correlations=[0.8], noise=1e-6, n_features=1)
        gp = MultiOutputGP(known)
        gp.add(np.array([0.0]), 1, 0.0)
        gp.add(np.array([1.0]), 1, better)
        models.append(gp)
    drawn = DrawnGames(actions, [models], np.array([2.0]), 8, np.random.default_rng(0))
    gains = drawn.dissatisfaction(np.array([[0.0]]))[0, :, 0]
    assert gains == pytest.approx(np.repeat([1.0, 5.0], 4), abs=0.02)
    assert drawn.worst_of_all_profiles() == pytest.approx([1.5, 0.0], abs=0.02)
