"""The levels of a time attribute, how far a trial has come by its results, and at what cost."""

import warnings
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np
from ray.tune.result import DONE, TIME_TOTAL_S

from mfhpo._validation import check_count, check_number, check_numbers, shown
from mfhpo.identification.curves.curves import check_reduction_factor, check_steps
from mfhpo.identification.curves.declared_bounds import Bound
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo_ray.experiment.checkpoints import saved_metrics
from mfhpo_ray.schedulers.runs import Run

_MAX_T = 100  # where nobody says when a trial is complete: as in Tune's own schedulers


def levels_of(
    max_t: int | None, own: dict[str, Any], bias: Mapping[float, Bound] | None = None
) -> tuple[float, ...]:
    """Take options out of a scheduler's own; return levels: given, of bounds, or geometric."""
    names = ("levels", "grace_period", "reduction_factor")
    levels, grace_period, reduction_factor = given = tuple(own.pop(name) for name in names)
    if bias is not None and (levels is not None or max_t is None):
        raise ValueError(
            f"bias={{level: bound}} has the levels at which trials are judged: give max_t, the "
            f"time at which a trial is complete, and not levels; got max_t={shown(max_t)} and "
            f"levels={shown(levels)}."
        )
    if levels is not None and max_t is not None:
        raise ValueError(
            f"give either max_t, the time at which a trial is complete, or levels, got "
            f"max_t={shown(max_t)} and levels={shown(levels)}."
        )
    beside = "levels" if bias is None else "bias={level: bound}"
    for name, value in zip(names[1:], given[1:], strict=True):
        if value is not None and not (levels is None and bias is None):
            raise ValueError(f"{name}={shown(value)} has no part beside {beside}; leave it out.")
    if levels is not None:
        return tuple(check_numbers("levels", levels, "a list of numbers or None"))
    last = check_count("max_t", _MAX_T if max_t is None else max_t, 1)
    if bias is not None:
        if max(bias) >= last:
            raise ValueError(f"levels of bias must be below max_t={last}, got {max(bias):g}.")
        return (*bias, last)
    first = 1 if grace_period is None else check_count("grace_period", grace_period, 1, last)
    factor = 3.0 if reduction_factor is None else check_reduction_factor(reduction_factor)
    return check_steps(last, factor, first)


class Meter:
    """Follows runs by their results over levels, and charges for increments."""

    def __init__(self, fidelity: Fidelity) -> None:
        self.levels = tuple(fidelity.levels or ())
        self._name = fidelity.name
        self._has_warned = False
        self._costs = fidelity.costs_of(self.levels)  # None where they are measured

    def note(self, run: Run, result: Mapping[str, Any]) -> None:
        """Take in how far a run has come, and where it set out if this is its first result.

        It may begin anew though it has a checkpoint, or show that again, done, when it is resumed.
        """
        if self._name not in result:
            raise ValueError(
                f"time_attr={self._name!r} is not in a trial's result, which has {sorted(result)}; "
                f"report it, or name one of these."
            )
        time = check_number(self._name, result[self._name])
        if run.began_at is None:
            saved = saved_metrics(run.trial)
            began_at = float(saved.get(self._name, 0.0))
            if began_at > time or (began_at == time and not result.get(DONE)):
                began_at, saved = 0.0, {}
            run.began_at, run.began_with = began_at, float(saved.get(TIME_TOTAL_S, 0.0))
        run.shown, run.seconds = time, float(result.get(TIME_TOTAL_S, 0.0))

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
        times, seconds = (run.began_at, run.shown), run.seconds - run.began_with
        run.began_at, run.began_with = run.shown, run.seconds
        if self._costs is None:
            return max(0.0, seconds)
        # Linear between the levels.
        paid, cost = np.interp(times, (0.0, *self.levels), (0.0, *self._costs))
        return max(0.0, float(cost - paid))
