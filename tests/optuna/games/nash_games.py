"""The games, and what is read of their studies, that several test files share."""

import optuna
from optuna.trial import TrialState

from mfhpo_optuna import NashSampler

QUERY = "mfhpo:pull"
GAME = "mfhpo:game"
PLAYERS = {"row": ["x"], "column": ["y"]}

EQUILIBRIUM = {"x": 0.3 / 0.88, "y": 0.5 / 0.88}
"""Of `tracking`: x = .6 y and y = .5 + .2 x."""


def tracking_losses(x, y):
    return (x - 0.6 * y) ** 2, (y - 0.5 - 0.2 * x) ** 2


def tracking(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    return tracking_losses(x, trial.suggest_float("y", 0.0, 1.0))


def tracking_by_level(trial):
    row, column = tracking(trial)
    seconds = trial.suggest_int("seconds", 1, 9)
    return row + 0.02 / seconds, column - 0.02 / seconds


def on_a_grid(trial):
    """`tracking` with so few actions that an answer takes a fraction of the time."""
    x = trial.suggest_float("x", 0.0, 1.0, step=0.0625)
    return tracking_losses(x, trial.suggest_float("y", 0.0, 1.0, step=0.0625))


def on_a_grid_by_level(trial):
    row, column = on_a_grid(trial)
    seconds = trial.suggest_int("seconds", 1, 9)
    return row + 0.02 / seconds, column - 0.02 / seconds


def play(
    objective=tracking, directions=("minimize", "minimize"), n_trials=None, catch=(), **options
):
    sampler = NashSampler(**{"players": PLAYERS, "budget": 12, "seed": 0} | options)
    study = optuna.create_study(directions=list(directions), sampler=sampler)
    study.optimize(objective, n_trials=n_trials, catch=catch)
    return study


def evaluated(study):
    """Parameters and values of the trials that succeeded, in their order."""
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return [(trial.params, trial.values) for trial in trials]
