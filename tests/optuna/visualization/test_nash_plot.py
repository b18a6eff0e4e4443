import numpy as np
import pytest

from mfhpo_optuna import plot_dissatisfaction, plot_equilibrium
from mfhpo_optuna.visualization import games
from tests.optuna.games import nash_games
from tests.optuna.games.nash_games import PLAYERS, play, tracking_losses
from tests.optuna.visualization.figures import traces


def play_mirrored(game, budget):
    def objective(trial):
        row, column = game(trial)
        if trial.number == 2:
            raise LookupError
        return -row, column

    options = {"fidelity": "seconds", "budget": budget, "catch": (LookupError,)}
    return play(objective, ["maximize", "minimize"], **options)


@pytest.fixture(scope="module", autouse=True)
def few_stages():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(games, "_STAGES", 4)
        yield


def three_players():
    def objective(trial):
        row, column = nash_games.tracking(trial)
        mode = trial.suggest_categorical("mode", ["a", "b"])
        rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
        row += 0.1 * (np.log10(rate) + 1.0) ** 2
        return row, column, {"a": 0.2, "b": 0.7}[mode]

    players = {"row": ["x", "rate"], "column": ["y"], "third": ["mode"]}
    return play(objective, ["minimize", "minimize", "maximize"], players=players, budget=16)


@pytest.mark.slow
def test_a_slice_is_what_the_owner_gains():
    large = three_players()
    slices = plot_equilibrium(large)
    params = large.sampler.equilibrium(large).params
    stars = traces(slices, "recommended")
    shown = [star.x[0] for star in stars]
    *numbers, mode = [params[name] for name in ("x", "rate", "y", "mode")]
    assert shown == [*(pytest.approx(number, rel=1e-5) for number in numbers), mode]
    assert all(star.y == (0.0,) for star in stars)
    _, _, of_y, of_mode = traces(slices, "gain by moving this parameter alone")
    loss = tracking_losses(params["x"], np.array(of_y.x))[1]
    here = tracking_losses(params["x"], params["y"])[1]
    np.testing.assert_allclose(of_y.y, here - loss, atol=0.05)
    # The third player's objective is maximised: b is better by .5.
    assert params["mode"] == "b"
    assert of_mode.y == pytest.approx((-0.5, 0.0), abs=0.1)
    assert of_mode.error_y.array[1] == pytest.approx(0.0, abs=1e-6), "to stay gains nothing"
    assert of_mode.error_y.array[0] > 0.0


def test_dissatisfaction_over_cost():
    coarse = play_mirrored(nash_games.on_a_grid_by_level, 30)
    over_cost = plot_dissatisfaction(coarse)
    answer = coarse.sampler.equilibrium(coarse)
    (line,) = traces(over_cost, "largest of all players")
    paid = np.cumsum([trial.params["seconds"] for trial in coarse.trials])
    assert set(line.x) <= set(paid.tolist())
    assert list(line.x) == sorted(set(line.x))
    assert line.x[-1] == answer.cost
    assert line.y[-1] == pytest.approx(answer.epsilon, rel=1e-5)
    assert line.y[-1] < line.y[0]
    players = [traces(over_cost, player)[0] for player in PLAYERS]
    np.testing.assert_allclose(line.y, np.max([player.y for player in players], axis=0))
