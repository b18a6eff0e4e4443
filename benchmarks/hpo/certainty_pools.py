"""Pools of random configurations, the truth about them, and bounds on the bias of their levels."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.problems import DEVELOPMENT_TASKS, problem_named
from benchmarks.hpo.problems.known import NoisyProblem
from mfhpo.knowledge.arrays import FloatArray

# Configurations of another task that its bounds are looked up from, and the source of their draw.
_ELSEWHERE, _ELSEWHERE_SEED = 1000, 1_000_003
# Of the configurations of another task, the declared bounds hold for this share.
_SHARE = 0.95


@dataclass(frozen=True)
class Pool:
    """Configurations to choose from, and the truth about them.

    Parameters
    ----------
    task
        Such as "lcbench 3945".
    means
        Noiseless accuracy in percent, shape (M, K), the target level last.
    costs
        Of a training from scratch at each level, in trainings at the target, shape (M,).
    continues
        Whether a training can go on from a cheaper level, so that only the difference is paid.
    configurations
        What they are, for those that model them.
    """

    task: str
    means: FloatArray
    costs: FloatArray
    continues: bool
    configurations: tuple[Mapping[str, Any], ...] = ()

    @property
    def n_arms(self) -> int:
        """Number of configurations K."""
        return int(self.means.shape[1])

    @property
    def target(self) -> int:
        """Index of the target level, M - 1."""
        return len(self.costs) - 1

    def regret(self, arm: int) -> float:
        """By how much the best configuration is better, in percent."""
        return float(self.means[-1].max() - self.means[-1, arm])


@dataclass(frozen=True)
class Bounds:
    """Bounds on the bias of every level, shape (M,), in percent: max bounds and order bounds."""

    xi: FloatArray
    gamma: FloatArray

    def hold(self, means: FloatArray) -> tuple[bool, bool]:
        """Whether each kind holds for all configurations of shape (M, K)."""
        biases = means - means[-1]
        return (
            bool((np.abs(biases).max(axis=1) <= self.xi).all()),
            bool((np.ptp(biases, axis=1) <= self.gamma).all()),
        )


def draw_pool(
    task: str,
    levels: Sequence[float] | None,
    n_arms: int,
    seed: int,
    data: Path | str | None = None,
) -> Pool:
    """Draw configurations of a task at random.

    Parameters
    ----------
    task
        "lcbench TASK" or "rbv2_xgboost TASK".
    levels
        Levels of its fidelity, or None for its default.
    n_arms, seed
        Number of configurations, and source of the draw.
    data
        YAHPO's folder; by default that in the data folder.
    """
    problem = problem_named(task, data, levels=levels)
    if not isinstance(problem, NoisyProblem):
        raise ValueError(f"task={task!r} has no known true values; take a surrogate's task.")
    rng = np.random.default_rng([seed, zlib.crc32(task.encode())])
    configurations = [problem.space.draw(rng) for _ in range(n_arms)]
    fidelity = problem.fidelity
    return Pool(
        task,
        np.array([problem.noiseless(configurations, level) for level in fidelity.levels]),
        np.array([problem.cost(level) for level in fidelity.levels]) / problem.full_cost,
        fidelity.continues,
        tuple(configurations),
    )


@cache
def kept_pool(
    task: str, levels: tuple[float, ...] | None, n_arms: int, seed: int, data: Path
) -> Pool:
    """Draw a pool as `draw_pool` does, but only once in a process."""
    return draw_pool(task, levels, n_arms, seed, data)


def bounds_elsewhere(
    task: str, levels: tuple[float, ...] | None, data: Path | str | None = None
) -> Bounds:
    """What somebody careful who has seen the other development tasks would declare.

    Each of the other tasks of the same kind shows 1,000 random configurations. Its max bound at a
    level is the 95 % quantile of their absolute biases, its order bound the width of the interval
    between the 2.5 % and the 97.5 % quantile of their biases. What is declared is the largest over
    these tasks.
    """
    kind = task.partition(" ")[0]
    others = [
        other for other in DEVELOPMENT_TASKS if other != task and other.partition(" ")[0] == kind
    ]
    seen = [_seen_of(other, levels, data) for other in others]
    return Bounds(
        np.max([bounds.xi for bounds in seen], axis=0),
        np.max([bounds.gamma for bounds in seen], axis=0),
    )


@cache
def _seen_of(task: str, levels: tuple[float, ...] | None, data: Path | str | None) -> Bounds:
    means = draw_pool(task, levels, _ELSEWHERE, _ELSEWHERE_SEED, data).means
    biases = means - means[-1]
    low, high = np.quantile(biases, [(1.0 - _SHARE) / 2.0, (1.0 + _SHARE) / 2.0], axis=1)
    return Bounds(np.quantile(np.abs(biases), _SHARE, axis=1), high - low)
