import numpy as np
import optuna
import pytest

from mfhpo.censored import Linear
from mfhpo_optuna import RCUCBSampler, ZoomingRCUCBSampler
from tests.optuna.samplers.time_limits.timed import ARMS


def falling(seconds):
    return 1.0 / (1.0 + seconds)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"limits": [0.0, 1.0]}, ValueError, ["limits", "0.0", "positive"]),
        ({"limits": [2.0, 1.0]}, ValueError, ["limits", "2.0", "increasing", "sort"]),
        ({"limits": [1.0, float("inf")]}, ValueError, ["limits", "inf", "finite"]),
        ({"limits": np.int64(51)}, ValueError, ["limits", "51", "at most 50", "limits=[51]"]),
        ({"limits": True}, TypeError, ["limits", "True", "whole number"]),
        ({"limits": 3.0}, TypeError, ["limits", "3.0", "sequence"]),
        ({"limits": ["a"]}, TypeError, ["limits", "'a'"]),
        ({"limits": [1.0], "cost": falling}, ValueError, ["cost", "decrease"]),
        ({"limits": [1.0], "penalty": falling}, ValueError, ["penalty", "decrease"]),
        ({"limits": [1.0], "cost": lambda s: 0.0}, TypeError, ["cost", "each of an array"]),
        ({"penalty": "par"}, TypeError, ["penalty", "'par'", "Linear"]),
        ({"horizon": 2.5}, TypeError, ["horizon", "2.5", "whole number"]),
        ({"exploration": "much"}, TypeError, ["exploration", "'much'", "number"]),
        ({"longest": "1 h"}, TypeError, ["longest", "'1 h'", "number"]),
        ({"delta": "5%"}, TypeError, ["delta", "'5%'", "number"]),
        ({"splits": 2}, TypeError, ["RCUCBSampler", "'splits'"]),
        ({"arm_sampler": 3}, TypeError, ["arm_sampler", "3", "TPESampler()"]),
        ({"arm_sampler": optuna.samplers.GridSampler({"x": [1]})}, TypeError, ["GridSampler"]),
        ({"progress": 1}, TypeError, ["progress", "1", "True, False or None"]),
        ({"seed": 0.5}, TypeError, ["seed", "0.5", "whole number"]),
    ],
)
def test_bad_input(options, error, words):
    with pytest.raises(error) as caught:
        RCUCBSampler(**{"arms": ARMS} | options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"longest": float("inf")}, ["longest", "inf", "finite"]),
        ({"longest": None}, ["longest", "None", "number"]),
        ({"smoothness": "much"}, ["smoothness", "'much'", "number"]),
        ({"cost": falling}, ["cost", "decrease"]),
        ({"limits": [1.0]}, ["ZoomingRCUCBSampler", "'limits'"]),
    ],
)
def test_bad_arguments_of_the_zooming_sampler(options, words):
    with pytest.raises((TypeError, ValueError), match=r".") as caught:
        ZoomingRCUCBSampler(**{"arms": ARMS, "longest": 1.0} | options)
    for word in words:
        assert word in str(caught.value)


def test_numpy_numbers_are_numbers():
    RCUCBSampler(np.int64(4), limits=np.int64(50), horizon=np.int64(10), delta=np.float64(0.1))
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
