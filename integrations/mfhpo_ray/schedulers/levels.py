"""The levels of a time attribute, how far a trial has come by its results, and at what cost."""

import warnings
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ray.tune.result import DONE, TIME_TOTAL_S

from mfhpo._validation import check_count, check_number, check_numbers, shown
from mfhpo.identification.curves.curves import check_reduction_factor, check_steps
from mfhpo.identification.curves.gains import Bound
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_ray.experiment.checkpoints import saved_metrics
from mfhpo_ray.experiment.prices import Prices, required_resources
from mfhpo_ray.schedulers.runs import Run

MAX_T = 100
"""Where nobody says when a trial is complete: as in Tune's own schedulers."""


def levels_of(
    levels: Sequence[float] | None,
    max_t: int | None,
    grace_period: int | None,
    reduction_factor: float | None,
) -> tuple[float, ...]:
    """Return the levels of a time attribute: as given, or geometric up to `max_t`."""
    if levels is not None and max_t is None:
        _refuse_geometric("levels", grace_period, reduction_factor)
        return tuple(check_numbers("levels", levels, "a list of numbers or None"))
    if levels is not None:
        raise ValueError(
            f"give either max_t, the time at which a trial is complete, or levels, got "
            f"max_t={shown(max_t)} and levels={shown(levels)}."
        )
    last = check_count("max_t", MAX_T if max_t is None else max_t, 1)
    first = 1 if grace_period is None else check_count("grace_period", grace_period, 1, last)
    factor = 3.0 if reduction_factor is None else check_reduction_factor(reduction_factor)
    return check_steps(last, factor, first)


def levels_with_bounds(
    bias: Mapping[float, Bound],
    levels: Sequence[float] | None,
    max_t: int | None,
    grace_period: int | None,
    reduction_factor: float | None,
) -> tuple[float, ...]:
    """Return the levels that bounds are declared for, and the last one."""
    _refuse_geometric("bias={level: bound}", grace_period, reduction_factor)
    if levels is not None or max_t is None:
        raise ValueError(
            f"with bias={{level: bound}}, its levels are those at which trials are judged: give "
            f"max_t, the time at which a trial is complete, and not levels; got max_t={max_t!r} "
            f"and levels={levels!r}."
        )
    last = check_count("max_t", max_t, 1)
    if max(bias) >= last:
        raise ValueError(
            f"bias has a bound for the level {max(bias):g}, which is not before max_t={last}; "
            f"nothing is gained from there on."
        )
    return (*bias, last)


def _refuse_geometric(
    beside: str, grace_period: int | None, reduction_factor: float | None
) -> None:
    for name, value in (("grace_period", grace_period), ("reduction_factor", reduction_factor)):
        if value is not None:
            raise ValueError(f"{name}={shown(value)} has no part beside {beside}; leave it out.")


def time_in(result: Mapping[str, Any], name: str) -> float:
    """Return how far a trial has come by a result."""
    if name not in result:
        raise ValueError(
            f"time_attr={name!r} is not in a trial's result, which has {sorted(result)}; "
            f"report it, or name one of these."
        )
    return check_number(name, result[name])


def set_out_with(run: Run, result: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Return time and seconds that a run went on from, by its first result; 0 if it began anew.

    It may begin anew though it has a checkpoint: the result is no later then. A trial that returns
    when it is resumed shows the result of its checkpoint again, and is done.
    """
    shown, saved = time_in(result, name), saved_metrics(run.trial)
    time = float(saved.get(name, 0.0))
    if time < shown or (time == shown and result.get(DONE)):
        return time, float(saved.get(TIME_TOTAL_S, 0.0))
    return 0.0, 0.0


class Meter:
    """Follows runs by their results, and charges for increments.

    Attributes
    ----------
    levels
        The levels, in order.
    """

    def __init__(self, fidelity: Fidelity, prices: Mapping[str, float] | None) -> None:
        self.levels = tuple(fidelity.levels or ())
        self._name = fidelity.name
        self._has_warned = False
        self._prices = Prices(prices, fidelity.costs)
        self._costs = fidelity.costs_of(self.levels)  # None where they are measured

    def note(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in how far a run has come, and where it set out if this is its first result."""
        if run.began_at is None:
            run.began_at, run.began_with = set_out_with(run, result, self._name)
        run.shown = time_in(result, self._name)
        run.seconds = float(result.get("time_total_s", 0.0))

    def stage(self, run: Run) -> int:
        """Return the index of the last level that a run has come to; -1 before the first."""
        return bisect_right(self.levels, run.shown) - 1

    def warn_if_short(self, run: Run) -> None:
        """Warn, once, of a trial that has ended before the level that it was sent to."""
        level = self.levels[run.level]
        if run.shown >= level or self._has_warned:
            return
        self._has_warned = True
        warnings.warn(
            f"trial {run.trial.trial_id} ended at {self._name}={run.shown:g}, before the level "
            f"{level!r}: its last value counts as the one there, and so will others. Give "
            f"max_t={run.shown:g}, or levels that trials reach.",
            stacklevel=2,
        )

    def pay(self, run: Run) -> float:
        """Return what a run has cost as far as it has reported; it is paid then."""
        if run.began_at is None:
            return 0.0
        before, seconds_before = run.began_at, run.began_with
        run.began_at, run.began_with = run.shown, run.seconds
        if self._costs is None:
            seconds = max(0.0, run.seconds - seconds_before)
            return seconds * self._prices.of(required_resources(run.trial))
        # Linear between the levels.
        marks, costs = (0.0, *self.levels), (0.0, *self._costs)
        cost, paid = (float(np.interp(time, marks, costs)) for time in (run.shown, before))
        return max(0.0, cost - paid)
