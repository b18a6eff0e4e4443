import math

import optuna
import pytest
from optuna.samplers import PartialFixedSampler, RandomSampler

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


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
@pytest.mark.parametrize("choices", [[1.0, math.nan, None], [(1, 2), {"a": [1]}, [1, 3]]])
def test_choices_of_any_kind(choices, tmp_path):
    """A database brings NaN as another object, and tuples as lists."""

    def objective(trial):
        chosen = trial.suggest_categorical("x", choices)
        place = next(i for i, each in enumerate(choices) if each is chosen or each == chosen)
        column = trial.suggest_float("y", 0.0, 1.0, step=0.25)
        return (place - 1) ** 2 + 0.1 * column, (column - 0.5) ** 2

    sampler = NashSampler(PLAYERS, budget=8, seed=0)
    path = f"sqlite:///{tmp_path / 'game.db'}"
    study = optuna.create_study(storage=path, directions=["minimize"] * 2, sampler=sampler)
    study.optimize(objective, n_trials=20)
    assert len(study.trials) == 8
    answer = sampler.equilibrium(study)
    assert repr(answer.params["x"]) == repr(choices[1])
    assert answer.trials == 8


def test_choices_that_are_equal_to_optuna_are_refused_at_once():
    def objective(trial):
        return trial.suggest_categorical("x", [0, False]), trial.suggest_float("y", 0.0, 1.0)

    with pytest.raises(ValueError, match="choices of 'x' have 0 and False"):
        play(objective)


def fixed(budget, value):
    """A game in which something else than its sampler sets what the row does."""
    sampler = NashSampler(PLAYERS, budget=budget, seed=0)
    by_user = PartialFixedSampler({"x": value}, sampler)
    study = optuna.create_study(directions=["minimize"] * 2, sampler=by_user)
    study.optimize(on_a_grid, n_trials=50)
    return study, sampler.equilibrium(study)


@pytest.mark.filterwarnings("ignore:Fixed parameter")
def test_a_game_whose_trials_do_not_count_ends():
    with pytest.warns(UserWarning, match="trial 0 was evaluated at .* outside the ranges"):
        study, answer = fixed(5, 5.0)
    assert len(study.trials) == 5
    assert (answer.finished, answer.cost, answer.trials) == (True, 5, 0)
    assert "5 trials do not count, as they were none of this game" in answer.reason
    with pytest.raises(ValueError, match="last 10 evaluations were of something else"):
        fixed(50, 5.0)


def test_what_is_fixed_within_the_ranges_counts():
    study, answer = fixed(5, 0.5)
    assert (answer.finished, answer.trials, len(study.trials)) == (True, 5, 5)


def test_trials_of_another_sampler_that_are_no_evaluations_cost_nothing():
    def with_another(trial):
        trial.suggest_float("z", 0.0, 1.0)
        return on_a_grid(trial)

    study = optuna.create_study(directions=["minimize"] * 2, sampler=RandomSampler(seed=0))
    study.optimize(on_a_grid, n_trials=1)
    study.optimize(with_another, n_trials=12)
    study.sampler = NashSampler(PLAYERS, budget=3, seed=0)
    with pytest.warns(UserWarning, match=r"suggests 'z' in trial 1.* does not count, nor do"):
        study.optimize(on_a_grid)
    answer = study.sampler.equilibrium(study)
    assert (answer.trials, answer.cost, len(study.trials)) == (3, 3, 15)
