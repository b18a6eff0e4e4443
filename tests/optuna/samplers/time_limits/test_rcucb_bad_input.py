"""Wrong arguments of `RCUCBSampler`: each error names the argument, its value and what is right."""

from __future__ import annotations

import numpy as np
import optuna
import pytest

from mfhpo.censored import Linear
from mfhpo_optuna import RCUCBSampler, ZoomingRCUCBSampler
from tests.optuna.samplers.time_limits.timed import ARMS, score

optuna.logging.set_verbosity(optuna.logging.WARNING)


def falling(seconds):
    return 1.0 / (1.0 + seconds)


def negative(seconds):
    return -seconds


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limits": []}, ["limits", "empty"]),
        ({"limits": [0.0, 1.0]}, ["limits", "0.0", "positive"]),
        ({"limits": [-1.0, 1.0]}, ["limits", "-1.0", "positive"]),
        ({"limits": [2.0, 1.0]}, ["limits", "2.0", "increasing", "sort"]),
        ({"limits": [1.0, 1.0]}, ["limits", "increasing", "drop repeats"]),
        ({"limits": [1.0, float("inf")]}, ["limits", "inf", "finite"]),
        ({"limits": [float("nan")]}, ["limits", "nan", "finite"]),
        ({"limits": 0}, ["limits", "0", "at least 1"]),
        ({"limits": 60}, ["limits=60", "number of limits", "60 seconds", "limits=[60]"]),
        ({"limits": np.int64(51)}, ["limits", "51", "at most 50"]),
        ({"limits": [1.0], "cost": falling}, ["cost", "decrease"]),
        ({"limits": [1.0], "penalty": falling}, ["penalty", "decrease"]),
        ({"limits": [1.0], "penalty": negative}, ["penalty", "at least 0"]),
        ({"reward_range": (1.0, 0.0)}, ["reward_range", "(1.0, 0.0)", "smaller one first"]),
        ({"reward_range": (0.0, 0.0)}, ["reward_range", "(0.0, 0.0)"]),
        ({"reward_range": (0.0, float("inf"))}, ["reward_range", "inf", "finite"]),
        ({"horizon": 0}, ["horizon", "0", "at least 1"]),
        ({"confidence": "ucb"}, ["confidence", "'ucb'", "kl"]),
        ({"survival": "km"}, ["survival", "'km'", "kaplan-meier"]),
        ({"exploration": 0.0}, ["exploration", "0.0", "positive"]),
        ({"longest": 0.0}, ["longest", "0.0", "positive"]),
        ({"longest": 5.0, "limits": [1.0]}, ["longest", "5.0", "[1.0]", "leave longest out"]),
        ({"delta": 1.0}, ["delta", "1.0", "between 0 and 1"]),
        ({"max_failures": 0}, ["max_failures", "0", "at least 1"]),
        ({"lease": -1.0}, ["lease", "-1.0", "positive"]),
        ({"seed": -1}, ["seed", "-1", "at least 0"]),
        ({"arms": 0}, ["arms", "0", "at least 1"]),
        ({"arms": []}, ["arms=[]", "at least one"]),
        ({"arms": [{"x": 1}, {"x": 1}]}, ["arms[0]", "arms[1]", "remove one"]),
    ],
)
def test_bad_value(options, words):
    with pytest.raises(ValueError, match=r".") as caught:
        RCUCBSampler(**{"arms": ARMS} | options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"arms": 3.5}, ["arms", "3.5"]),
        ({"limits": True}, ["limits", "True", "whole number"]),
        ({"limits": "1, 2"}, ["limits", "'1, 2'"]),
        ({"limits": ["a"]}, ["limits", "'a'"]),
        ({"cost": 0.1}, ["cost", "0.1", "Linear"]),
        ({"penalty": "par"}, ["penalty", "'par'", "Linear"]),
        ({"limits": [1.0], "cost": lambda seconds: 0.0}, ["cost", "each of an array"]),
        ({"limits": 3.0}, ["limits", "3.0", "sequence"]),
        ({"reward_range": 1.0}, ["reward_range", "1.0", "(0, 1)"]),
        ({"reward_range": (0.0, 0.5, 1.0)}, ["reward_range", "0.5"]),
        ({"horizon": 2.5}, ["horizon", "2.5", "whole number"]),
        ({"exploration": "much"}, ["exploration", "'much'", "number"]),
        ({"longest": "1 h"}, ["longest", "'1 h'", "number"]),
        ({"delta": "5%"}, ["delta", "'5%'", "number"]),
        ({"lease": "1 h"}, ["lease", "'1 h'", "number"]),
        ({"seed": 0.5}, ["seed", "0.5", "whole number"]),
        ({"arm_sampler": optuna.samplers.GridSampler({"x": [1]})}, ["arm_sampler", "GridSampler"]),
        ({"arm_sampler": 3}, ["arm_sampler", "3", "TPESampler()"]),
        ({"arm_sampler": optuna.samplers.TPESampler}, ["arm_sampler", "class", "TPESampler()"]),
        ({"progress": "x"}, ["progress", "'x'", "True, False or None"]),
        ({"progress": 1}, ["progress", "1"]),
    ],
)
def test_bad_type(options, words):
    with pytest.raises(TypeError) as caught:
        RCUCBSampler(**{"arms": ARMS} | options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"longest": 0.0}, ["longest", "0.0", "positive"]),
        ({"longest": float("inf")}, ["longest", "inf", "finite"]),
        ({"splits": 1}, ["splits", "1", "at least 2"]),
        ({"smoothness": 0.0}, ["smoothness", "0.0", "positive"]),
        ({"confidence": "kl+"}, ["confidence", "kl+", '"kl"']),
        ({"cost": falling}, ["cost", "decrease"]),
        ({"longest": None}, ["longest", "None", "number"]),
        ({"longest": True}, ["longest", "True", "number"]),
        ({"smoothness": "much"}, ["smoothness", "'much'", "number"]),
    ],
)
def test_bad_arguments_of_the_zooming_sampler(options, words):
    with pytest.raises((TypeError, ValueError), match=r".") as caught:
        ZoomingRCUCBSampler(**{"arms": ARMS, "longest": 1.0} | options)
    for word in words:
        assert word in str(caught.value)


def test_fifty_limits_may_be_derived():
    RCUCBSampler(ARMS, limits=50)


def test_numpy_numbers_are_numbers():
    RCUCBSampler(np.int64(4), limits=np.int64(3), horizon=np.int64(10), delta=np.float64(0.1))
    RCUCBSampler(4, limits=np.array([1.0, 2.0]), seed=np.int64(1))


def test_a_charge_that_falls_beyond_an_hour_is_named_once_limits_are_derived():
    def hump(seconds):
        return np.sin(seconds / 4000.0)  # falls from 6283 seconds on

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("mfhpo:enforced_by", "time_limited")
        trial.set_user_attr("mfhpo:seconds", 10_000.0 * x)
        return x

    study = optuna.create_study(sampler=RCUCBSampler(ARMS, cost=hump))
    with pytest.raises(ValueError, match=r"cost must .*seconds"):
        study.optimize(objective, n_trials=10)
    study.sampler = RCUCBSampler(ARMS, cost=Linear(0.1))
    study.optimize(objective, n_trials=1)
    assert study.sampler.best_limit(study) > 1.0


def test_resuming_with_fewer_arms():
    study = optuna.create_study(sampler=RCUCBSampler(ARMS, limits=[1.0]))
    study.optimize(score, n_trials=5)
    study.sampler = RCUCBSampler(ARMS[:2], limits=[1.0])
    with pytest.raises(ValueError, match=r"belongs to arm 2, but arms has 2.*begun with"):
        study.optimize(score, n_trials=1)


def test_arms_with_different_keys():
    with pytest.warns(UserWarning, match=r"arms have different keys: arms\[1\].*lacks 'y'"):
        RCUCBSampler([{"x": 0.1, "y": 1}, {"x": 0.2}])


def test_an_arm_outside_the_objective_s_range():
    study = optuna.create_study(sampler=RCUCBSampler([{"x": 0.1}, {"x": 5.0}], limits=[1.0]))
    with pytest.raises(ValueError, match=r"arms\[1\]\['x'\]=5\.0 is not a value of"):
        study.optimize(score, n_trials=5)


def test_a_name_in_the_arms_that_the_objective_never_asks_for():
    arms = [{"x": 0.1, "z": 1}, {"x": 0.5, "z": 1}]
    study = optuna.create_study(sampler=RCUCBSampler(arms, limits=[5.0]))
    with pytest.warns(UserWarning, match=r"arms contain 'z', which the objective did not ask for"):
        study.optimize(score, n_trials=5)
