"""Small experiments by each searcher and scheduler of mfhpo_ray, in virtual time."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ray import tune

import mfhpo_ray
from benchmarks.replay.races import RACES, TRIALS, loss, seconds
from benchmarks.tune_clock import ReplayedCurves, Step, simulate
from mfhpo.censored import Linear


class _Evaluations:
    """Trials of one step."""

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        trial = config["x"], config.get("epochs", 9), config["seed"]
        return Step(loss(*trial), seconds(*trial)) if iteration == 1 else None


def _searched(race: str, data: Path) -> dict[str, Any]:
    options = {**RACES[race], "metric": "loss", "mode": "min"}
    if not isinstance(options.get("arms"), list):
        epochs = {"epochs": tune.randint(1, 10)} if "fidelity" in options else {}
        options["space"] = {"x": tune.uniform(-1.0, 1.0), **epochs}
    search = getattr(mfhpo_ray, _class_of(race))(**options, seed=0)
    rules = {"metric": "loss", "mode": "min", "num_samples": TRIALS}
    return _record(search, search.scheduler(), search, _Evaluations(), **rules)


def _scheduled(name: str, data: Path) -> dict[str, Any]:
    epochs, arms = np.arange(1, 28), 6
    curves = ReplayedCurves(np.linspace(0.2, 0.9, arms)[:, None] - 0.3 / epochs, sigma=0.05)
    trials = [{"arm": number % arms, "seed": number // arms} for number in range(TRIALS)]
    scheduler = getattr(mfhpo_ray, name.partition(",")[0])(**_SCHEDULERS[name])
    return _record(scheduler, scheduler, trials, curves, max_t=len(epochs), checkpoints=True)


def _record(answers: Any, *parts: Any, **rules: Any) -> dict[str, Any]:
    run = simulate(*parts, slots=2, **rules)
    # By trial: Tune leaves open in which order trials end that end at the same time.
    events = defaultdict(list)
    for event in run.events:
        events[event.trial_id].append([event.seconds, event.kind, event.iteration, event.value])
    return {
        "trials": [{"config": t.config, "events": events[t.trial_id]} for t in run.trials],
        "answer": str(answers.recommendation()).splitlines(),
    }


def _class_of(race: str) -> str:
    return f"{race.partition(',')[0]}Search"


_LEVELS = {"levels": (1, 3, 9, 27)}
_SCHEDULERS: dict[str, dict[str, Any]] = {
    "IISEScheduler": _LEVELS,
    "IISEScheduler, declared": {**_LEVELS, "sigma": 0.05, "bias": (0.3, 0.1, 0.04, 0.0)},
    "MFEliminationScheduler": _LEVELS,
    "MFEliminationScheduler, declared": {"bias": {1: 0.3, 3: 0.1, 9: 0.04}, "max_t": 27},
    "RCUCBScheduler": {"limits": (5, 10, 30), "cost": Linear(0.01), "horizon": 80},
}
EXPERIMENTS: dict[str, Callable[[Path], Any]] = {
    **{
        f"ray {race}": partial(_searched, race)
        for race in RACES
        if hasattr(mfhpo_ray, _class_of(race))
    },
    **{f"ray {name}": partial(_scheduled, name) for name in _SCHEDULERS},
}
"""By name, what plays an experiment; no data are needed."""
