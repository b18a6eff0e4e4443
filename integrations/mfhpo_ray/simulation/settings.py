"""The options of a simulation, with their defaults, checked."""

import math
from collections.abc import Mapping
from typing import Any, TypedDict

from ray.train._internal.storage import StorageContext

from mfhpo._validation import check_count, check_limit, check_nonnegative
from mfhpo_ray.simulation.outcome import Mode


class SimulationOptions(TypedDict, total=False):
    """The options of `mfhpo_ray.simulation.simulate`.

    Parameters
    ----------
    slots
        Number of trials that run at once.
    max_t
        Iterations of a trial (``stop={"training_iteration": max_t}``); the scheduler gets the
        result that ends a trial in ``on_trial_complete`` only. None: until the curves end or the
        scheduler stops it.
    metric, mode
        Name of what is reported, and whether the largest or the smallest is the best; a scheduler
        or a searcher with its own keeps it.
    checkpoints
        Whether a trial that is paused is saved, and goes on from there. If not, it begins anew.
    num_samples
        Number of trials that a searcher makes; -1: until it is finished.
    param_space
        The search space for a searcher without one; what is constant in it is in every
        configuration.
    max_concurrent_trials
        As in ``tune.TuneConfig``.
    max_failures
        How often a trial that crashed is run again; -1: without end.
    reuse_actors
        Whether a trial takes over the process of an earlier one. If not, slots are given to
        trials in the order in which they were asked for, chosen by the scheduler or not.
    start_seconds
        Seconds that a new process takes to start.
    resources
        What a trial holds; None: one CPU.
    storage
        Where trials are stored; None: nowhere.
    time_budget
        Virtual seconds after which the experiment is ended.
    poll_seconds
        How long the loop waits for an event before it asks the scheduler again. None: 0.1 as in
        Tune for a scheduler or a searcher with a clock, and otherwise for ever.
    """

    slots: int
    max_t: int | None
    metric: str
    mode: Mode
    checkpoints: bool
    num_samples: int
    param_space: Mapping[str, Any] | None
    max_concurrent_trials: int | None
    max_failures: int
    reuse_actors: bool
    start_seconds: float
    resources: Mapping[str, float] | None
    storage: StorageContext | None
    time_budget: float
    poll_seconds: float | None


DEFAULTS = SimulationOptions(
    slots=8,
    max_t=None,
    metric="value",
    mode="max",
    checkpoints=False,
    num_samples=-1,
    param_space=None,
    max_concurrent_trials=None,
    max_failures=0,
    reuse_actors=True,
    start_seconds=0.0,
    resources=None,
    storage=None,
    time_budget=math.inf,
    poll_seconds=None,
)


def completed(options: SimulationOptions) -> SimulationOptions:
    """All options, those not given by their defaults; TypeError or ValueError for a wrong one."""
    for name in options:
        if name not in DEFAULTS:
            raise TypeError(f"simulate() got an unexpected keyword argument {name!r}")
    settings = DEFAULTS | options
    check_count("slots", settings["slots"], 1)
    if settings["max_t"] is not None:
        check_count("max_t", settings["max_t"], 1)
    if settings["mode"] not in ("min", "max"):
        raise ValueError(f"mode must be 'min' or 'max', got {settings['mode']!r}.")
    check_nonnegative("start_seconds", settings["start_seconds"])
    if not settings["time_budget"] > 0.0:
        raise ValueError(f"time_budget must be above 0, got {settings['time_budget']!r}.")
    check_limit("poll_seconds", settings["poll_seconds"])
    return settings
