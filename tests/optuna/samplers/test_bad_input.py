"""Wrong arguments: each error or warning names the argument, its value and what would be right."""

from __future__ import annotations

import warnings

import numpy as np
import optuna
import pytest

from mfhpo import Bias
from mfhpo_optuna import Fidelity, IISESampler

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    return x**2 + 0.1 / epochs + 0.05 * np.random.default_rng(trial.number).normal()


def levels(*values, **options):
    return Fidelity("epochs", levels=values, **options)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: levels(9, 3, 1), ["levels", "9", "3", "sort"]),
        (lambda: levels(1, 3, 3), ["levels", "3", "drop repeats"]),
        (lambda: Fidelity("epochs", levels=[]), ["levels", "epochs", "empty"]),
        (lambda: Fidelity("data", levels=["a", "a"]), ["levels", "data", "repeat", "'a'"]),
        (lambda: levels(1, 3, costs=[2, 1]), ["costs", "2", "1", "sort"]),
        (lambda: levels(1, 3, costs=[-1, 1]), ["costs", "positive", "-1"]),
        (lambda: levels(1, 3, costs=[1, 2, 3]), ["costs", "3", "2 levels", "one per level"]),
        (lambda: levels(1, 3, costs="wall"), ["costs", "'wall'", "'measured'"]),
        (lambda: levels(-1, 3), ["costs", "levels", "-1", "positive"]),
        (lambda: levels(1, 3, bias=[-0.1, 0]), ["bias[0]", "-0.1", "at least 0"]),
        (lambda: levels(1, 3, bias=[0.2, 0.1]), ["bias", "0.1", "append 0.0"]),
        (lambda: levels(1, 3, bias=[0.2, 0.1, 0]), ["bias", "3", "2 levels", "one per level"]),
        (lambda: Fidelity(""), ["name", "''"]),
    ],
)
def test_bad_fidelity(make, words):
    with pytest.raises(ValueError, match=r".") as caught:
        IISESampler(make())
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.0}, ["delta", "0.0", "between 0 and 1", "0.05"]),
        ({"delta": 1.0}, ["delta", "1.0", "between 0 and 1"]),
        ({"delta": -0.1}, ["delta", "-0.1"]),
        ({"delta": float("nan")}, ["delta", "nan"]),
        ({"epsilon": -1.0}, ["epsilon", "-1.0", "at least 0"]),
        ({"epsilon": float("inf")}, ["epsilon", "inf"]),
        ({"sigma": -0.5}, ["sigma", "-0.5", "at least 0"]),
        ({"bias": [-0.1, 0.0]}, ["bias[0]", "-0.1"]),
        ({"bias": [0.2, 0.1]}, ["bias", "0.1", "append 0.0"]),
        ({"bias": []}, ["bias", "one bound per fidelity"]),
        ({"budget": 0.0}, ["budget", "0.0", "positive"]),
        ({"budget": -3}, ["budget", "-3", "positive"]),
        ({"variant": "gamma"}, ["variant", "'gamma'", "'order'"]),
        ({"variant": "max", "bias": Bias.order(0.1, 0.0)}, ["variant", "'max'", "'order'"]),
        ({"max_failures": 0}, ["max_failures", "0", "at least 1"]),
        ({"pilot_arms": 1}, ["pilot_arms", "1", "at least 2"]),
        ({"pilot_pulls": 1}, ["pilot_pulls", "1", "at least 2"]),
        ({"lease": 0.0}, ["lease", "0.0", "positive"]),
        ({"seed": -1}, ["seed", "-1", "at least 0"]),
        ({"arms": 0}, ["arms", "0", "at least 1"]),
        ({"arms": []}, ["arms=[]", "at least one"]),
        ({"arms": {}}, ["arms={}", "distribution"]),
        ({"arms": [{"x": 0.1}, {"x": 0.1}]}, ["arms[0]", "arms[1]", "0.1", "remove one"]),
        ({"arms": [{"x": 0.1, "epochs": 3}]}, ["arms", "'epochs'", "leave it out"]),
    ],
)
def test_bad_argument(options, words):
    with pytest.raises(ValueError, match=r".") as caught:
        IISESampler("epochs", **options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"arms": 3.5}, "arms"),
        ({"arms": ["a"]}, "arms"),
        ({"arms": {"x": [0.1, 0.2]}}, r"arms\['x'\] must be a distribution .* got \[0.1, 0.2\]"),
        ({"measure": -1}, "measure"),
    ],
)
def test_an_argument_of_another_kind_is_named(options, name):
    with pytest.raises((TypeError, ValueError), match=name):
        IISESampler("epochs", **options)


def test_a_number_of_arms_may_be_a_numpy_integer():
    IISESampler("epochs", arms=np.int64(4))


@pytest.mark.parametrize("fidelity", [None, 3, ["epochs"]])
def test_a_fidelity_of_the_wrong_type(fidelity):
    with pytest.raises(TypeError, match="fidelity must be a name or a Fidelity, got"):
        IISESampler(fidelity)


def test_bias_twice():
    with pytest.raises(ValueError, match=r"bias=.*fidelity\.bias=.*leave one out"):
        IISESampler(levels(1, 9, bias=[0.1, 0.0]), bias=[0.2, 0.0])


@pytest.mark.parametrize("bias", [[0.1, 0.0], [0.3, 0.2, 0.1, 0.0]])
def test_wrong_number_of_bounds_with_declared_levels(bias):
    with pytest.raises(ValueError, match=rf"bias has {len(bias)} bounds.*3 fidelities; give one"):
        IISESampler(levels(1, 3, 9), bias=bias)


@pytest.mark.parametrize("bias", [[0.1, 0.0], [0.3, 0.2, 0.1, 0.0]])
def test_wrong_number_of_bounds_for_what_the_objective_asks(bias):
    study = optuna.create_study(sampler=IISESampler("epochs", bias=bias))
    with pytest.raises(ValueError, match=rf"bias has {len(bias)} .*(3 fidelities|3 levels)"):
        study.optimize(objective, n_trials=3)


def test_arms_with_different_keys():
    with pytest.warns(UserWarning, match=r"arms have different keys: arms\[1\].*lacks 'y'.*same"):
        IISESampler("epochs", [{"x": 0.1, "y": 1}, {"x": 0.2}])


def test_multi_objective_study():
    sampler = IISESampler("epochs", arms=4)
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    with pytest.raises(ValueError, match="multi-objective"):
        study.optimize(lambda trial: (objective(trial), 0.0), n_trials=2)
    with pytest.raises(ValueError, match="multi-objective"):
        sampler.recommendation(study)


def test_a_fidelity_that_is_never_asked_for():
    study = optuna.create_study(sampler=IISESampler("epoch", arms=4))
    words = r"fidelity='epoch'.*trial 0.*\['epochs', 'x'\].*suggest_int\('epoch'.*mean .*'epochs'"
    with (
        pytest.warns(UserWarning, match=words),
        pytest.raises(ValueError, match=r"fidelity='epoch', but.*Did you mean"),
    ):
        study.optimize(objective, n_trials=100)
    assert len(study.trials) == 4


def test_declared_levels_that_the_objective_does_not_allow():
    study = optuna.create_study(sampler=IISESampler(levels(1, 3, 27), arms=4))
    with pytest.raises(ValueError, match=r"epochs.*27.*does not allow"):
        study.optimize(objective, n_trials=100)


@pytest.mark.parametrize("x", [5.0, "low", None])
def test_an_arm_outside_the_objective_s_range_does_not_keep_the_race_from_ending(x):
    sampler = IISESampler("epochs", [{"x": 0.0}, {"x": 0.9}, {"x": x}], epsilon=0.2, seed=0)
    study = optuna.create_study(sampler=sampler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            study.optimize(objective, n_trials=500)
        except ValueError as error:
            assert repr(x) in str(error)  # noqa: PT017
            return
    assert len(study.trials) < 500
    assert any("arm 2" in str(w.message) and repr(x) in str(w.message) for w in caught)


@pytest.mark.filterwarnings("ignore:trial .* evaluated")
def test_a_fractional_value_for_an_integer_is_refused():
    def with_depth(trial):
        trial.suggest_int("epochs", 1, 9)
        return trial.suggest_int("depth", 1, 9) + 0.0

    study = optuna.create_study(sampler=IISESampler("epochs", [{"depth": 2.5}, {"depth": 5}]))
    with pytest.raises(ValueError, match=r"depth.*2\.5"):
        study.optimize(with_depth, n_trials=100)


def test_a_name_in_the_arms_that_the_objective_never_asks_for():
    """A slip of the pen ("xx" for "x") would otherwise certify something else."""
    arms = [{"xx": -0.5}, {"xx": 0.0}, {"xx": 0.5}]
    study = optuna.create_study(sampler=IISESampler("epochs", arms, epsilon=0.2, seed=0))
    with pytest.warns(UserWarning, match=r"arms.*'xx'"):
        study.optimize(objective, n_trials=500)


def test_resuming_with_fewer_arms():
    study = optuna.create_study(sampler=IISESampler("epochs", arms=8, seed=0))
    study.optimize(objective, n_trials=12)
    study.sampler = IISESampler("epochs", arms=2, seed=0)
    with pytest.raises(ValueError, match=r"belongs to arm \d, but arms has 2.*begun with"):
        study.optimize(objective, n_trials=1)
