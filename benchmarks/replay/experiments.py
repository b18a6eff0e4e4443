"""Small experiments by each searcher and scheduler of mfhpo_ray, in virtual time."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from ray import tune

import mfhpo_ray
from benchmarks.replay.races import RACES, TRIALS, loss, loss_on_grid, seconds
from benchmarks.tune_clock import ReplayedCurves, Step, simulate
from mfhpo.censored import Linear


class _Evaluations:
    """Trials of one step."""

    def step(self, config: Mapping[str, Any], iteration: int) -> Step | None:
        if iteration > 1:
            return None
        x, epochs, seed = config["x"], config.get("epochs", 9), config["seed"]
        if "kind" in config:
            return Step(loss_on_grid(x, config["kind"], epochs, seed), seconds(0.0, epochs, seed))
        return Step(loss(x, epochs, seed), seconds(x, epochs, seed))


def _searched(race: str, slots: int, data: Path) -> dict[str, Any]:
    options = {**RACES[race], "metric": "loss", "mode": "min"}
    if not isinstance(options.get("arms", options.get("candidates")), list):
        epochs = {"epochs": tune.randint(1, 10)} if "fidelity" in options else {}
        options["space"] = {**(_GRID if "on a grid" in race else _LINE), **epochs}
    search = getattr(mfhpo_ray, _class_of(race))(**options, seed=0)
    rules = {"metric": "loss", "mode": "min", "num_samples": TRIALS}
    return _record(search, slots, search.scheduler(), search, _Evaluations(), **rules)


def _scheduled(name: str, slots: int, data: Path) -> dict[str, Any]:
    epochs, arms = np.arange(1, 28), 6
    curves = ReplayedCurves(np.linspace(0.2, 0.9, arms)[:, None] - 0.3 / epochs, sigma=0.05)
    trials = [{"arm": number % arms, "seed": number // arms} for number in range(TRIALS)]
    scheduler = getattr(mfhpo_ray, name.partition(",")[0])(**_SCHEDULERS[name])
    return _record(scheduler, slots, scheduler, trials, curves, max_t=27, checkpoints=True)


def _record(answers: Any, slots: int, *parts: Any, **rules: Any) -> dict[str, Any]:
    run = simulate(*parts, slots=slots, **rules)
    # By trial: Tune leaves open in which order trials end that end at the same time.
    events = defaultdict(list)
    for event in run.events:
        events[event.trial_id].append([event.seconds, event.kind, event.iteration, event.value])
    return {
        "trials": [{"config": t.config, "events": events[t.trial_id]} for t in run.trials],
        "answer": str(answers.recommendation()).splitlines(),
    }


def _class_of(race: str) -> str:
    name = race.partition(",")[0]
    return "SpaceSearch" if name == "Search" else f"{name}Search"


_LINE = {"x": tune.uniform(-1.0, 1.0)}
_GRID = {"x": tune.randint(0, 21), "kind": tune.choice(["a", "b", "c"])}
_LEVELS = {"levels": (1, 3, 9, 27)}
_SCHEDULERS: dict[str, dict[str, Any]] = {
    "IISEScheduler": _LEVELS,
    "IISEScheduler, declared": {**_LEVELS, "sigma": 0.05, "bias": (0.3, 0.1, 0.04, 0.0)},
    "MFEliminationScheduler": _LEVELS,
    "MFEliminationScheduler, declared": {"bias": {1: 0.3, 3: 0.1, 9: 0.04}, "max_t": 27},
    "RCUCBScheduler": {"limits": (5, 10, 30), "cost": Linear(0.01), "horizon": 80},
}
_SEARCHED = [race for race in RACES if hasattr(mfhpo_ray, _class_of(race))]


def experiments(slots: int) -> dict[str, Callable[[Path], Any]]:
    """Return by name what plays an experiment with so many trials at a time; no data are needed."""
    searched = {f"ray {race}": partial(_searched, race, slots) for race in _SEARCHED}
    return searched | {f"ray {name}": partial(_scheduled, name, slots) for name in _SCHEDULERS}
