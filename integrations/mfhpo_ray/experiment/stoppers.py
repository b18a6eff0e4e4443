"""Whether what the user gave as ``RunConfig(stop=...)`` may end a trial before its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ray.tune.stopper import CombinedStopper, NoopStopper, Stopper, TimeoutStopper

from mfhpo_ray.experiment.time_limits import unwrapped

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController


def stopper_of_trials(tune_controller: TuneController) -> str | None:
    """The kind of stopper that may end single trials, None if there is none.

    Conditions in a dictionary are no stopper, but part of each trial.
    """
    stopper = getattr(unwrapped(tune_controller), "_stopper", None)  # a simulation has none
    return next((type(one).__name__ for one in _parts(stopper) if _may_end_a_trial(one)), None)


def _parts(stopper: Stopper | None) -> list[Stopper]:
    if isinstance(stopper, CombinedStopper):
        return [part for one in stopper._stoppers for part in _parts(one)]
    return [] if stopper is None else [stopper]


def _may_end_a_trial(stopper: Stopper) -> bool:
    # TuneConfig(time_budget_s=...) is a TimeoutStopper.
    return not isinstance(stopper, NoopStopper | TimeoutStopper)
