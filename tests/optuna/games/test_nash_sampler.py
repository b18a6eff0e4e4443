"""Searches for equilibria: what is found, what is asked for, what it costs, what is said."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState

from mfhpo_optuna import NashSampler, StudyEquilibrium
from tests.optuna.games.nash_games import (
    EQUILIBRIUM,
    GAME,
    PLAYERS,
    QUERY,
    evaluated,
    on_a_grid,
    play,
    tracking,
    tracking_losses,
)

optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(scope="module")
def finished() -> optuna.Study:
    return play(budget=16)


@pytest.fixture(scope="module")
def coarse() -> optuna.Study:
    return play(on_a_grid, budget=16)


def answer_of(study: optuna.Study) -> StudyEquilibrium:
    answer: StudyEquilibrium = study.sampler.equilibrium(study)
    return answer


# What is found.


def test_the_equilibrium_of_a_known_game(finished: optuna.Study) -> None:
    answer = answer_of(finished)
    assert answer.params == pytest.approx(EQUILIBRIUM, abs=0.05)
    assert answer.finished
    assert answer.epsilon < 0.01
    for gain in answer.dissatisfaction.values():
        assert 0.0 <= gain.mean <= answer.epsilon
        assert 0.0 <= gain.interval[0] <= gain.interval[1] <= answer.at_most


@pytest.mark.parametrize("signs", [(1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])
def test_each_direction_is_respected(coarse: optuna.Study, signs: tuple[float, ...]) -> None:
    """Mirrored objectives, with mirrored directions, are the same game."""

    def mirrored(trial: optuna.Trial) -> tuple[float, float]:
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


def test_utilities_are_those_of_the_profile_in_its_own_unit() -> None:
    def scaled(trial: optuna.Trial) -> tuple[float, float]:
        row, column = tracking(trial)
        return 1000.0 * row + 500.0, -column

    study = play(scaled, ["minimize", "maximize"], budget=20)
    answer = answer_of(study)
    row, column = tracking_losses(answer.params["x"], answer.params["y"])
    assert answer.utilities["row"].mean == pytest.approx(1000.0 * row + 500.0, abs=10.0)
    assert answer.utilities["column"].mean == pytest.approx(-column, abs=0.01)


def test_what_players_gain_who_deviate(finished: optuna.Study) -> None:
    found = finished.sampler.deviations(finished, {"x": 0.9, "y": 0.2, "seconds": 3})
    assert list(found) == list(PLAYERS)
    # The row wants 0.6 y, the column 0.5 + 0.2 x; what they lose there is next to nothing.
    row, column = found["row"].params, found["column"].params
    assert (row["y"], column["x"]) == (0.2, 0.9)
    assert tracking_losses(row["x"], row["y"])[0] < 0.01
    assert tracking_losses(column["x"], column["y"])[1] < 0.01
    assert found["row"].gain.mean == pytest.approx(0.78**2, abs=0.1)
    assert found["column"].gain.mean == pytest.approx(0.48**2, abs=0.1)
    at_rest = finished.sampler.deviations(finished, EQUILIBRIUM)
    assert all(of.gain.mean < 0.01 for of in at_rest.values())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"x": 0.5}, r"^params must have the parameters \['x', 'y'\], got \['x'\]"),
        ({"x": 0.5, "y": 1.5}, r"^params\['y'\] must be within FloatDistribution"),
    ],
)
def test_profiles_that_are_none(
    finished: optuna.Study, params: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        finished.sampler.deviations(finished, params)


def test_best_trials_are_the_wrong_notion() -> None:
    """A dilemma: what a player gives costs it 1 and gives the other one 2; to give nothing is the
    only equilibrium, and worse for both than to give everything."""

    def dilemma(trial: optuna.Trial) -> tuple[float, float]:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        return 2.0 * y - x, 2.0 * x - y

    study = play(dilemma, ["maximize", "maximize"], budget=16)
    answer = answer_of(study)
    # A player gains by deviating what it gives.
    assert max(answer.params.values()) < 0.05
    assert any(max(trial.params.values()) < 0.05 for trial in study.trials)
    assert all(max(trial.params.values()) > 0.05 for trial in study.best_trials)
    assert any(min(trial.values) > 0.2 for trial in study.best_trials), "better for both"


def test_one_player_is_an_ordinary_search() -> None:
    def bowl(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        return (x - 0.3) ** 2 + (y - 0.7) ** 2

    sampler = NashSampler({"one": ["x", "y"]}, budget=16, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl)
    assert len(study.trials) == 16
    answer = sampler.equilibrium(study)
    assert answer.params == pytest.approx({"x": 0.3, "y": 0.7}, abs=0.1)
    assert study.best_value < 0.01


def test_a_player_with_nothing_to_choose_never_deviates() -> None:
    def fixed(trial: optuna.Trial) -> tuple[float, float]:
        y = trial.suggest_categorical("y", ["only"])
        x = trial.suggest_float("x", 0.0, 1.0)
        return (x - 0.3) ** 2, float(y == "only")

    study = play(fixed, budget=8)
    answer = answer_of(study)
    assert answer.params == {"x": pytest.approx(0.3, abs=0.1), "y": "only"}
    assert answer.dissatisfaction["column"].mean == pytest.approx(0.0, abs=1e-9)


# Which values are suggested.


KINDS: dict[str, Callable[[optuna.Trial, str], Any]] = {
    "float": lambda trial, name: trial.suggest_float(name, -2.0, 2.0),
    "float log": lambda trial, name: trial.suggest_float(name, 1e-4, 1.0, log=True),
    "float step": lambda trial, name: trial.suggest_float(name, -1.0, 1.0, step=0.25),
    "int": lambda trial, name: trial.suggest_int(name, 3, 40),
    "int log": lambda trial, name: trial.suggest_int(name, 1, 1000, log=True),
    "int step": lambda trial, name: trial.suggest_int(name, 2, 20, step=3),
    "choice": lambda trial, name: trial.suggest_categorical(name, ["a", "b", "c"]),
    "single": lambda trial, name: trial.suggest_int(name, 5, 5),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_parameter(kind: str) -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        row = KINDS[kind](trial, "x")
        column = trial.suggest_float("y", 0.0, 1.0, step=0.125)
        aim = {"a": 0.1, "b": 0.6, "c": 0.9}.get(row, 0.5) if isinstance(row, str) else 0.5
        size = abs(aim - 0.6) if isinstance(row, str) else abs(math.atan(row) - 0.2)
        return size + 0.1 * column, (column - aim) ** 2

    study = play(objective, budget=9)
    assert len(study.trials) == 9
    answer = answer_of(study)
    distribution = study.trials[0].distributions["x"]
    # What is suggested and what is recommended can be evaluated, and is of the right type.
    shown = [trial.params["x"] for trial in study.trials]
    if kind != "single":
        assert len(set(shown)) > 1
    for value in [*shown, answer.params["x"]]:
        assert distribution._contains(distribution.to_internal_repr(value))
        assert type(value) is type(shown[0])


def test_choices_have_an_equilibrium() -> None:
    """Coordination with a dominant choice: (b, 8) is the only equilibrium."""

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        mode = trial.suggest_categorical("mode", ["a", "b", "c"])
        threads = trial.suggest_int("threads", 1, 16, log=True)
        row = {"a": 0.0, "b": 1.0, "c": 0.3}[mode]
        column = -abs(math.log2(threads) - (3.0 if mode == "b" else 1.0))
        return row, column

    players = {"row": ["mode"], "column": ["threads"]}
    study = play(objective, ["maximize", "maximize"], players=players, budget=24)
    assert answer_of(study).params == {"mode": "b", "threads": 8}


# What it costs.


@pytest.mark.parametrize("budget", [1, 2, 7])
def test_without_a_fidelity_the_budget_is_in_trials(budget: int) -> None:
    study = play(on_a_grid, budget=budget)
    assert len(study.trials) == budget
    answer = answer_of(study)
    assert (answer.cost, answer.trials, answer.evaluations) == (budget, budget, budget)
    assert answer.finished


def test_a_finished_study_adds_one_trial_that_does_not_count() -> None:
    study = play(on_a_grid, budget=3)
    study.optimize(on_a_grid, n_trials=10)
    assert [trial.state for trial in study.trials[3:]] == [TrialState.PRUNED]
    assert answer_of(study).trials == 3


def test_a_larger_budget_goes_on() -> None:
    study = play(budget=4)
    study.sampler = NashSampler(PLAYERS, budget=9, seed=0)
    study.optimize(tracking)
    assert [params for params, _ in evaluated(study)] == [p for p, _ in evaluated(play(budget=9))]


def test_only_new_trials_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    study = play(n_trials=5, budget=20)
    policy = study.sampler._games.of(study).policy
    told = []
    tell = policy.tell
    monkeypatch.setattr(policy, "tell", lambda *args: (told.append(args), tell(*args)))
    study.optimize(tracking, n_trials=4)
    study.sampler._games.read(study)
    assert len(told) == 4


def test_trials_that_were_there_are_read_once() -> None:
    study = optuna.create_study(directions=["minimize"] * 2)
    distributions: dict[str, Any] = {
        name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in ("x", "y")
    }
    sampler = NashSampler(PLAYERS, budget=1000, seed=0)
    study.sampler = sampler
    read: list[FrozenTrial] = []
    game = sampler._games.of(study)
    finish = game.finish
    game.finish = lambda trial, *args: (read.append(trial), finish(trial, *args))[1]
    rng = np.random.default_rng(0)
    for _ in range(40):
        x, y = rng.random(2).tolist()
        study.add_trial(
            optuna.create_trial(
                values=list(tracking_losses(x, y)),
                params={"x": x, "y": y},
                distributions=distributions,
            )
        )
    sampler._games.read(study)
    assert len(read) == 40
    study.optimize(tracking, n_trials=3)
    assert len(read) == 43


# What is said.


def test_the_answer_before_anything_is_known() -> None:
    sampler = NashSampler(PLAYERS, budget=5, seed=0)
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    answer = sampler.equilibrium(study)
    assert answer.params == {}
    assert not answer.finished
    assert answer.epsilon == math.inf
    assert "no trial has told all players' parameters" in answer.reason
    assert str(answer).splitlines()[0] == "NO EQUILIBRIUM YET"
    study.optimize(on_a_grid, n_trials=1)
    assert set(sampler.equilibrium(study).params) == {"x", "y"}
    assert "4 of the budget is left" in str(sampler.equilibrium(study))


def test_the_answer_can_be_printed_and_stored(finished: optuna.Study) -> None:
    answer = answer_of(finished)
    text = str(answer)
    assert text.startswith(f"EQUILIBRIUM: x={answer.params['x']:.5g}, y={answer.params['y']:.5g}\n")
    for word in ("row", "column", "would gain", "16 of 16 in 16 trials", "probability 0.9"):
        assert word in text
    stored = json.loads(json.dumps(answer.to_dict()))
    assert stored["params"] == answer.params
    assert stored["dissatisfaction"]["row"]["mean"] == answer.dissatisfaction["row"].mean


def test_attributes_are_small_and_plain(finished: optuna.Study) -> None:
    assert finished.user_attrs == {
        GAME: {
            "players": {"row": ["x"], "column": ["y"]},
            "fidelity": [],
            "levels": [],
            "costs": [[1.0], [1.0]],
        }
    }
    for trial in finished.trials:
        assert list(trial.user_attrs) == [QUERY]
        assert not trial.system_attrs
        assert len(json.dumps(trial.user_attrs)) < 200


def test_progress_is_written_where_it_is_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    play(budget=3, progress=True)
    assert "cost 3 of 3" in capfd.readouterr().err
    play(budget=3, progress=False)
    assert capfd.readouterr().err == ""


# The same again.


def test_the_seed_makes_a_study_repeatable(finished: optuna.Study) -> None:
    assert evaluated(play(budget=16)) == evaluated(finished)
    assert evaluated(play(budget=2, seed=1))[0] != evaluated(finished)[0]


def test_without_a_seed_the_name_of_the_study_decides() -> None:
    first = []
    for name in ("one", "one", "other"):
        sampler = NashSampler(PLAYERS, budget=3)
        study = optuna.create_study(study_name=name, directions=["minimize"] * 2, sampler=sampler)
        study.optimize(tracking)
        first.append(evaluated(study)[0])
    assert first[0] == first[1] != first[2]


def test_a_sampler_can_be_pickled(coarse: optuna.Study) -> None:
    sampler = pickle.loads(pickle.dumps(coarse.sampler))
    assert sampler.equilibrium(coarse) == answer_of(coarse)


def test_one_sampler_serves_several_studies(finished: optuna.Study) -> None:
    other = optuna.create_study(directions=["minimize"] * 2, sampler=finished.sampler)
    other.optimize(tracking)
    assert evaluated(other) == evaluated(finished)
    assert finished.sampler.equilibrium(finished).trials == 16


def test_a_study_that_was_made_again_is_read_anew() -> None:
    storage = optuna.storages.InMemoryStorage()
    sampler = NashSampler(PLAYERS, budget=6, seed=0)
    options: dict[str, Any] = {
        "study_name": "game",
        "storage": storage,
        "directions": ["minimize"] * 2,
        "sampler": sampler,
    }
    study = optuna.create_study(**options)
    study.optimize(on_a_grid)
    optuna.delete_study(study_name="game", storage=storage)
    again = optuna.create_study(**options)
    again.optimize(on_a_grid, n_trials=2)
    assert sampler.equilibrium(again).trials == 2


def test_the_global_generator_is_left_alone() -> None:
    def state() -> str:
        return repr(np.random.get_state(legacy=False))  # noqa: NPY002 - it is what is watched here

    before = state()
    play(budget=4)
    assert state() == before


def test_ask_and_tell_says_when_to_stop() -> None:
    sampler = NashSampler(PLAYERS, budget=4, seed=0)
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    while not sampler.equilibrium(study).finished:
        trial = study.ask()
        study.tell(trial, on_a_grid(trial))
    assert evaluated(study) == evaluated(play(on_a_grid, budget=4))
    with pytest.warns(UserWarning, match=r"trial 4 has no share in the budget.*finished"):
        study.ask()
