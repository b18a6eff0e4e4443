import math
import pickle
from datetime import datetime, timedelta

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState, create_trial

from mfhpo_optuna import NashSampler
from mfhpo_optuna.study.trials.processes import worker_name
from tests.optuna.games.nash_games import (
    EQUILIBRIUM,
    PLAYERS,
    QUERY,
    evaluated,
    on_a_grid,
    on_a_grid_by_level,
    play,
    tracking,
    tracking_losses,
)


def new_study(**options):
    options = {"players": PLAYERS, "budget": 12, "seed": 0} | options
    sampler = NashSampler(**options)
    return optuna.create_study(directions=["minimize"] * 2, sampler=sampler)


def by_level(**options):
    return new_study(**{"fidelity": "seconds", "budget": 60} | options)


def told(study):
    return study.sampler._read(study).policy.history


@pytest.mark.parametrize("fidelity", [None, "seconds"])
def test_two_samplers_in_turn_are_one(fidelity, tmp_path):
    budget = 6 if fidelity is None else 22
    objective = on_a_grid if fidelity is None else on_a_grid_by_level
    whole = play(objective, fidelity=fidelity, budget=budget)
    storage = f"sqlite:///{tmp_path / 'game.db'}" if fidelity else InMemoryStorage()
    for n_trials in (1, 3, None):
        study = optuna.create_study(
            study_name="game",
            storage=storage,
            load_if_exists=True,
            directions=["minimize"] * 2,
            sampler=NashSampler(PLAYERS, fidelity, budget=budget, seed=0),
        )
        study.optimize(objective, n_trials=n_trials)
    assert evaluated(study) == evaluated(whole)
    answer = pickle.loads(pickle.dumps(study.sampler)).equilibrium(study)
    assert answer == whole.sampler.equilibrium(whole)
    assert answer.finished


def test_trials_of_another_sampler_are_learned_from():
    study = optuna.create_study(directions=["minimize"] * 2, sampler=RandomSampler(seed=0))
    study.optimize(on_a_grid, n_trials=8)
    sampler = NashSampler(PLAYERS, budget=16, seed=0)
    answer = sampler.equilibrium(study)
    assert (answer.trials, answer.cost) == (8, 8)
    study.sampler = sampler
    study.optimize(on_a_grid)
    assert len(study.trials) == 16
    assert QUERY in study.trials[8].user_attrs
    assert "point" in study.trials[8].user_attrs[QUERY], "the game was known"
    assert sampler.equilibrium(study).params == pytest.approx(EQUILIBRIUM, abs=0.05)


def test_what_is_enqueued_is_evaluated_and_learned_from():
    study = new_study(budget=6)
    study.enqueue_trial({"x": 0.25, "y": 0.75})
    study.optimize(tracking, n_trials=3)
    study.enqueue_trial({"x": 0.5})
    study.optimize(tracking)
    assert study.trials[0].params == {"x": 0.25, "y": 0.75}
    assert study.trials[3].params["x"] == 0.5
    profiles = [entry.query.profile for entry in told(study)]
    assert profiles == [trial.params for trial in study.trials]


def test_a_failure_is_paid_for():
    def objective(trial):
        values = on_a_grid_by_level(trial)
        if trial.number in (3, 4):
            raise LookupError
        return values

    study = by_level(budget=40)
    study.optimize(objective, catch=(LookupError,))
    answer = study.sampler.equilibrium(study)
    assert answer.cost == sum(trial.params["seconds"] for trial in study.trials)
    assert answer.cost <= 40
    assert [entry.utilities for entry in told(study)[3:5]] == [(None, None)] * 2


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_values_that_are_no_numbers(value):
    def objective(trial):
        row, column = on_a_grid(trial)
        return (value, column) if trial.number in (0, 4) else (row, column)

    study = new_study(budget=14)
    study.optimize(objective)
    assert len(study.trials) == 14
    utilities = [entry.utilities for entry in told(study)]
    assert utilities[4][0] is None
    # Optuna has no values at all for a trial with NaN.
    assert (utilities[4][1] is None) == math.isnan(value)
    params = study.sampler.equilibrium(study).params
    assert max(tracking_losses(params["x"], params["y"])) < 0.05


def test_nothing_but_failures_still_ends():
    def objective(trial):
        on_a_grid(trial)
        raise LookupError

    study = new_study(budget=6)
    study.optimize(objective, catch=(LookupError,))
    assert len(study.trials) == 6
    answer = study.sampler.equilibrium(study)
    assert answer.params == {}
    assert answer.finished
    assert answer.reason == "none of the 6 trials gave a value"
    assert "NO EQUILIBRIUM YET" in str(answer)
    with pytest.raises(ValueError, match="no trial has given values yet"):
        study.sampler.deviations(study, {"x": 0.5, "y": 0.5})


def dead(study, seconds_ago, **noted):
    number, point = len(study.trials), {"x": 0.5, "y": 0.5}
    tag = {"trial": number, "study": study.study_name, "order": 0, "arm": number, "point": point}
    tag |= {"chooses": "profiles of a game", "fidelity": 0, **noted}
    trial = create_trial(state=TrialState.RUNNING, user_attrs={QUERY: tag})
    trial.datetime_start = datetime.now() - timedelta(seconds=seconds_ago)
    study.add_trial(trial)


@pytest.mark.parametrize("lease", [5.0, 500.0, None])
def test_what_a_lost_trial_has_cost_is_paid(lease):
    study = new_study(budget=6, lease=lease)
    study.optimize(on_a_grid, n_trials=2)
    dead(study, 50.0)
    study.sampler = new_study(budget=6, lease=lease).sampler
    study.optimize(on_a_grid)
    assert len(evaluated(study)) == 5
    answer = study.sampler.equilibrium(study)
    assert (answer.finished, answer.trials, answer.cost) == (lease == 5.0, 5, 5 + (lease == 5.0))


def test_what_was_given_up_counts_if_it_ends_after_all():
    study = new_study(budget=6, lease=1e-6)
    study.optimize(on_a_grid, n_trials=2)
    lost = study.ask()
    values = on_a_grid(lost)
    study.optimize(on_a_grid, n_trials=2)
    for trials in (4, 5):
        answer = study.sampler.equilibrium(study)
        assert (answer.trials, answer.cost) == (trials, 5)
        if trials == 4:
            study.tell(lost, values)


def test_a_trial_whose_process_is_gone_is_lost_and_no_failure():
    study = new_study(budget=6)
    study.optimize(on_a_grid, n_trials=2)
    dead(study, 1.0, worker=worker_name().replace("@", "@9"))  # the number now belongs to another
    dead(study, 1.0, worker=worker_name())
    study.optimize(on_a_grid)
    assert len(evaluated(study)) == 4
    assert study.sampler.equilibrium(study).cost == 5
    assert all(None not in entry.utilities for entry in told(study))


def test_a_clock_that_was_set_forward_makes_no_lease_longer():
    study = new_study(budget=8)
    dead(study, 900.0)
    study.optimize(on_a_grid, n_trials=2)
    trial = study.ask()
    values = on_a_grid(trial)
    study._storage._get_trial(trial._trial_id).datetime_start -= timedelta(hours=1)
    study.tell(trial, values)
    known = study.sampler._read(study)
    assert known.under_way.is_expired(0)
    assert known.under_way.waited_for() == {}
