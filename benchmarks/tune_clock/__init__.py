"""Tune's schedulers and searchers, on known curves, in virtual time and without a cluster.

A stand-in for Tune's controller calls a real scheduler, and a real searcher if there is one, just
as ``ray.tune.execution.tune_controller`` does, with Tune's own `Trial` objects. Training takes
virtual seconds and gives what `Curves` say.

Simplified: checkpoints are saved and restored at once; all trials hold the same resources;
processes start at once, and are used again (``reuse_actors``); callbacks, stoppers and exports are
left out, and so is what reaches for Ray's actors (population-based training, changing of
resources). What a scheduler or a searcher raises is raised, as with ``fail_fast="raise"``.
"""

from benchmarks.tune_clock.controller import simulate
from benchmarks.tune_clock.curves import Curves, ReplayedCurves, Step
from benchmarks.tune_clock.outcome import Event, SimulatedRun

__all__ = ["Curves", "Event", "ReplayedCurves", "SimulatedRun", "Step", "simulate"]
