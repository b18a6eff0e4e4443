"""Options that schedulers take by name: their own, and those of their policy.

The options of policies are documented in `mfhpo.racing.options` and `mfhpo.censored.options`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypedDict

from mfhpo.censored.options import RCUCBOptions
from mfhpo.racing.options import IISEOptions


class SchedulerOptions(TypedDict, total=False):
    """Options of every scheduler whose trials are replicates of arms.

    Parameters
    ----------
    replicate
        The keys of the configuration in which the replicates of an arm differ, "a/b" for nested
        ones.
    arms
        Number of arms, where a search algorithm suggests them one at a time; None: its number of
        samples. The search ends with the first suggestion beyond them. Not needed with random
        search and grids.
    metric
        What to optimise. None: as ``TuneConfig`` says. A trial that ends without it has failed.
    mode
        "max" or "min". None: as ``TuneConfig`` says.
    memory_limit
        Bytes that a trial may hold with its child processes; None for no limit. One that holds more
        is ended, and has failed (see `PullScheduler`).
    """

    replicate: str | Collection[str]
    arms: int | None
    metric: str | None
    mode: str | None
    memory_limit: float | None


class LevelOptions(SchedulerOptions, total=False):
    """Options of every scheduler whose trials pause at levels.

    Parameters
    ----------
    grace_period
        The least level that is made from `max_t`. None: 1.
    reduction_factor
        How many times longer each level made from `max_t` is than the one before. None: 3.
    levels
        The levels themselves, increasing, the last one complete, in place of `max_t`.
    limit
        Seconds that a trial may run from one start or resumption on, above 0. One that is stopped
        there, also if it hangs, has failed. None: no limit, so that a trial which hangs holds its
        slot, and the race, for ever.
    """

    grace_period: int | None
    reduction_factor: float | None
    levels: Sequence[float] | None
    limit: float | None


class IISESchedulerOptions(IISEOptions, LevelOptions):
    """Options of `IISEScheduler`."""


class RCUCBSchedulerOptions(RCUCBOptions, SchedulerOptions):
    """Options of `RCUCBScheduler`."""
