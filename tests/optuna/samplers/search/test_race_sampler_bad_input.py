import numpy as np
import optuna
import pytest
from optuna.samplers import GridSampler, PartialFixedSampler

from mfhpo_optuna import Fidelity, RaceSampler
from tests.optuna.samplers.races import PULL


def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    return x**2 + 0.1 / epochs + 0.05 * np.random.default_rng(trial.number).normal()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"top": 1}, ValueError, ["top", "1", "at least 2"]),
        ({"lease": 0.0}, ValueError, ["lease", "0.0", "positive"]),
        ({"seed": -1}, ValueError, ["seed", "-1", "at least 0"]),
        ({"progress": "yes"}, TypeError, ["progress", "'yes'"]),
        ({"proposer": "tpe"}, TypeError, ["proposer must be a sampler of Optuna", "'tpe'"]),
        ({"proposer": GridSampler({"x": [0.0]})}, TypeError, ["proposer=GridSampler enumerates"]),
    ],
)
def test_bad_arguments(options, error, words):
    """Others are checked in `tests/core/search/test_declared.py`."""
    with pytest.raises(error) as caught:
        RaceSampler(**{"fidelity": "epochs"} | options)
    for word in words:
        assert word in str(caught.value)


def test_levels_that_the_objective_does_not_allow():
    study = optuna.create_study(sampler=RaceSampler(Fidelity("epochs", levels=[1, 27]), budget=99))
    with pytest.raises(ValueError, match=r"epochs.*27.*does not allow"):
        study.optimize(objective, n_trials=100)


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
