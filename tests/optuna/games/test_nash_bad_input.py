import math

import optuna
import pytest

from mfhpo_optuna import NashSampler
from tests.optuna.games.nash_games import PLAYERS, on_a_grid, play, tracking, tracking_by_level


def test_the_number_of_objectives():
    words = r"1 objectives, but there are 2 players \['row', 'column'\]"
    with pytest.raises(ValueError, match=words):
        play(tracking, ["minimize"])
    sampler = NashSampler(PLAYERS, budget=3)
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match=words):
        sampler.equilibrium(study)
    # Where nothing is suggested, the end of the trial says so.
    with pytest.raises(ValueError, match=words):
        study.optimize(lambda trial: 0.0, n_trials=1)
    assert study.trials[0].state.is_finished()


def test_a_parameter_that_nobody_owns():
    def and_another(trial):
        trial.suggest_float("z", 0.0, 1.0)
        return tracking(trial)

    with pytest.raises(
        ValueError, match=r"suggests 'z' in trial 0.*no player owns.*'row': \['x'\]"
    ):
        play(and_another)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("x", lambda trial: trial.suggest_float("x", 0.0, 2.0)),
        ("seconds", lambda trial: trial.suggest_int("seconds", 1, 27)),
    ],
)
def test_a_distribution_that_changes(name, change):
    def objective(trial):
        if trial.number == 4:
            change(trial)
        return tracking_by_level(trial)

    words = rf"trial 4.*suggests '{name}' as .*, but did as .* before.*another study"
    with pytest.raises(ValueError, match=words):
        play(objective, fidelity="seconds", budget=90)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"players": {"row": ["y"], "column": ["x"]}}, r"'row': \['x'\].*'row': \['y'\]"),
        ({"fidelity": "seconds", "budget": 90}, r"fidelity=\[\].*fidelity=\['seconds'\]"),
    ],
)
def test_another_game_in_the_same_study(options, words):
    study = play(budget=3)
    study.sampler = NashSampler(**{"players": PLAYERS, "budget": 12} | options)
    with pytest.raises(ValueError, match=words):
        study.optimize(tracking_by_level)
    with pytest.raises(ValueError, match=words):
        study.sampler.equilibrium(study)
    assert all(trial.state.is_finished() for trial in study.trials)


def test_a_study_that_fails_always_stops():
    def objective(trial):
        on_a_grid(trial)
        return math.nan, math.nan

    with (
        pytest.warns(UserWarning, match="is stopped: all of the first 30 evaluations failed"),
        pytest.warns(UserWarning, match=r"10 of 10 trials gave a player no value"),
    ):
        study = play(objective, budget=500)
    assert len(study.trials) < 60
