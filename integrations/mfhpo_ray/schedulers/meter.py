"""What a run has cost since it was last paid for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_ray.experiment.prices import Prices
from mfhpo_ray.schedulers.levels import saved_metrics, time_in
from mfhpo_ray.schedulers.runs import Run

__all__ = ["Meter"]


class Meter:
    """Follows runs by their results, and charges for increments."""

    def __init__(self, fidelity: Fidelity, prices: Mapping[str, float] | None) -> None:
        self._name = fidelity.name
        self._levels = tuple(fidelity.levels or ())
        self._prices = Prices(prices, fidelity.costs)
        self._costs = fidelity.costs_of(self._levels)  # None where they are measured

    def note(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in how far a run has come, and where it set out if this is its first result."""
        shown = time_in(result, self._name)
        if run.began_at is None:
            run.began_at, run.began_with = 0.0, 0.0
            saved = saved_metrics(run.trial)
            time = float(saved.get(self._name, 0.0))
            if 0.0 < time < shown:  # else it has begun anew, though it may have a checkpoint
                run.began_at, run.began_with = time, float(saved.get("time_total_s", 0.0))
        run.shown = shown
        run.seconds = float(result.get("time_total_s", 0.0))

    def pay(self, run: Run) -> float:
        """What a run has cost, as far as it has reported; it is paid then."""
        owed, run.owed = run.owed, 0.0
        if run.began_at is None:
            return owed
        before, seconds_before = run.began_at, run.began_with
        run.began_at, run.began_with = run.shown, run.seconds
        if self._costs is None:
            seconds = max(0.0, run.seconds - seconds_before)
            return owed + seconds * self._prices.per_second(run.trial)
        # Linear between the levels.
        marks, costs = (0.0, *self._levels), (0.0, *self._costs)
        cost, paid = (float(np.interp(time, marks, costs)) for time in (run.shown, before))
        return owed + max(0.0, cost - paid)
