"""How biased the levels of the tasks are, and what bounds on their bias could do at best."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.hpo.certainty_pools import bounds_elsewhere, kept_pool
from benchmarks.hpo.certainty_settings import Setting
from benchmarks.hpo.certainty_summary import Row


def pool_figures(setting: Setting, arms: int, seeds: Sequence[int], data: Path) -> list[Row]:
    """How biased the levels of each task are, and what bounds could do at best.

    "out by max bounds" is the share of the pool whose mean at a level plus the smallest max bound
    that holds is below the best mean at the target: what LUCB's rule could let go there without any
    noise. "out by order bounds" is the share that is behind the best at the level by more than the
    smallest order bound that holds: what IISE-gamma could let go. Medians over pools.
    """
    rows = []
    for task in setting.tasks():
        pools = [kept_pool(task, setting.levels, arms, seed, data) for seed in seeds]
        declared = bounds_elsewhere(task, setting.levels, data)
        found: dict[str, list[Any]] = {}
        for pool in pools:
            means, best = pool.means, pool.means[-1].max()
            biases = means - means[-1]
            xi, gamma = np.abs(biases).max(axis=1), np.ptp(biases, axis=1)
            behind = means.max(axis=1, keepdims=True) - means
            for name, value in {
                "xi": xi,
                "gamma": gamma,
                "out_by_max_bounds": (means + xi[:, None] < best).mean(axis=1),
                "out_by_order_bounds": (behind > gamma[:, None]).mean(axis=1),
                "within_epsilon": (best - means[-1] <= setting.epsilon).sum(),
            }.items():
                found.setdefault(name, []).append(value)
        hold = [declared.hold(pool.means) for pool in pools]
        rows.append(
            {
                "setting": setting.name,
                "task": task,
                **{
                    name: np.median(value, axis=0).round(3).tolist()
                    for name, value in found.items()
                },
                "declared_xi": declared.xi.round(2).tolist(),
                "declared_gamma": declared.gamma.round(2).tolist(),
                "pools": len(pools),
                "declared_xi_holds": sum(by_max for by_max, _ in hold),
                "declared_gamma_holds": sum(by_order for _, by_order in hold),
            }
        )
    return rows
