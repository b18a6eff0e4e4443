"""The options of a simulation, checked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ray.train._internal.storage import StorageContext

from mfhpo_ray.simulation.outcome import Mode


@dataclass(frozen=True)
class Settings:
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
        What a trial holds.
    storage
        Where trials are stored; None: nowhere.
    time_budget
        Virtual seconds after which the experiment is ended.
    poll_seconds
        How long the loop waits for an event before it asks the scheduler again. None: 0.1 as in
        Tune for a scheduler or a searcher with a clock, and otherwise for ever.
    """

    slots: int = 8
    max_t: int | None = None
    metric: str = "value"
    mode: Mode = "max"
    checkpoints: bool = False
    num_samples: int = -1
    param_space: Mapping[str, Any] = field(default_factory=dict)
    max_concurrent_trials: int | None = None
    max_failures: int = 0
    reuse_actors: bool = True
    start_seconds: float = 0.0
    resources: Mapping[str, float] = field(default_factory=lambda: {"CPU": 1.0})
    storage: StorageContext | None = None
    time_budget: float = math.inf
    poll_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ValueError(f"slots must be at least 1, got {self.slots!r}.")
        if self.max_t is not None and self.max_t < 1:
            raise ValueError(f"max_t must be at least 1 or None, got {self.max_t!r}.")
        if self.mode not in ("min", "max"):
            raise ValueError(f"mode must be 'min' or 'max', got {self.mode!r}.")
        if not 0.0 <= self.start_seconds < math.inf:
            raise ValueError(f"start_seconds must be at least 0, got {self.start_seconds!r}.")
        if not self.time_budget > 0.0:
            raise ValueError(f"time_budget must be above 0, got {self.time_budget!r}.")
        if self.poll_seconds is not None and not self.poll_seconds > 0.0:
            raise ValueError(f"poll_seconds must be above 0 or None, got {self.poll_seconds!r}.")

    @property
    def stop(self) -> dict[str, float]:
        """Tune's stopping criterion of a trial."""
        return {} if self.max_t is None else {"training_iteration": self.max_t}
