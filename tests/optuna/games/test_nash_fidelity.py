import pytest

from mfhpo_optuna import Fidelity, NashSampler
from tests.optuna.games.nash_games import (
    EQUILIBRIUM,
    GAME,
    PLAYERS,
    QUERY,
    on_a_grid_by_level,
    play,
    tracking,
    tracking_by_level,
)


def tracking_by_own_levels(trial):
    row, column = tracking(trial)
    return (
        row + 0.02 / trial.suggest_int("row_steps", 1, 9),
        column + 0.02 / trial.suggest_int("column_steps", 1, 9),
    )


OWN = {"column": "column_steps", "row": "row_steps"}  # in another order than the players


def seconds(study):
    return [trial.params["seconds"] for trial in study.trials]


def test_one_run_serves_all_players():
    joint = play(tracking_by_level, fidelity="seconds", budget=100)
    answer = joint.sampler.equilibrium(joint)
    assert {1, 9} <= set(seconds(joint)) <= {1, 3, 9}
    assert answer.cost == sum(seconds(joint))
    assert 91 < answer.cost <= 100
    assert answer.evaluations == seconds(joint).count(9) > 0
    assert answer.finished
    assert answer.params == pytest.approx(EQUILIBRIUM, abs=0.05)
    assert joint.user_attrs[GAME]["fidelity"] == ["seconds"]
    levels = [trial.user_attrs[QUERY].get("fidelity", 0) for trial in joint.trials]
    assert levels == [4 * [1, 3, 9].index(value) for value in seconds(joint)]


def test_each_player_may_have_a_level_of_its_own():
    own = play(tracking_by_own_levels, fidelity=OWN, budget=160)
    answer = own.sampler.equilibrium(own)
    chosen = [(t.params["row_steps"], t.params["column_steps"]) for t in own.trials]
    assert answer.cost == sum(map(sum, chosen))
    assert 160 - 18 < answer.cost <= 160
    assert answer.evaluations == chosen.count((9, 9)) > 0
    assert answer.params == pytest.approx(EQUILIBRIUM, abs=0.05)
    levels = [trial.user_attrs[QUERY].get("fidelity", 0) for trial in own.trials]
    assert levels == [3 * [1, 3, 9].index(row) + [1, 3, 9].index(column) for row, column in chosen]


@pytest.mark.parametrize(
    ("options", "costs"),
    [
        ({"fidelity": Fidelity("seconds", levels=[1, 9], costs=[2, 5])}, {1: 2, 9: 5}),
        ({"fidelity": Fidelity("seconds", levels=[9])}, {9: 9}),
    ],
)
def test_costs_and_levels_can_be_declared(options, costs):
    study = play(on_a_grid_by_level, budget=40, n_trials=6, **options)
    assert set(seconds(study)) <= set(costs)
    assert study.sampler.equilibrium(study).cost == sum(costs[value] for value in seconds(study))


def test_other_levels_in_the_same_study():
    study = play(on_a_grid_by_level, fidelity=Fidelity("seconds", levels=[1, 9]), budget=20)
    for levels, costs in (([1, 3, 9], None), ([1, 9], [1, 5])):
        fidelity = Fidelity("seconds", levels=levels, costs=costs)
        study.sampler = NashSampler(PLAYERS, fidelity=fidelity, budget=40)
        with pytest.raises(ValueError, match=r"was begun with (levels|costs)=.*cannot go on with"):
            study.sampler.equilibrium(study)
