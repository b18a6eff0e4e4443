import inspect

import numpy as np
import optuna
import pytest
from optuna.pruners import HyperbandPruner
from optuna.samplers import GridSampler
from optuna.trial import TrialState

from mfhpo import Bias
from mfhpo.censored import Linear
from mfhpo_optuna import (
    Fidelity,
    IISESampler,
    MFGradSampler,
    MFSampler,
    MFTopTwoSampler,
    RCUCBSampler,
    SearchSampler,
    ZoomingRCUCBSampler,
)
from tests.optuna.samplers.races import ARMS, CLASSES

every_kind = pytest.mark.parametrize(
    "sampler",
    [IISESampler("epochs", arms=4), RCUCBSampler(4), SearchSampler("epochs", budget=100)],
    ids=["race", "limits", "search"],
)


def objective(trial):
    x = trial.suggest_float("x", -1, 1)
    epochs = trial.suggest_int("epochs", 1, 9)
    return x**2 + 0.1 / epochs + 0.05 * np.random.default_rng(trial.number).normal()


def levels(*values, **options):
    return Fidelity("epochs", levels=values, **options)


def falling(seconds):
    return 1.0 / (1.0 + seconds)


def check(error, words, make, *args, **options):
    with pytest.raises(error, match=r".") as caught:
        make(*args, **options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("cls", [*CLASSES.values(), RCUCBSampler])
def test_the_signature_shows_each_option_with_its_default(cls):
    shown = inspect.signature(cls).parameters
    assert shown["delta"].default == 0.05
    assert shown["delta"].annotation == "float"
    assert shown["max_failures"].default == 3
    assert shown["seed"].default is None
    assert not any(p.kind is p.VAR_KEYWORD for p in shown.values())
    # They are the ones that count.
    options = {name: p.default for name, p in shown.items() if p.kind is p.KEYWORD_ONLY}
    cls("epochs", **options) if "fidelity" in shown else cls(ARMS, [1.0], **options)


# What some take.

LEVELS = {"fidelity": levels(1, 3)}
GRID = GridSampler({"x": [0.0]})
PER_COST, PER_PULL = {"aim": "reward per cost"}, {"aim": "reward per pull"}


@pytest.mark.parametrize(
    ("cls", "options", "error", "words"),
    [
        (IISESampler, {"bias": [0.2, 0.1]}, ValueError, ["bias", "0.1", "append 0.0"]),
        (IISESampler, {"sigma": [1, 1, 1]} | LEVELS, ValueError, ["sigma", "3", "2"]),
        (IISESampler, {"arms": {"x": [0.1]}}, TypeError, ["arms['x'] must be a distribution"]),
        (IISESampler, {"arms": [{"x": 1}, {"x": 1}]}, ValueError, ["arms[0]", "arms[1]", "remove"]),
        (IISESampler, {"arms": [{"x": 1, "epochs": 3}]}, ValueError, ["arms", "'epochs'"]),
        (MFSampler, PER_COST | {"epsilon": 0.1}, ValueError, ["epsilon=0.1", "leave it out"]),
        (MFSampler, PER_PULL | {"bias": [0.1, 0]}, ValueError, ["bias=[0.1, 0]", "per pull"]),
        (MFSampler, PER_PULL | {"measure": 10}, ValueError, ["measure=10", "no part"]),
        (SearchSampler, {"proposer": GRID}, TypeError, ["proposer=GridSampler enumerates"]),
    ],
)
def test_bad_arguments_of_one_sampler(cls, options, error, words):
    check(error, words, cls, **{"fidelity": "epochs"} | options)


@pytest.mark.parametrize(
    ("cls", "options", "error", "words"),
    [
        (RCUCBSampler, {"limits": np.int64(51)}, ValueError, ["at most 50", "limits=[51]"]),
        (RCUCBSampler, {"limits": [2.0, 1.0]}, ValueError, ["limits", "2.0", "increasing", "sort"]),
        (RCUCBSampler, {"limits": [1.0], "cost": falling}, ValueError, ["cost", "decrease"]),
        (
            RCUCBSampler,
            {"limits": [1.0], "cost": lambda s: 0.0},
            TypeError,
            ["cost", "each of an array"],
        ),
        (RCUCBSampler, {"penalty": "par"}, TypeError, ["penalty", "'par'", "Linear"]),
        (RCUCBSampler, {"splits": 2}, TypeError, ["RCUCBSampler", "'splits'"]),
        (ZoomingRCUCBSampler, {"cost": falling}, ValueError, ["cost", "decrease"]),
    ],
)
def test_bad_arguments_of_samplers_of_limits(cls, options, error, words):
    given = {"arms": ARMS} | ({"longest": 1.0} if cls is ZoomingRCUCBSampler else {})
    check(error, words, cls, **given | options)


def test_a_charge_that_falls_beyond_an_hour_is_named_once_limits_are_derived():
    def hump(seconds):
        return np.sin(seconds / 4000.0)  # falls from 6283 seconds on

    def timed(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("mfhpo:enforced_by", "time_limited")
        trial.set_user_attr("mfhpo:seconds", 10_000.0 * x)
        return x

    arms = [{"x": x} for x in (0.2, 0.5, 0.9)]
    study = optuna.create_study(sampler=RCUCBSampler(arms, cost=hump))
    with pytest.raises(ValueError, match=r"cost must .*seconds"):
        study.optimize(timed, n_trials=10)
    study.sampler = RCUCBSampler(arms, cost=Linear(0.1))
    study.optimize(timed, n_trials=1)
    assert study.sampler.best_limit(study) > 1.0


@pytest.mark.parametrize("cls", [MFTopTwoSampler, MFGradSampler, IISESampler])
def test_bounds_given_as_numbers_are_of_the_kind_that_the_variant_names(cls):
    def bias(**options):
        sampler = cls(levels(1, 3, 9), ARMS, sigma=0.05, epsilon=0.1, **options)
        return sampler.known(optuna.create_study()).policy.bias

    assert bias(bias=[0.2, 0.1, 0]) == Bias.max(0.2, 0.1, 0.0)
    assert bias(bias=[0.2, 0.1, 0], variant="order") == Bias.order(0.2, 0.1, 0.0)
    assert bias(bias=Bias.order(0.2, 0.1, 0)) == Bias.order(0.2, 0.1, 0.0)
    with pytest.raises(ValueError, match=r"variant='max'.*'order'"):
        bias(bias=Bias.order(0.2, 0.1, 0), variant="max")


@pytest.mark.parametrize("bias", [[0.1, 0.0], [0.3, 0.2, 0.1, 0.0]])
def test_wrong_number_of_bounds(bias):
    with pytest.raises(ValueError, match=rf"bias has {len(bias)} bounds.*3 fidelities; give one"):
        IISESampler(levels(1, 3, 9), bias=bias)
    study = optuna.create_study(sampler=IISESampler("epochs", bias=bias))
    with pytest.raises(ValueError, match=rf"bias has {len(bias)} .*(3 fidelities|3 levels)"):
        study.optimize(objective, n_trials=3)


@every_kind
def test_multi_objective_study(sampler):
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    says = rf"{type(sampler).__name__} is for one objective.*multi-objective.*NashSampler.*weighted"
    with pytest.raises(ValueError, match=says):
        study.optimize(lambda trial: (objective(trial), 0.0), n_trials=2)
    with pytest.raises(ValueError, match=says):
        sampler.recommendation(study)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]


@every_kind
def test_hyperband(sampler):
    study = optuna.create_study(sampler=sampler, pruner=HyperbandPruner(1, 9))
    with pytest.raises(ValueError, match=r"does not go with HyperbandPruner.*pruner=.*NopPruner"):
        study.optimize(objective, n_trials=2)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL]


def test_a_fidelity_that_is_never_asked_for():
    study = optuna.create_study(sampler=IISESampler("epoch", arms=4))
    with (
        pytest.warns(UserWarning, match=r"fidelity='epoch'.*trial 0.*\['epochs', 'x'\]"),
        pytest.raises(ValueError, match=r"fidelity='epoch', but.*Did you mean"),
    ):
        study.optimize(objective, n_trials=100)
    assert len(study.trials) == 4


@pytest.mark.parametrize(
    "sampler", [IISESampler(levels(1, 3, 27), arms=4), SearchSampler(levels(1, 27), budget=99)]
)
def test_declared_levels_that_the_objective_does_not_allow(sampler):
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match=r"epochs.*27.*does not allow"):
        study.optimize(objective, n_trials=100)


@pytest.mark.parametrize("failing", [0, 3])
def test_a_search_says_at_the_first_value_that_its_fidelity_is_never_asked_for(failing):
    def objective(trial):
        trial.suggest_int("epochs", 1, 9)
        if trial.number < failing:
            raise LookupError
        return trial.suggest_float("x", -1, 1)

    study = optuna.create_study(sampler=SearchSampler("epoch", budget=100))
    with (
        pytest.warns(UserWarning, match=rf"fidelity='epoch', but .* in trial {failing}"),
        pytest.raises(ValueError, match=r"fidelity='epoch'.*\['epochs', 'x'\].*mean .*'epochs'"),
    ):
        study.optimize(objective, n_trials=100, catch=(LookupError,))
    assert len(study.trials) == failing + 1


@pytest.mark.parametrize("x", [5.0, "low", None])
def test_an_arm_outside_the_objective_s_range_does_not_keep_the_race_from_ending(x):
    sampler = IISESampler("epochs", [{"x": 0.0}, {"x": 0.9}, {"x": x}], epsilon=0.2, seed=0)
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(ValueError, match=rf"{x!r}"):
        study.optimize(objective, n_trials=500)


def test_a_name_in_the_arms_that_the_objective_never_asks_for():
    arms = [{"xx": -0.5}, {"xx": 0.0}, {"xx": 0.5}]
    study = optuna.create_study(sampler=IISESampler("epochs", arms, epsilon=0.2, seed=0))
    with pytest.warns(UserWarning, match=r"arms.*'xx'"):
        study.optimize(objective, n_trials=500)
