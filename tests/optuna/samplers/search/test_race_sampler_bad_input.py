"""Wrong arguments of a search: each error names the argument, its value and what would be right."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from optuna.samplers import BruteForceSampler, GridSampler, PartialFixedSampler

from mfhpo_optuna import Fidelity, RaceSampler
from tests.optuna.samplers.races import PULL

optuna.logging.set_verbosity(optuna.logging.CRITICAL)


def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    return x**2 + 0.1 / epochs + 0.05 * np.random.default_rng(trial.number).normal()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 0.0}, ["budget", "0.0", "positive"]),
        ({"budget": -5}, ["budget", "-5", "positive"]),
        ({"budget": float("nan")}, ["budget", "nan"]),
        ({"trials": 0}, ["trials", "0", "at least 1"]),
        ({"budget": 50, "trials": 10}, ["budget=50", "trials=10", "give one"]),
        ({"trials": 10, "seconds": 2}, ["trials=10 and seconds=2 both", "give one"]),
        ({"budget": 5, "trials": 10, "seconds": 2}, ["budget=5", "trials=10", "seconds=2 all"]),
        ({"seconds": -1.0}, ["seconds", "-1.0", "positive"]),
        ({"seconds": float("nan")}, ["seconds", "nan", "positive"]),
        (
            {"fidelity": Fidelity("epochs", levels=[1, 9], costs=[1.0, 9.0]), "seconds": 1.0},
            ["'epochs' has costs=[1.0, 9.0], but costs are measured"],
        ),
        ({"certify_share": -0.1}, ["certify_share", "-0.1", "[0, 1)"]),
        ({"certify_share": 1.0}, ["certify_share", "1.0", "[0, 1)"]),
        ({"top": 1}, ["top", "1", "at least 2"]),
        ({"delta": 0.0}, ["delta", "0.0", "between 0 and 1"]),
        ({"delta": 1.5}, ["delta", "1.5", "between 0 and 1"]),
        ({"epsilon": -0.5}, ["epsilon", "-0.5", "at least 0"]),
        ({"epsilon": float("inf")}, ["epsilon", "inf"]),
        ({"sigma": -0.5}, ["sigma", "-0.5", "at least 0"]),
        ({"max_failures": 0}, ["max_failures", "0", "at least 1"]),
        ({"lease": 0.0}, ["lease", "0.0", "positive"]),
        ({"seed": -1}, ["seed", "-1", "at least 0"]),
        ({"fidelity": ""}, ["name", "''"]),
    ],
)
def test_bad_values(options, words):
    with pytest.raises(ValueError, match=r".") as caught:
        RaceSampler(**{"fidelity": "epochs"} | options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fidelity": 3}, ["fidelity", "name or a Fidelity", "3"]),
        ({"fidelity": 3, "seconds": 1.0}, ["fidelity", "name or a Fidelity", "3"]),
        ({"seconds": "60"}, ["seconds must be a number or None", "'60'"]),
        ({"budget": "100"}, ["budget", "'100'"]),
        ({"budget": True}, ["budget", "True"]),
        ({"trials": 2.5}, ["trials", "2.5"]),
        ({"certify_share": "0.1"}, ["certify_share", "'0.1'"]),
        ({"certify_share": None}, ["certify_share", "None"]),
        ({"top": 3.0}, ["top", "3.0"]),
        ({"delta": "5%"}, ["delta", "'5%'"]),
        ({"epsilon": "small"}, ["epsilon", "'small'"]),
        ({"checkpoints": 1}, ["checkpoints", "True or False", "1"]),
        ({"progress": "yes"}, ["progress", "'yes'"]),
        ({"lease": "1h"}, ["lease", "'1h'"]),
        ({"seed": 1.5}, ["seed", "1.5"]),
    ],
)
def test_bad_types(options, words):
    with pytest.raises((TypeError, ValueError)) as caught:
        RaceSampler(**{"fidelity": "epochs"} | options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("proposer", ["tpe", optuna.samplers.TPESampler])
def test_a_proposer_that_is_no_sampler(proposer):
    with pytest.raises(TypeError, match="proposer must be a sampler of Optuna such as TPESampler"):
        RaceSampler("epochs", proposer=proposer)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("make", [lambda: GridSampler({"x": [0.0, 1.0]}), BruteForceSampler])
def test_a_proposer_that_enumerates(make):
    with pytest.raises(TypeError, match=r"proposer=\w+ enumerates a whole space"):
        RaceSampler("epochs", proposer=make())


def test_numpy_s_numbers_are_numbers():
    RaceSampler("epochs", budget=np.float32(100), top=np.int64(4), certify_share=np.float64(0.2))
    RaceSampler("epochs", trials=np.int32(100))


def test_levels_without_costs():
    study = optuna.create_study(sampler=RaceSampler("data", budget=10))
    with pytest.raises(
        ValueError, match=r"costs=None.*'data'.*give costs=\[\.\.\.\] or costs='mea"
    ):
        study.optimize(lambda trial: float(trial.suggest_categorical("data", ["few", "all"])))


def test_levels_that_the_objective_does_not_allow():
    study = optuna.create_study(sampler=RaceSampler(Fidelity("epochs", levels=[1, 27]), budget=99))
    with pytest.raises(ValueError, match=r"epochs.*27.*does not allow"):
        study.optimize(objective, n_trials=100)


def test_a_range_of_the_fidelity_that_changes():
    def changing(trial):
        return trial.suggest_int("epochs", 1, 9 if trial.number < 3 else 5) + 0.0

    study = optuna.create_study(sampler=RaceSampler("epochs", budget=99))
    with pytest.raises(ValueError, match=r"race needs epochs=9.*same range in every trial"):
        study.optimize(changing, n_trials=100)


@pytest.mark.parametrize("failing", [0, 3])
def test_a_fidelity_that_is_never_asked_for(failing):
    """It is said at the first value, also after failures that told nothing."""

    def objective(trial):
        trial.suggest_int("epochs", 1, 9)
        if trial.number < failing:
            raise LookupError
        return trial.suggest_float("x", -1, 1)

    study = optuna.create_study(sampler=RaceSampler("epoch", budget=100))
    with (
        pytest.warns(UserWarning, match=rf"fidelity='epoch', but .* in trial {failing}"),
        pytest.raises(ValueError, match=r"fidelity='epoch'.*\['epochs', 'x'\].*mean .*'epochs'"),
    ):
        study.optimize(objective, n_trials=100, catch=(LookupError,))
    assert len(study.trials) == failing + 1


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_fidelity_that_something_else_sets():
    """Whatever the search asks for, only the target is evaluated: it says so, and stops."""
    sampler = RaceSampler("epochs", budget=500, seed=0)
    study = optuna.create_study(sampler=PartialFixedSampler({"epochs": 9}, sampler))
    with pytest.raises(ValueError, match="fidelity='epochs' was not what the sampler chose"):
        study.optimize(objective, n_trials=300)
    told = [t for t in study.trials if PULL in t.user_attrs]
    assert 9 <= len(told) <= 55


def test_several_objectives():
    sampler = RaceSampler("epochs", budget=100)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    with pytest.raises(ValueError, match="multi-objective"):
        study.optimize(lambda trial: (objective(trial), 0.0), n_trials=2)
    for call in (sampler.recommendation, sampler.conclude):
        with pytest.raises(ValueError, match="multi-objective"):
            call(study)


def test_a_study_of_another_kind_of_sampler():
    """Tags of samplers that choose time limits say nothing of levels."""
    study = optuna.create_study(sampler=RaceSampler("epochs", budget=100))
    study.add_trial(
        optuna.trial.create_trial(value=0.0, user_attrs={PULL: {"arm": 0, "limit": 3.0}})
    )
    with pytest.raises(ValueError, match=r"trial 0 was run by a sampler that chooses time limits"):
        study.optimize(objective, n_trials=1)
