"""What schedulers cost: CPU time inside a scheduler's methods, per result of a trial."""

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ray.train._internal.storage import StorageContext
from ray.tune.schedulers import (
    AsyncHyperBandScheduler,
    FIFOScheduler,
    HyperBandScheduler,
    TrialScheduler,
)

from benchmarks.tune_clock import ReplayedCurves, simulate
from mfhpo import Bias
from mfhpo.censored import Linear
from mfhpo_ray import IISEScheduler, MFEliminationScheduler, RCUCBScheduler

Row = dict[str, Any]

_ITERATIONS = 9
_REPLICATES = 10
_SLOTS = 8
_PROMISED_TRIALS, _MOST_MILLISECONDS = 1_000, 1.0
_HOOKS = (
    "on_trial_add",
    "on_trial_result",
    "on_trial_complete",
    "on_trial_remove",
    "choose_trial_to_run",
)

OURS: dict[str, Callable[[], TrialScheduler]] = {
    # Nobody is the best of equals: no race ends before its replicates do.
    "IISEScheduler": lambda: IISEScheduler(
        levels=(1, 3, 9), epsilon=0.0, sigma=1.0, bias=Bias.max(0.1, 0.1, 0.0)
    ),
    "MFEliminationScheduler": lambda: MFEliminationScheduler(
        bias={1: 10.0, 3: 10.0}, noise=10.0, max_t=_ITERATIONS
    ),
    "RCUCBScheduler": lambda: RCUCBScheduler(
        [5.0, 10.0, 20.0], cost=Linear(0.01), reward_range=(-5.0, 5.0)
    ),
}

SCHEDULERS: dict[str, Callable[[], TrialScheduler]] = {
    "FIFOScheduler": FIFOScheduler,
    "AsyncHyperBandScheduler": lambda: AsyncHyperBandScheduler(
        max_t=_ITERATIONS, reduction_factor=3
    ),
    "HyperBandScheduler": lambda: HyperBandScheduler(max_t=_ITERATIONS),
    **OURS,
}


class Stopwatch:
    """Adds up the CPU time inside a scheduler's methods, without what the controller does for it.

    Parameters
    ----------
    scheduler
        Its methods are replaced by timed ones.
    """

    def __init__(self, scheduler: TrialScheduler) -> None:
        self.seconds = 0.0
        self._runs = [False]  # whether it runs now, and before each call under way
        self._since = 0.0
        for name in _HOOKS:
            setattr(scheduler, name, self._timed(getattr(scheduler, name)))

    def running(self, runs: bool, function: Callable[..., Any]) -> Callable[..., Any]:
        """Let the watch run, or stand, while a function is called."""

        def called(*arguments: Any, **options: Any) -> Any:
            self._switch()
            self._runs.append(runs)
            try:
                return function(*arguments, **options)
            finally:
                self._switch()
                self._runs.pop()

        return called

    def _switch(self) -> None:
        now = time.process_time()
        if self._runs[-1]:
            self.seconds += now - self._since
        self._since = now

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def on_watched(controller: Any, *arguments: Any) -> Any:
            return method(_Unwatched(controller, self), *arguments)

        return self.running(True, on_watched)


class _Unwatched:
    """A controller in whose methods the watch stands."""

    def __init__(self, controller: Any, watch: Stopwatch) -> None:
        self._controller = controller
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._controller, name)
        return self._watch.running(False, attribute) if callable(attribute) else attribute


def milliseconds_per_result(name: str, trials: int, seed: int) -> tuple[float, int]:
    """Run an experiment of equal arms; return CPU milliseconds per result, and results."""
    arms = max(2, trials // _REPLICATES)
    curves = ReplayedCurves(np.zeros((arms, _ITERATIONS)), sigma=1.0, seed=seed)
    configurations = [{"arm": number % arms, "seed": number // arms} for number in range(trials)]
    scheduler = SCHEDULERS[name]()
    if name in OURS:
        _note_in_real_time(scheduler)
    watch = Stopwatch(scheduler)
    gc.collect()  # what earlier experiments have left is none of its time
    with tempfile.TemporaryDirectory() as folder:
        # Ours write what was observed there.
        storage = StorageContext(folder, "overhead") if name in OURS else None
        outcome = simulate(
            scheduler,
            configurations,
            curves,
            slots=_SLOTS,
            max_t=_ITERATIONS,
            checkpoints=True,
            storage=storage,
            poll_seconds=1e9,
        )
    return 1e3 * watch.seconds / outcome.iterations, outcome.iterations


def _note_in_real_time(scheduler: Any) -> None:
    """Let a scheduler note answers in a share of real time: no virtual time passes meanwhile."""
    note = scheduler._note_answer

    def noted(urgent: bool = True) -> None:
        virtual, scheduler._clock = scheduler._clock, time.perf_counter
        try:
            note(urgent)
        finally:
            scheduler._clock = virtual

    scheduler._note_answer = noted


def measure(names: Sequence[str], sizes: Sequence[int], repeats: int, seed: int) -> list[Row]:
    """Measure schedulers in turn at several numbers of trials; medians over the repeats."""
    samples: dict[tuple[str, int], list[float]] = {}
    results: dict[tuple[str, int], int] = {}
    for repeat in range(repeats):
        for size in sizes:
            for name in names:
                milliseconds, results[name, size] = milliseconds_per_result(
                    name, size, seed + repeat
                )
                samples.setdefault((name, size), []).append(milliseconds)
    return [
        {
            "scheduler": name,
            "trials": size,
            "results": results[name, size],
            "ms_per_result": round(statistics.median(samples[name, size]), 4),
            "largest": round(max(samples[name, size]), 4),
        }
        for name in names
        for size in sizes
    ]


def holds(rows: Sequence[Row]) -> dict[str, bool]:
    """Whether ours keep to what is promised of them."""
    return {
        f"{row['scheduler']}: at most {_MOST_MILLISECONDS:g} ms per result at "
        f"{row['trials']:,} trials": row["ms_per_result"] <= _MOST_MILLISECONDS
        for row in rows
        if row["scheduler"] in OURS and row["trials"] == _PROMISED_TRIALS
    }


def table_of(rows: Sequence[Row]) -> str:
    """The rows as text."""
    sizes = list(dict.fromkeys(row["trials"] for row in rows))
    lines = [f"{'CPU ms per result, at trials':30}" + "".join(f"{size:>10,}" for size in sizes)]
    for name in dict.fromkeys(row["scheduler"] for row in rows):
        cells = [row["ms_per_result"] for row in rows if row["scheduler"] == name]
        lines.append(f"{name:30}" + "".join(f"{cell:>10.3f}" for cell in cells))
    return "\n".join(lines)
