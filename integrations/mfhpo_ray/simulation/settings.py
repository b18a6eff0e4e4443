"""The options of a simulation, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ray.train._internal.storage import StorageContext

from mfhpo_ray.simulation.outcome import Mode

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """The options of `mfhpo_ray.simulation.simulate`, which describes them."""

    slots: int
    max_t: int | None
    metric: str
    mode: Mode
    checkpoints: bool
    num_samples: int
    param_space: Mapping[str, Any]
    max_concurrent_trials: int
    max_failures: int
    reuse_actors: bool
    start_seconds: float
    resources: Mapping[str, float]
    storage: StorageContext | None
    time_budget: float
    poll_seconds: float | None

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
