"""The worth of portfolios: regrets after a few evaluations, beside those of searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import optuna
from optuna.samplers import TPESampler

from benchmarks.hpo.space import Configuration
from benchmarks.peers.optuna import suggest
from benchmarks.portfolios.families import Family
from benchmarks.portfolios.making import SIZE, Making
from benchmarks.portfolios.tasks import Task
from mfhpo.knowledge.arrays import FloatArray
from mfhpo.portfolios import portfolio

AFTER = (1, 3, 5, 10, 20)
"""Numbers of evaluations."""

_OF_TRAINED = 2, 10  # seeds and evaluations at most, of what is trained and not looked up
_FOR_BEST = 20_000  # random configurations, where a look at one costs next to nothing

Method = Callable[[Task, Sequence[Configuration], int, int], FloatArray]


def _in_order(task: Task, first: Sequence[Configuration], seed: int, n: int) -> FloatArray:
    return task.values([task.inside(one) for one in first])


def _at_random(task: Task, first: Sequence[Configuration], seed: int, n: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return task.values([task.space.draw(rng) for _ in range(n)])


def _by_tpe(task: Task, first: Sequence[Configuration], seed: int, n: int) -> FloatArray:
    study = optuna.create_study(direction="maximize", sampler=TPESampler(seed=seed))
    for one in first:
        study.enqueue_trial(task.inside(one))
    found = []
    for _ in range(n):
        trial = study.ask()
        [value] = task.values([suggest(trial, task.space)])
        study.tell(trial, float(value))
        found.append(float(value))
    return np.array(found)


_METHODS: dict[str, Method] = {
    "portfolio": _in_order,
    "portfolio, then TPE": _by_tpe,
    "TPE": lambda task, first, seed, n: _by_tpe(task, (), seed, n),
    "random search": _at_random,
}


def checked(model: str, family: Family, seeds: int) -> dict[str, Any]:
    """Regrets on data sets that a portfolio was not made from.

    Of LightGBM, which is trained, there are fewer seeds and evaluations.

    Returns
    -------
    dict
        Where it was checked, the number of seeds, and by method the mean regret after each number
        of evaluations in `AFTER`; a portfolio ends after its own number. "better" is on how many
        data sets the portfolio's regret was below the mean one of random search.
    """
    data_sets = family.checked_on or family.made_from
    most = AFTER[-1]
    if model == "lightgbm":
        seeds, most = min(seeds, _OF_TRAINED[0]), _OF_TRAINED[1]
    making = None if family.checked_on else Making(family)
    means: dict[str, list[FloatArray]] = {name: [] for name in _METHODS}
    for place, data_set in enumerate(data_sets):
        task = family.task(data_set)
        first = portfolio(model) if making is None else making.portfolio(without=data_set)
        own_seeds = range(place * seeds, (place + 1) * seeds)  # so that no data sets share draws
        played = {
            name: [method(task, first, seed, most) for seed in own_seeds]
            for name, method in _METHODS.items()
        }
        best = task.best
        if best is None:
            seen = [float(np.max(found)) for found in played.values()]
            best = max(*seen, _best_at_random(task))
        for name, found in played.items():
            means[name].append(best - np.maximum.accumulate(found, axis=1).mean(axis=0))
    regrets = {name: np.array(found) for name, found in means.items()}
    is_better = regrets["portfolio"] < regrets["random search"][:, :SIZE]
    places = [number - 1 for number in AFTER]
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "data sets": len(data_sets),
        "made from": "others" if family.checked_on else "all but the one",
        "seeds": seeds,
        "regret": {
            name: [round(float(found[:, k].mean()), 2) for k in places if k < found.shape[1]]
            for name, found in regrets.items()
        },
        "better": [int(is_better[:, k].sum()) for k in places if k < SIZE],
    }


def _best_at_random(task: Task) -> float:
    rng = np.random.default_rng(0)
    return float(task.values([task.space.draw(rng) for _ in range(_FOR_BEST)]).max())
