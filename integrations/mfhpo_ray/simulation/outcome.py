"""What became of a simulated experiment."""

import math
from dataclasses import dataclass
from typing import Literal

from ray.tune.experiment import Trial

Mode = Literal["min", "max"]
Scope = Literal["last", "all", "avg", "last-5-avg", "last-10-avg"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a trial.

    Parameters
    ----------
    seconds, trial_id
        When, in virtual seconds, and to which trial.
    kind
        "added", "started", "result", "saved", "paused", "requeued", "terminated" or "error".
    iteration, value
        The training iteration that it had reached, and the metric for a "result".
    """

    seconds: float
    trial_id: str
    kind: str
    iteration: int
    value: float | None = None


@dataclass(frozen=True)
class SimulatedRun:
    """What became of an experiment.

    Parameters
    ----------
    trials, events
        All trials, as Tune leaves them, and what happened, in that order.
    metric, mode
        The metric that was reported, and whether the largest or the smallest is the best.
    slot_seconds, makespan
        Virtual seconds for which slots were held, summed over the slots, and from the beginning to
        the end.
    iterations
        Training iterations that were reported.
    """

    trials: tuple[Trial, ...]
    events: tuple[Event, ...]
    metric: str
    mode: Mode
    slot_seconds: float
    iterations: int
    makespan: float

    def history(self, trial_id: str) -> list[Event]:
        """The results of a trial, in the order in which they were reported."""
        return [
            event for event in self.events if event.trial_id == trial_id and event.kind == "result"
        ]

    def best(self, mode: Mode | None = None, scope: Scope = "last") -> tuple[Trial, float]:
        """What ``ResultGrid.get_best_result`` would hand over: a trial and the value it claims.

        `mode` is the run's own if it is None. `scope` says which values of a trial count: its last
        one, all, or an average.
        """
        mode = self.mode if mode is None else mode
        name = mode if scope == "all" else scope
        best: tuple[Trial, float] | None = None
        for trial in self.trials:
            value = trial.metric_analysis.get(self.metric, {}).get(name, math.nan)
            if not math.isfinite(value):
                continue
            if best is None or (value > best[1] if mode == "max" else value < best[1]):
                best = trial, float(value)
        if best is None:
            raise ValueError(f"no trial has reported a finite {self.metric!r}.")
        return best
