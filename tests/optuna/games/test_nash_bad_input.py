"""Wrong arguments and objectives: each error names what is wrong and what would be right."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from mfhpo_optuna import Fidelity, NashSampler, RaceSampler
from tests.optuna.games.nash_games import (
    GAME,
    PLAYERS,
    evaluated,
    play,
    tracking,
    tracking_by_level,
)

optuna.logging.set_verbosity(optuna.logging.CRITICAL)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"players": {}}, ["players", "none"]),
        ({"players": {"row": [], "column": ["y"]}}, ["players['row']", "no parameters"]),
        ({"players": {"row": ["x"], "column": ["x"]}}, ["'x'", "'row'", "'column'", "one owner"]),
        ({"players": {"row": ["x", "x"]}}, ["'x'", "one owner"]),
        ({"budget": 0}, ["budget", "positive", "0"]),
        ({"budget": float("inf")}, ["budget", "inf"]),
        ({"budget": 0.5}, ["budget", "at least 1", "0.5"]),
        ({"beta": 0.0}, ["beta", "positive", "0.0"]),
        ({"probability": 1.0}, ["probability", "1.0", "between 0 and 1"]),
        ({"lease": 0.0}, ["lease", "positive", "0.0"]),
        ({"seed": -1}, ["seed", "at least 0", "-1"]),
        ({"fidelity": ""}, ["name", "''"]),
        ({"fidelity": "x"}, ["fidelity='x'", "'row' owns", "leave it out"]),
        ({"fidelity": {"row": "steps"}}, ["fidelity", "['row', 'column']", "['row']"]),
        ({"fidelity": {"row": "s", "column": "s"}}, ["'s'", "give fidelity='s'"]),
        ({"fidelity": "epochs", "joint": False}, ["joint=False", "'epochs'", "player: name"]),
        ({"joint": False}, ["joint=False", "fidelity=None"]),
        (
            {"fidelity": {"row": "r", "column": "c"}, "joint": True},
            ["joint=True", "one fidelity"],
        ),
        ({"costs": [1, 2]}, ["costs=[1, 2]", "no", "Leave costs out"]),
        ({"fidelity": "epochs", "costs": [2, 1]}, ["costs", "increase", "2"]),
        ({"fidelity": "epochs", "costs": "measured"}, ["costs='measured'", "costs=[...]"]),
        ({"fidelity": Fidelity("epochs", costs="measured")}, ["costs='measured'", "costs=[...]"]),
        (
            {"fidelity": Fidelity("epochs", costs=[1, 2]), "costs": [1, 3]},
            ["costs=[1, 3]", "(1.0, 2.0)", "one of them"],
        ),
        (
            {"fidelity": Fidelity("epochs", levels=[1, 20])},
            ["budget", "at least 20", "12"],
        ),
        ({"averaging": True}, ["averaging=True", "fidelity"]),
    ],
)
def test_bad_values(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        NashSampler(**{"players": PLAYERS, "budget": 12} | options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"players": ["x", "y"]}, ["players", "['x', 'y']", "map"]),
        ({"players": {"row": "x"}}, ["players['row']='x'", "list"]),
        ({"players": {"row": [1]}}, ["players['row']=[1]"]),
        ({"players": {"row": [""]}}, ["players['row']=['']"]),
        ({"players": {1: ["x"]}}, ["players[1]"]),
        ({"fidelity": 3}, ["fidelity", "3", "Fidelity"]),
        ({"fidelity": {"row": 1, "column": 2}}, ["fidelity", "1"]),
        ({"joint": 1}, ["joint", "1"]),
        ({"averaging": "yes", "fidelity": "epochs"}, ["averaging", "'yes'"]),
        ({"budget": "12"}, ["budget", "'12'"]),
        ({"budget": True}, ["budget", "True"]),
        ({"beta": None}, ["beta", "None"]),
        ({"lease": "1"}, ["lease", "'1'", "seconds"]),
        ({"progress": 1}, ["progress", "1"]),
        ({"seed": 1.5}, ["seed", "1.5"]),
        ({"fidelity": "epochs", "costs": 3}, ["costs", "3"]),
    ],
)
def test_bad_types(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(TypeError, match=r".") as caught:
        NashSampler(**{"players": PLAYERS, "budget": 12} | options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("directions", [["minimize"], ["minimize"] * 3])
def test_the_number_of_objectives(directions: list[str]) -> None:
    words = rf"{len(directions)} objectives, but there are 2 players \['row', 'column'\]"
    with pytest.raises(ValueError, match=words):
        play(tracking, directions)
    sampler = NashSampler(PLAYERS, budget=3)
    study = optuna.create_study(directions=directions, sampler=sampler)
    with pytest.raises(ValueError, match=words):
        sampler.equilibrium(study)
    # Where nothing is suggested, the end of the trial says so.
    with pytest.raises(ValueError, match=words):
        study.optimize(lambda trial: [0.0] * len(directions), n_trials=1)
    assert study.trials[0].state.is_finished()


def and_another(trial: optuna.Trial) -> Sequence[float]:
    trial.suggest_float("z", 0.0, 1.0)
    return tracking(trial)


def test_a_parameter_that_nobody_owns() -> None:
    with pytest.raises(
        ValueError, match=r"suggests 'z' in trial 0.*no player owns.*'row': \['x'\]"
    ):
        play(and_another)


def test_a_parameter_that_nobody_owns_and_that_was_enqueued() -> None:
    sampler = NashSampler(PLAYERS, budget=5, seed=0)
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    study.enqueue_trial({"z": 0.5})
    with pytest.raises(ValueError, match=r"suggests 'z' in trial 0"):
        study.optimize(and_another)


def test_a_constant_that_nobody_owns_is_harmless() -> None:
    def objective(trial: optuna.Trial) -> Sequence[float]:
        trial.suggest_categorical("dataset", ["digits"])
        return tracking(trial)

    assert len(evaluated(play(objective, budget=4))) == 4


def test_a_name_that_is_nearly_right_is_pointed_at() -> None:
    players = {"row": ["workers"], "column": ["y"]}

    def objective(trial: optuna.Trial) -> Sequence[float]:
        return trial.suggest_float("worker", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)

    with pytest.raises(ValueError, match=r"Did you mean 'workers'\?"):
        play(objective, players=players)


def test_a_parameter_that_is_never_suggested() -> None:
    players = {"row": ["x", "batch"], "column": ["y"]}
    words = r"players\['row'\] owns 'batch'.*did not ask for it in trial 0.*\['x', 'y'\]"
    with pytest.raises(ValueError, match=words):
        play(tracking, players=players)


def test_a_fidelity_that_is_never_suggested() -> None:
    with pytest.raises(ValueError, match=r"fidelity='seconds'.*did not ask for it in trial 0"):
        play(tracking, fidelity="seconds", budget=90)


def test_a_parameter_that_is_not_always_suggested() -> None:
    def objective(trial: optuna.Trial) -> Sequence[float]:
        x = trial.suggest_float("x", 0.0, 1.0)
        return x, trial.suggest_float("y", 0.0, 1.0) if trial.number < 3 else 0.0

    with pytest.raises(ValueError, match=r"players\['column'\] owns 'y'.*in trial 3"):
        play(objective)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("x", lambda trial: trial.suggest_float("x", 0.0, 2.0)),
        ("x", lambda trial: trial.suggest_float("x", 0.0, 1.0, step=0.5)),
        ("seconds", lambda trial: trial.suggest_int("seconds", 1, 27)),
    ],
)
def test_a_distribution_that_changes(name: str, change: Callable[[optuna.Trial], object]) -> None:
    def objective(trial: optuna.Trial) -> Sequence[float]:
        if trial.number == 4:
            change(trial)
        return tracking_by_level(trial)

    words = rf"trial 4.*suggests '{name}' as .*, but did as .* before.*another study"
    with pytest.raises(ValueError, match=words):
        play(objective, fidelity="seconds", budget=90)


def test_an_enqueued_distribution_that_changes() -> None:
    def objective(trial: optuna.Trial) -> Sequence[float]:
        x = trial.suggest_float("x", 0.0, 1.0 + trial.number)
        return x, trial.suggest_float("y", 0.0, 1.0)

    sampler = NashSampler(PLAYERS, budget=5, seed=0)
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    study.enqueue_trial({"x": 0.5, "y": 0.5})
    study.enqueue_trial({"x": 0.6, "y": 0.5})
    with pytest.raises(ValueError, match=r"trial 1: the objective suggests 'x' as"):
        study.optimize(objective)


def test_a_level_that_the_objective_does_not_allow() -> None:
    with pytest.raises(ValueError, match=r"'seconds'.*81.*does not allow"):
        play(tracking_by_level, fidelity=Fidelity("seconds", levels=[1, 81]), budget=90)


def test_an_error_does_not_spoil_the_study() -> None:
    sampler = NashSampler(PLAYERS, budget=6, seed=0)
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    study.optimize(tracking, n_trials=2)
    with pytest.raises(ValueError, match="no player owns"):
        study.optimize(and_another)
    study.optimize(tracking)
    assert [t.state for t in study.trials].count(TrialState.COMPLETE) == 5
    assert sampler.equilibrium(study).cost == 6
    # A typing error in the sampler's arguments is no reason to refuse the right ones.
    other = optuna.create_study(directions=["minimize"] * 2)
    other.sampler = NashSampler({"row": ["u"], "column": ["y"]}, budget=6)
    with pytest.raises(ValueError, match="no player owns"):
        other.optimize(tracking)
    assert GAME not in other.user_attrs
    other.sampler = sampler
    other.optimize(tracking)
    assert sampler.equilibrium(other).finished


def test_errors_are_not_caught_for_ever() -> None:
    with pytest.raises(ValueError, match="budget must be at least 9"):
        play(tracking_by_level, fidelity="seconds", budget=8, catch=(ValueError,))


def test_trials_that_all_fail_end_the_study() -> None:
    def objective(trial: optuna.Trial) -> Sequence[float]:
        raise LookupError

    with pytest.warns(UserWarning, match=r"every trial failed.*\['x', 'y'\]"):
        study = play(objective, catch=(LookupError,))
    assert len(study.trials) == 30


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"players": {"row": ["y"], "column": ["x"]}}, r"'row': \['x'\].*'row': \['y'\]"),
        ({"players": {"column": ["y"], "row": ["x"]}}, r"cannot go on"),
        ({"fidelity": "seconds", "budget": 90}, r"fidelity=\[\].*fidelity=\['seconds'\]"),
    ],
)
def test_another_game_in_the_same_study(options: dict[str, Any], words: str) -> None:
    study = play(budget=3)
    study.sampler = NashSampler(**{"players": PLAYERS, "budget": 12} | options)
    with pytest.raises(ValueError, match=words):
        study.optimize(tracking_by_level)
    with pytest.raises(ValueError, match=words):
        study.sampler.equilibrium(study)
    assert all(trial.state.is_finished() for trial in study.trials)


def test_a_race_s_study_is_another_kind() -> None:
    study = optuna.create_study(sampler=RaceSampler(trials=4, seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0))
    sampler = NashSampler(PLAYERS, budget=4)
    with pytest.raises(ValueError, match="1 objectives, but there are 2 players"):
        sampler.equilibrium(study)


def test_a_study_that_fails_always_stops() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        tracking(trial)
        return math.nan, math.nan

    with pytest.warns(UserWarning, match=r"every trial failed and none gave any player a value"):
        study = play(objective, budget=500)
    assert len(study.trials) < 60


def test_many_failures_deserve_a_warning() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        row, column = tracking(trial)
        return (row, column) if trial.number % 2 else (math.nan, math.nan)

    with pytest.warns(UserWarning, match=r"10 of \d+ trials gave a player no value"):
        play(objective, budget=24)


def test_a_player_whose_objective_never_gives_a_value() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        return tracking(trial)[0], math.inf

    with pytest.warns(UserWarning, match=r"gave a player no value"):
        study = play(objective, budget=14)
    answer = study.sampler.equilibrium(study)
    assert "claim       none, for nothing was observed of column" in str(answer)
    assert answer.epsilon == math.inf
    json.dumps(answer.to_dict(), allow_nan=False)
