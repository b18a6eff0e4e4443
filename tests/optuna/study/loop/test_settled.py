"""The callback that ends settled studies, with real ones."""

import math

import optuna
import pytest
from optuna.trial import TrialState, create_trial

from mfhpo_optuna import MFSampler, StopWhenSettled
from mfhpo_optuna.study.trials.attributes import FIDELITY_KEY

X = optuna.distributions.FloatDistribution(-1.0, 1.0)


def parabola(trial):
    return trial.suggest_float("x", -1.0, 1.0) ** 2


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_it_ends_a_study_that_finds_nothing_better(direction, monkeypatch):
    said = []
    monkeypatch.setattr("mfhpo_optuna.study.settled._logger.info", said.append)
    sign = 1.0 if direction == "minimize" else -1.0
    study = optuna.create_study(direction=direction, sampler=optuna.samplers.TPESampler(seed=0))
    stop = StopWhenSettled(epsilon=0.05)
    study.optimize(lambda t: sign * parabola(t), n_trials=300, callbacks=[stop])
    assert 29 <= len(study.trials) < 100
    found = stop.outlook(study)
    assert found.best == study.best_value
    assert found.chance <= 0.1
    assert stop.is_settled(study)
    assert said[0].startswith(f"The study stops: {found}.")
    again = len(study.trials)
    study.optimize(lambda t: sign * parabola(t), n_trials=300, callbacks=[stop])
    assert len(study.trials) == again + 1  # another worker, or a later run, sees the same


def test_it_goes_on_while_values_get_better():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda t: t.number, n_trials=60, callbacks=[StopWhenSettled(epsilon=0.5)])
    assert len(study.trials) == 60


def test_pruned_trials_found_nothing_and_failed_ones_do_not_count():
    study = optuna.create_study()
    for n in range(40):
        study.add_trial(create_trial(params={"x": 0.5}, distributions={"x": X}, value=float(n)))
    stop = StopWhenSettled(epsilon=0.1)
    before = stop.outlook(study)
    for state in (TrialState.FAIL, TrialState.PRUNED, TrialState.RUNNING):
        study.add_trial(create_trial(state=state, params={"x": 0.5}, distributions={"x": X}))
    after = stop.outlook(study)
    assert (before.n_ended, after.n_ended) == (40, 41)
    assert after.best == before.best
    assert after.chance < before.chance


def test_values_at_the_largest_level_count():
    levels = optuna.distributions.IntDistribution(1, 9)
    study = optuna.create_study()
    study.set_user_attr(FIDELITY_KEY, "epochs")
    for n in range(60):
        epochs = 9 if n % 2 else 1
        study.add_trial(
            create_trial(
                params={"epochs": epochs},
                distributions={"epochs": levels},
                value=float(n) if epochs == 9 else -1000.0,
            )
        )
    found = StopWhenSettled(epsilon=0.0).outlook(study)
    assert (found.n_ended, found.best) == (60, 1.0)
    each = 8 / 60 * math.exp(-16 / 9)  # the smallest odd numbers: 1, 3, ..., 15 below 17
    assert found.chance == pytest.approx(1 - (1 - each) ** 50)


def test_levels_are_ordered_as_they_were_given():
    sizes = optuna.distributions.CategoricalDistribution(["small", "medium", "all"])
    study = optuna.create_study(direction="maximize")
    study.set_user_attr(FIDELITY_KEY, "data")
    for size, value in (("all", 1.0), ("small", 9.0), ("medium", 5.0)):
        params, distributions = {"data": size}, {"data": sizes}
        study.add_trial(create_trial(params=params, distributions=distributions, value=value))
    assert StopWhenSettled().outlook(study).best == 1.0


def test_what_breaks_a_constraint_is_not_the_best():
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("half", x - 0.5)
        return x

    study.optimize(objective, n_trials=30)
    assert StopWhenSettled().outlook(study).best == study.best_value < 0.5


def test_beside_a_sampler_that_chooses_levels():
    study = optuna.create_study(sampler=MFSampler("epochs", budget=10**6, seed=0, progress=False))

    def objective(trial):
        return parabola(trial) + 0.1 / trial.suggest_int("epochs", 1, 9)

    study.optimize(objective, n_trials=200, callbacks=[StopWhenSettled(epsilon=0.1)])
    assert len(study.trials) < 200


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "minimize"])
    with pytest.raises(ValueError, match="has 2 objectives"):
        StopWhenSettled().outlook(study)
