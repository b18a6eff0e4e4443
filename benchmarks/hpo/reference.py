"""What regrets are measured by: the best value known of a problem, and that of a random guess."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.hpo.problem import Problem
from benchmarks.hpo.problems.known import KnownProblem
from mfhpo.knowledge.arrays import FloatArray

_FOR_MEDIAN = 1_000
_RANDOM = 20_000
_STARTS = 100
_NEIGHBOURS = 15
_ROUNDS = 40
_WIDEST, _NARROWEST = 0.2, 0.002  # steps of the local search, in shares of a parameter's range

_found: dict[tuple[str, float], Reference] = {}


class Reference(NamedTuple):
    """True values of the best configuration known, and of the median random one."""

    best: float
    median: float


def reference(problem: Problem) -> Reference:
    """The best and the median true value of a problem; worked out once in a process.

    The median is that of 1,000 random configurations. Where the best is not known exactly, it is
    the best of 20,000 random configurations, improved by a local search from the 100 best of them.
    Always the same draws are used.

    Raises
    ------
    ValueError
        If the problem's true values are not known.

    Examples
    --------
    >>> from benchmarks.hpo.problems import problem_named
    >>> reference(problem_named("branin")).best
    -0.397887...
    """
    if not isinstance(problem, KnownProblem):
        raise ValueError(
            f"problem {problem.name!r} must have true values to be reported on, and what is "
            f"trained has none: play its table, which python -m benchmarks.hpo.tables builds."
        )
    key = problem.name, problem.fidelity.target
    if key not in _found:
        rng = np.random.default_rng(0)
        width = len(problem.space.parameters)
        median = float(np.median(_values(problem, rng.random((_FOR_MEDIAN, width)))))
        best = problem.best_value
        if best is None:
            best = _best(problem, rng.random((_RANDOM, width)), rng)
        _found[key] = Reference(best, median)
    return _found[key]


def _values(problem: KnownProblem, points: FloatArray) -> FloatArray:
    return problem.true_values([problem.space.at(point) for point in points])


def _best(problem: KnownProblem, points: FloatArray, rng: np.random.Generator) -> float:
    """Climb from the best of some points: about half of a neighbour's parameters are moved."""
    values = _values(problem, points)
    order = np.argsort(values)[::-1][:_STARTS]
    points, values = points[order], values[order]
    width = points.shape[1]
    for step in np.geomspace(_WIDEST, _NARROWEST, _ROUNDS):
        shape = (_STARTS, _NEIGHBOURS, width)
        moves = step * rng.standard_normal(shape) * (rng.random(shape) < 0.5)
        neighbours = np.clip(points[:, None, :] + moves, 0.0, 1.0)
        found = _values(problem, neighbours.reshape(-1, width)).reshape(_STARTS, _NEIGHBOURS)
        best = found.argmax(axis=1)
        rows = np.arange(_STARTS)
        improved = found[rows, best] > values
        points[improved] = neighbours[rows, best][improved]
        values[improved] = found[rows, best][improved]
    return float(values.max())
