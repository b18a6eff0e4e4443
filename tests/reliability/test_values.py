"""Values that no race expects: it ends all the same, and what its answer says is true."""

import math
import time
import warnings

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from mfhpo_optuna import IISESampler, RCUCBSampler
from tests.reliability.workers import BEST, MAXIMISING, OPTUNA, TRIALS, open_study

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

_FAR = 0.3  # from the best: where the value is bad, in both senses
_TOLERANCE = 0.2  # of the answer's true value
_MOST_TRIALS = 2000
_MANY_ARMS = 5000


def ordinary(trial, name):
    """One noisy evaluation."""
    x = trial.suggest_float("x", -1, 1)
    noise = 0.05 * np.random.default_rng(trial.number).normal()
    if name in MAXIMISING:
        return float(np.clip(0.9 - (x - BEST) ** 2 + noise, 0, 1))
    return (x - BEST) ** 2 + 0.1 / trial.suggest_int("epochs", 1, 9) + noise


def where_bad(value):
    """A kind of values: this one instead of those of bad configurations."""
    return lambda trial, good, name: value if trial.params["x"] < -_FAR else good


def fails_now_and_then(trial, good, name):
    if np.random.default_rng([1, trial.number]).random() < 0.3:
        raise RuntimeError("failed")
    return good


def without_noise(trial, good, name):
    loss = (trial.params["x"] - BEST) ** 2
    return 0.9 - loss if name in MAXIMISING else loss


def only_noise(trial, good, name):
    return 0.5 + 0.1 * np.random.default_rng(trial.number).normal()


ORDINARY = "ordinary"
VALUES = {
    ORDINARY: lambda trial, good, name: good,
    "NaN": where_bad(math.nan),
    "inf": where_bad(math.inf),
    "-inf": where_bad(-math.inf),
    "1e308": where_bad(1e308),
    "-1e308": where_bad(-1e308),
    "None": where_bad(None),
    "a text": where_bad("good"),
    "a pair": where_bad((0.1, 0.2)),
    "an array of two": where_bad(np.zeros(2)),
    "an array of one": lambda trial, good, name: np.array(good),
    "True or False": lambda trial, good, name: good < 0.5,
    "None always": lambda trial, good, name: None,
    "30 % exceptions": fails_now_and_then,
    "+0.01 per trial": lambda trial, good, name: good + 0.01 * trial.number,
    "no noise": without_noise,
    "ties": only_noise,
    "ties, no noise": lambda trial, good, name: 0.5,
}
ANYTHING_IS_RIGHT = {"ties", "ties, no noise", "True or False"}
OURS = ["IISESampler", "SearchSampler", "RCUCBSampler"]


def play(study, kind, name):
    """Run a study of such values to its end, and return what came of it."""

    def objective(trial):
        return VALUES[kind](trial, ordinary(trial, name), name)

    n_trials = TRIALS if name == OPTUNA else _MOST_TRIALS
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        study.optimize(objective, n_trials=n_trials, catch=(RuntimeError,))
        answer = None if name == OPTUNA else study.sampler.recommendation(study)
    states = [trial.state for trial in study.trials]
    params = _best_params(study) if answer is None else answer.params
    x = params.get("x")
    return {
        "sampler": name,
        "objective": kind,
        "values": len(states),
        "failed": states.count(TrialState.FAIL),
        "ended": answer is None or answer.finished,
        "certified": getattr(answer, "certified", None),
        "answer": x,
        "right": None if x is None else kind in ANYTHING_IS_RIGHT or _is_good(x),
    }


def _best_params(study):
    try:
        return study.best_params
    except ValueError:  # no trial is complete
        return {}


def _is_good(x):
    return (x - BEST) ** 2 <= _TOLERANCE


# Optuna alone is played for the table in the docs.
NAMES = [*OURS, pytest.param(OPTUNA, marks=pytest.mark.faults)]


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", NAMES)
def test_values(name, kind, results):
    found = play(open_study(None, name), kind, name)
    results.append(found)
    if name == OPTUNA:
        return
    assert found["ended"]
    if kind == "None always":
        assert found["answer"] is None
        assert not found["certified"]
    else:
        assert found["right"]


def arms(n):
    return [{"x": float(x)} for x in np.linspace(BEST, -1.0, n)]


@pytest.mark.parametrize(
    "n", [pytest.param(1, id="one"), pytest.param(_MANY_ARMS, marks=pytest.mark.faults, id="many")]
)
@pytest.mark.parametrize("name", ["IISESampler", "RCUCBSampler"])
def test_numbers_of_arms(name, n, results):
    enough = min(n, 1000) + 100
    if name == "IISESampler":
        sampler = IISESampler("epochs", arms(n), epsilon=0.2, budget=9.0 * enough, seed=0)
    else:
        limits = [20.0, 80.0]
        sampler = RCUCBSampler(arms(n), limits, reward_range=(0, 1), horizon=enough, seed=0)
    direction = "maximize" if name in MAXIMISING else "minimize"
    study = optuna.create_study(sampler=sampler, direction=direction)
    began = time.process_time()
    found = play(study, ORDINARY, name)
    seconds = (time.process_time() - began) / found["values"]
    words = "one arm" if n == 1 else f"{n:,} arms"
    results.append(found | {"objective": words, "seconds_per_trial": round(seconds, 4)})
    assert found["ended"]
    assert found["right"] or n > 1  # many are evaluated once
