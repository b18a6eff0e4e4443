import json
import math

import optuna
import pytest

from mfhpo_optuna import NashSampler
from tests.optuna.games.nash_games import (
    EQUILIBRIUM,
    PLAYERS,
    evaluated,
    on_a_grid,
    play,
    tracking_losses,
)


@pytest.fixture(scope="module")
def finished():
    return play(budget=16)


@pytest.fixture(scope="module")
def coarse():
    return play(on_a_grid, budget=16)


def answer_of(study):
    return study.sampler.equilibrium(study)


def test_the_equilibrium_of_a_known_game(finished):
    answer = answer_of(finished)
    assert answer.params == pytest.approx(EQUILIBRIUM, abs=0.05)
    assert str(answer).startswith(f"EQUILIBRIUM: x={answer.params['x']:.5g}")
    stored = json.loads(json.dumps(answer.to_dict()))
    assert stored["dissatisfaction"]["row"]["mean"] == answer.dissatisfaction["row"].mean
    assert answer.finished
    assert answer.epsilon < 0.01
    for gain in answer.dissatisfaction.values():
        assert 0.0 <= gain.mean <= answer.epsilon
        assert 0.0 <= gain.interval[0] <= gain.interval[1] <= answer.at_most


@pytest.mark.parametrize("signs", [(1.0, -1.0), (-1.0, 1.0)])
def test_each_direction_is_respected(coarse, signs):
    def mirrored(trial):
        row, column = on_a_grid(trial)
        return signs[0] * row, signs[1] * column

    directions = ["minimize" if sign > 0.0 else "maximize" for sign in signs]
    study = play(mirrored, directions, budget=16)
    assert [params for params, _ in evaluated(study)] == [p for p, _ in evaluated(coarse)]
    answer, expected = answer_of(study), answer_of(coarse)
    assert answer.params == expected.params
    assert answer.dissatisfaction == expected.dissatisfaction
    for player, sign in zip(PLAYERS, signs, strict=True):
        shown, other = answer.utilities[player], expected.utilities[player]
        assert shown.mean == sign * other.mean
        assert shown.interval == tuple(sorted(sign * end for end in other.interval))


def test_what_players_gain_who_deviate(finished):
    found = finished.sampler.deviations(finished, {"x": 0.9, "y": 0.2, "seconds": 3})
    assert list(found) == list(PLAYERS)
    # The row wants 0.6 y, the column 0.5 + 0.2 x; what they lose there is next to nothing.
    row, column = found["row"].profile, found["column"].profile
    assert (row["y"], column["x"]) == (0.2, 0.9)
    assert tracking_losses(row["x"], row["y"])[0] < 0.01
    assert tracking_losses(column["x"], column["y"])[1] < 0.01
    assert found["row"].gain.mean == pytest.approx(0.78**2, abs=0.1)
    assert found["column"].gain.mean == pytest.approx(0.48**2, abs=0.1)
    at_rest = finished.sampler.deviations(finished, EQUILIBRIUM)
    assert all(of.gain.mean < 0.01 for of in at_rest.values())


KINDS = {
    "float log": lambda trial, name: trial.suggest_float(name, 1e-4, 1.0, log=True),
    "float step": lambda trial, name: trial.suggest_float(name, -1.0, 1.0, step=0.25),
    "int": lambda trial, name: trial.suggest_int(name, 3, 40),
    "int log": lambda trial, name: trial.suggest_int(name, 1, 1000, log=True),
    "choice": lambda trial, name: trial.suggest_categorical(name, ["a", "b", "c"]),
    "single": lambda trial, name: trial.suggest_int(name, 5, 5),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_parameter(kind):
    def objective(trial):
        row = KINDS[kind](trial, "x")
        column = trial.suggest_float("y", 0.0, 1.0, step=0.125)
        aim = {"a": 0.1, "b": 0.6, "c": 0.9}.get(row, 0.5) if isinstance(row, str) else 0.5
        size = abs(aim - 0.6) if isinstance(row, str) else abs(math.atan(row) - 0.2)
        return size + 0.1 * column, (column - aim) ** 2

    study = play(objective, budget=6)
    assert len(study.trials) == 6
    answer = answer_of(study)
    distribution = study.trials[0].distributions["x"]
    # What is suggested and what is recommended can be evaluated, and is of the right type.
    shown = [trial.params["x"] for trial in study.trials]
    if kind != "single":
        assert len(set(shown)) > 1
    for value in [*shown, answer.params["x"]]:
        assert distribution._contains(distribution.to_internal_repr(value))
        assert type(value) is type(shown[0])


def test_ask_and_tell_says_when_to_stop():
    sampler = NashSampler(PLAYERS, budget=4, seed=0)
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    while not sampler.equilibrium(study).finished:
        trial = study.ask()
        study.tell(trial, on_a_grid(trial))
    assert evaluated(study) == evaluated(play(on_a_grid, budget=4))
    with pytest.warns(UserWarning, match="trial 4 has nothing.*equilibrium.*finished"):
        study.ask()
