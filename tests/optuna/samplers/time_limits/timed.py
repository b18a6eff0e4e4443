"""Studies with time limits whose clock is invented, so that tests need not wait."""

import math

import numpy as np
import optuna
from optuna.trial import TrialState

from mfhpo_optuna import RCUCBSampler
from tests.optuna.samplers.races import PULL

LIMIT = "mfhpo:limit"
SECONDS = "mfhpo:seconds"
CENSORED = "mfhpo:censored_at"
ENFORCER = "mfhpo:enforced_by"

ARMS = [{"x": x} for x in (0.2, 0.5, 0.9)]
LIMITS = (1.0, 2.0, 4.0)


def outcome(x, k):
    """Value and seconds of the k-th trial with this x: a larger x is better and slower."""
    rng = np.random.default_rng([int(1000 * x), k])
    return float(np.clip(x + 0.1 * rng.normal(), 0.0, 1.0)), float(rng.gamma(4.0, 0.5 * x))


def end(trial, value, seconds):
    """End a trial as an enforcer would whose clock shows so many seconds."""
    limit = trial.user_attrs.get(LIMIT, math.inf)
    trial.set_user_attr(ENFORCER, "time_limited")  # whose seconds the sampler trusts
    trial.set_user_attr(SECONDS, min(seconds, limit))
    if seconds > limit:
        trial.set_user_attr(CENSORED, limit)
        raise optuna.TrialPruned
    return value


def score(trial, sign=1.0):
    """Larger is better; the k-th trial of an arm has the k-th outcome, whatever its number."""
    x = trial.suggest_float("x", 0.0, 1.0)
    arm = trial.user_attrs[PULL]["arm"]
    trials = trial.study.get_trials(deepcopy=False)
    done = sum(
        t.state.is_finished() and t.user_attrs.get(PULL, {}).get("arm") == arm for t in trials
    )
    value, seconds = outcome(x, done)
    return end(trial, sign * value, seconds)


def make(**options):
    given = {"arms": ARMS, "limits": LIMITS, "reward_range": (0.0, 1.0), "seed": 0} | options
    return RCUCBSampler(**given)


def run(sampler, objective=score, n_trials=1000, direction="maximize", **options):
    study = optuna.create_study(sampler=sampler, direction=direction, **options)
    study.optimize(objective, n_trials=n_trials)
    return study


def pulls(study):
    return [trial for trial in study.get_trials(deepcopy=False) if PULL in trial.user_attrs]


def history(study, sampler=None):
    """Return what the sampler has learned, in its order."""
    return (sampler or study.sampler).known(study).experiment.history()


def sequence(study):
    return [
        (t.user_attrs[PULL]["arm"], t.user_attrs.get(LIMIT), t.params, t.value, t.state)
        for t in pulls(study)
        if t.state != TrialState.RUNNING
    ]
