"""Run an experiment of Ray Tune in virtual time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ray.train._internal.storage import StorageContext
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from mfhpo_ray.simulation.controller import Controller
from mfhpo_ray.simulation.curves import Curves
from mfhpo_ray.simulation.outcome import Mode, SimulatedRun
from mfhpo_ray.simulation.settings import Settings

__all__ = ["simulate"]


def simulate(
    scheduler: TrialScheduler,
    trials: Iterable[Mapping[str, Any]] | Searcher,
    curves: Curves,
    *,
    slots: int = 8,
    max_t: int | None = None,
    metric: str = "value",
    mode: Mode = "max",
    checkpoints: bool = False,
    num_samples: int = -1,
    param_space: Mapping[str, Any] | None = None,
    max_concurrent_trials: int | None = None,
    max_failures: int = 0,
    reuse_actors: bool = True,
    start_seconds: float = 0.0,
    resources: Mapping[str, float] | None = None,
    storage: StorageContext | None = None,
    time_budget: float = math.inf,
    poll_seconds: float | None = None,
) -> SimulatedRun:
    """Run an experiment of Ray Tune in virtual time.

    Parameters
    ----------
    scheduler
        Any scheduler that decides about trials only. Where the scheduler or the searcher has an
        attribute ``_clock``, it is set to the virtual clock; ``_count_slots``, where the scheduler
        has it, to the number of slots.
    trials
        The configurations, in their order, or a searcher that suggests them.
    curves
        What training gives.
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

    Raises
    ------
    ValueError
        If an argument is out of range, or the scheduler looks at another metric.
    RuntimeError
        If nothing happens any more though trials are left.

    Examples
    --------
    >>> from ray.tune.schedulers import AsyncHyperBandScheduler
    >>> from mfhpo_ray.simulation import ReplayedCurves, simulate
    >>> curves = ReplayedCurves([[0.3, 0.4, 0.5, 0.6], [0.1, 0.2, 0.3, 0.4]], seconds=10.0)
    >>> run = simulate(
    ...     AsyncHyperBandScheduler(max_t=4, reduction_factor=2),
    ...     [{"arm": 0}, {"arm": 1}],
    ...     curves,
    ...     slots=1,
    ... )
    >>> [trial.last_result["training_iteration"] for trial in run.trials]
    [4, 1]
    >>> run.iterations, run.slot_seconds, run.best()[1]
    (5, 50.0, 0.6)
    """
    settings = Settings(
        slots=slots,
        max_t=max_t,
        metric=metric,
        mode=mode,
        checkpoints=checkpoints,
        num_samples=num_samples,
        param_space=param_space or {},
        max_concurrent_trials=max_concurrent_trials or 0,
        max_failures=max_failures,
        reuse_actors=reuse_actors,
        start_seconds=start_seconds,
        resources=resources or {"CPU": 1.0},
        storage=storage,
        time_budget=time_budget,
        poll_seconds=poll_seconds,
    )
    return Controller(scheduler, trials, curves, settings).run()
