from dataclasses import replace

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from mfhpo_optuna import IISESampler
from tests.optuna.samplers.races import (
    answers_so_far,
    chosen,
    configurations,
    ended,
    finished,
    pulls,
)
from tests.optuna.workers import kill, race, two_parameters


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return race(str(tmp_path_factory.mktemp("whole") / "race.log"))


@pytest.mark.parametrize(
    ("file", "kill_at", "stage", "lease"),
    [
        pytest.param("race.db", 20, "after", 1e-6, marks=pytest.mark.slow),
        ("race.log", 3, "between", None),  # in mid-trial of an arm that nobody knows yet
        pytest.param("race.log", 28, "after", 1e-6, marks=pytest.mark.slow),
    ],
)
def test_a_killed_study_goes_on_as_if_nothing_had_happened(
    uninterrupted, tmp_path, file, kill_at, stage, lease
):
    """What its process has left is known to be lost: without a lease, because it is dead."""
    path = str(tmp_path / file)
    kill(f"race({path!r}, kill_at={kill_at}, stage={stage!r})")
    study = race(path, lease=lease)
    zombie = pulls(study)[kill_at]
    assert zombie.state == TrialState.RUNNING
    assert finished(study) == finished(uninterrupted)
    assert configurations(study) == configurations(uninterrupted)
    assert study.best_params == uninterrupted.best_params
    assert study.best_value == uninterrupted.best_value
    answer, whole = (s.sampler.recommendation(s) for s in (study, uninterrupted))
    assert any("left out, because" in condition for condition in answer.conditions)
    assert replace(answer, cost=whole.cost, conditions=whole.conditions) == whole
    assert answer.cost > whole.cost  # what the lost one has taken is paid


def test_keyboard_interrupt_leaves_a_resumable_study(uninterrupted):
    study = optuna.create_study(sampler=IISESampler("epochs", 4, epsilon=0.3, measure=3, seed=0))
    interrupted = []

    def objective(trial):
        if ended(trial) == 7 and not interrupted:
            interrupted.append(trial.number)
            trial.suggest_float("x", -1, 1)
            raise KeyboardInterrupt
        return two_parameters(trial)

    with pytest.raises(KeyboardInterrupt):
        study.optimize(objective)
    assert [trial.number for trial in pulls(study)][7:] == interrupted
    assert study.best_trial == answers_so_far(study)[-1]
    study.optimize(objective)
    assert study.sampler.recommendation(study).certified
    assert study.best_params == uninterrupted.best_params
    assert configurations(study) == configurations(uninterrupted)
    assert chosen(pulls(study)[8]) == chosen(pulls(study)[7])


def test_another_sampler_s_finished_trials_do_not_disturb():
    def objective(trial):
        x = trial.suggest_float("x", -1, 1)
        epochs = trial.suggest_int("epochs", 1, 9)
        return x**2 + 0.1 / epochs + 0.05 * np.random.default_rng(trial.number).normal()

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=10)
    study.sampler = IISESampler("epochs", [{"x": -0.6}, {"x": 0.5}], epsilon=0.05, seed=0)
    with pytest.warns(UserWarning, match=r"best_trial still shows trial \d.*recommendation"):
        study.optimize(objective, n_trials=2000)
    answer = study.sampler.recommendation(study)
    assert answer.certified
    assert answer.params == {"x": 0.5}
    assert answer.trials == len(pulls(study))
