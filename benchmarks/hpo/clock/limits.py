"""What limits of time save a search where some configurations take far longer than others.

    python -m benchmarks.hpo.clock.limits --data FOLDER --output search_limits.json

A tenth of all configurations, at random, takes 20 times as long as it would. The search on the
clock keeps the limits that it sets, or lets everything run to its end. It is judged by the time
that it takes to come to the regret which the search without limits has at a given time, in the
mean over all tasks and seeds; with a bootstrap interval of that ratio, over pairs of runs. The same
is said of the search without limits where no configuration takes longer, and none runs away.
"""

import argparse
import functools
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.clock.in_seconds import InSeconds
from benchmarks.hpo.clock.race import on_the_clock
from benchmarks.hpo.meter import Meter
from benchmarks.hpo.ours import Search
from benchmarks.hpo.problem import Evaluation
from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.surrogate import check_surrogates
from benchmarks.hpo.reference import reference
from benchmarks.hpo.space import Configuration, same_configuration
from benchmarks.hpo.tasks import development_task, families_of
from benchmarks.parallel import mapped
from benchmarks.provenance import provenance
from benchmarks.report import as_json, progress, write
from mfhpo.knowledge.arrays import FloatArray, IntArray

_ONE_IN, _TIMES = 10, 20.0
_BUDGET = 100.0
_GRID = np.linspace(1.0, _BUDGET, 199)
_POINTS = (50.0, 100.0)
_RESAMPLES = 1000
_WITHOUT, _WITH, _NONE_SLOW = "without limits", "with limits", "where none takes longer"
_WAYS = (_WITHOUT, _WITH, _NONE_SLOW)


class Runaways(InSeconds):
    """A problem in seconds of which a tenth of the configurations take 20 times as long."""

    def objective_function(
        self, configuration: Configuration, fidelity: float, seed: int
    ) -> Evaluation:
        """Evaluate a configuration; it costs seconds."""
        result = super().objective_function(configuration, fidelity, seed)
        drawn = zlib.crc32(repr(same_configuration(configuration)).encode())
        times = 1.0 if drawn % _ONE_IN else _TIMES
        return Evaluation(result.value, result.cost * times)


def curve(task: tuple[str, int, int, str, Path | None]) -> FloatArray:
    """Regret of one run over time, in percent of that of the median configuration."""
    name, seed, workers, way, data = task
    problem = problem_named(name, data=data)
    known = reference(problem)
    kind = InSeconds if way == _NONE_SLOW else Runaways
    meter = Meter(kind(problem), _BUDGET, seed)
    on_the_clock(functools.partial(Search, limited=way == _WITH), workers)(meter, seed)
    regret = np.full(len(_GRID), 100.0)
    for step in meter.steps:
        value = problem.true_value(step.configuration)
        assert value is not None
        gap = 100.0 * (known.best - value) / (known.best - known.median)
        regret[np.searchsorted(_GRID, step.cost) :] = gap
    return regret


def time_ratios(without: FloatArray, other: FloatArray) -> list[float]:
    """Time over that without limits, for the mean regret that is reached without at a time.

    Arrays are of shape (runs, times).
    """
    found = []
    slow, fast = without.mean(axis=0), other.mean(axis=0)
    for point in _POINTS:
        reached = slow[np.searchsorted(_GRID, point)]
        worse = np.flatnonzero(fast > reached)  # from then on it is there for good
        after = worse[-1] + 1 if worse.size else 0
        # Where the budget is not enough for it, what is meant is this time or more.
        found.append(float(_GRID[min(after, len(_GRID) - 1)]) / point)
    return found


def time_over_time(without: FloatArray, other: FloatArray, drawn: IntArray) -> dict[str, Any]:
    """The ratios of times, and their intervals by what was drawn of the runs again and again."""
    resampled = np.array([time_ratios(without[each], other[each]) for each in drawn])
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return {
        "time over time": time_ratios(without, other),
        "interval": [low.tolist(), high.tolist()],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3, help="of each task (default: 3)")
    parser.add_argument("--workers", type=int, default=1, help="on the clock (default: 1)")
    parser.add_argument(
        "--tasks", type=development_task, nargs="+", default=DEVELOPMENT_TASKS, metavar="TASK"
    )
    parser.add_argument("--data", type=Path, help="YAHPO's folder (default: in the data folder)")
    parser.add_argument("--processes", type=int, default=2, help="that play (default: 2)")
    parser.add_argument("--output", type=Path, help="also write the figures to this file")
    options = parser.parse_args(arguments)
    check_surrogates(parser, options.data, families_of(options.tasks))
    runs = [(task, seed) for seed in range(options.seeds) for task in options.tasks]
    wanted = [(*run, options.workers, way, options.data) for run in runs for way in _WAYS]
    curves = []
    for one, found in zip(wanted, mapped(curve, wanted, options.processes), strict=True):
        progress(f"{one[0]}, seed {one[1]}, {one[3]}: {found[-1]:.1f}")
        curves.append(found)
    of_way = {way: np.array(curves[at :: len(_WAYS)]) for at, way in enumerate(_WAYS)}
    drawn = np.random.default_rng(0).integers(0, len(runs), (_RESAMPLES, len(runs)))
    figures = provenance(
        "benchmarks.hpo.clock.limits",
        ["--seeds", str(options.seeds), "--workers", str(options.workers)],
        "optuna",
    ) | {"runs": len(runs), "tasks": list(options.tasks), "points": list(_POINTS)}
    for way, found in of_way.items():
        regret = [float(np.interp(point, _GRID, found.mean(axis=0))) for point in _POINTS]
        figures[way] = {"regret": regret} | time_over_time(of_way[_WITHOUT], found, drawn)
    print(as_json(figures))
    if options.output:
        write(options.output, as_json(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
