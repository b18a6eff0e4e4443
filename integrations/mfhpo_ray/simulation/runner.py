"""Run an experiment of Ray Tune in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from mfhpo_ray.simulation.controller import Controller
from mfhpo_ray.simulation.curves import Curves
from mfhpo_ray.simulation.outcome import SimulatedRun
from mfhpo_ray.simulation.settings import SimulationOptions, completed

if TYPE_CHECKING:
    from typing_extensions import Unpack


def simulate(
    scheduler: TrialScheduler,
    trials: Iterable[Mapping[str, Any]] | Searcher,
    curves: Curves,
    **options: Unpack[SimulationOptions],
) -> SimulatedRun:
    """Run an experiment of Ray Tune in virtual time.

    Parameters
    ----------
    scheduler
        Any scheduler that decides about trials only. Where the scheduler or the searcher has an
        attribute ``_clock``, it is set to the virtual clock; ``_count_slots``, where the scheduler
        has it, to the number of slots.
    trials
        The configurations, in their order, or a searcher that suggests them.
    curves
        What training gives.
    **options
        See `mfhpo_ray.simulation.settings.SimulationOptions`.

    Raises
    ------
    ValueError
        If an option is out of range, or the scheduler looks at another metric.
    RuntimeError
        If nothing happens any more though trials are left.

    Examples
    --------
    >>> from ray.tune.schedulers import AsyncHyperBandScheduler
    >>> from mfhpo_ray.simulation import ReplayedCurves, simulate
    >>> curves = ReplayedCurves([[0.3, 0.4, 0.5, 0.6], [0.1, 0.2, 0.3, 0.4]], seconds=10.0)
    >>> scheduler = AsyncHyperBandScheduler(max_t=4, reduction_factor=2)
    >>> run = simulate(scheduler, [{"arm": 0}, {"arm": 1}], curves, slots=1)
    >>> [trial.last_result["training_iteration"] for trial in run.trials]
    [4, 1]
    >>> run.iterations, run.slot_seconds, run.best()[1]
    (5, 50.0, 0.6)
    """
    return Controller(scheduler, trials, curves, completed(options)).run()
