"""Options of searches and schedulers by name, besides those of their policies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypedDict


class AimOptions(TypedDict, total=False):
    """Options of every search and every scheduler.

    Parameters
    ----------
    metric
        The metric; a trial that ends without it has failed. None: that of ``TuneConfig``, which
        reaches a search only together with a ``param_space``.
    mode
        Whether to maximise the metric, "max", or to minimise it, "min". None: as for `metric`.
    """

    metric: str | None
    mode: str | None


class SearcherOptions(AimOptions, total=False):
    """Options of every search that runs a policy.

    Parameters
    ----------
    space
        Search space of the arms, in Tune's terms. None: the ``param_space`` of the Tuner. What is a
        ``tune.sample_from`` there is drawn anew in each trial; in `space`, once for each arm.
    seed_key
        The key of the configuration that gets a seed from 0 to 2**31 - 1, no two trials of a race
        the same. None: no seed is set, and trials have to draw their own.
    seed
        Makes arms, pilot and seeds repeatable. None: drawn, and saved with the experiment.
    """

    space: Mapping[str, Any] | None
    seed_key: str | None
    seed: int | None


class SchedulerOptions(AimOptions, total=False):
    """Options of every scheduler whose trials are replicates of arms.

    Parameters
    ----------
    replicate
        The keys of the configuration in which the replicates of an arm differ, "a/b" for nested
        ones.
    memory_limit
        Bytes that a trial may hold with its child processes; None for no limit. One that holds more
        is ended, and has failed (see `PullScheduler`).
    """

    replicate: str | Collection[str]
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
        there, also if it hangs, has failed. None: no limit; one that hangs holds its slot for ever.
    """

    grace_period: int | None
    reduction_factor: float | None
    levels: Sequence[float] | None
    limit: float | None
