"""What became of a simulated experiment."""

import math
from dataclasses import dataclass
from typing import Literal

from ray.tune.experiment import Trial


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a trial.

    `kind` is "added", "started", "result", "saved", "paused", "requeued", "terminated" or "error";
    `iteration` is the one that the trial had reached, and `value` the metric of a "result".
    """

    seconds: float
    trial_id: str
    kind: str
    iteration: int
    value: float | None = None


@dataclass(frozen=True)
class SimulatedRun:
    """The outcome of an experiment: its trials, as Tune leaves them, and events, in their order.

    `slot_seconds` are virtual seconds for which slots were held, summed over the slots;
    `iterations` the training iterations that were reported.
    """

    trials: tuple[Trial, ...]
    events: tuple[Event, ...]
    metric: str
    mode: str
    slot_seconds: float
    iterations: int
    makespan: float

    def history(self, trial_id: str) -> list[Event]:
        """Return the results of a trial, in the order in which they were reported."""
        return [
            event for event in self.events if event.trial_id == trial_id and event.kind == "result"
        ]

    def best(self, scope: Literal["last", "all"] = "last") -> tuple[Trial, float]:
        """Return what ``ResultGrid.get_best_result`` would: a trial, and the value it claims.

        The last value of each trial counts, or all of them.
        """
        name = self.mode if scope == "all" else scope
        values = [trial.metric_analysis.get(self.metric, {}).get(name) for trial in self.trials]
        claims = [
            (trial, float(value))
            for trial, value in zip(self.trials, values, strict=True)
            if value is not None and math.isfinite(value)
        ]
        if not claims:
            raise ValueError(f"no trial has reported a finite {self.metric!r}.")
        best = max if self.mode == "max" else min
        return best(claims, key=lambda claim: claim[1])
