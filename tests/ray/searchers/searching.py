"""Races that several tests of the searchers share, run by plain calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from ray import tune

from mfhpo import Fidelity
from mfhpo_ray import IISESearch, MFGradSearch, MFLUCBSearch, MFSearch
from mfhpo_ray.searchers.policy_search import PolicySearch

EPOCHS = Fidelity("epochs", levels=[1, 3, 9])
ARMS = [{"x": x} for x in (-0.9, -0.5, 0.0, 0.6)]
SPACE = {"x": tune.uniform(-1, 1), "epochs": tune.randint(1, 10)}

# Name -> how to make it, given the arguments that all have in common.
BEST_ARM: dict[str, Callable[..., PolicySearch[Any]]] = {
    "IISE": IISESearch,
    "LUCB": MFLUCBSearch,
    "grad": MFGradSearch,
    "choice": MFSearch,
}


class Memory:
    """A journal that forgets with the test; what it holds went through JSON."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        self.files[name] = json.dumps(record)

    def read(self) -> dict[str, dict[str, Any]]:
        return {name: json.loads(text) for name, text in self.files.items()}


def bowl(config: Mapping[str, Any], scale: float = 0.05) -> float:
    """The loss of a trial: a bowl, biased at cheap levels, with noise from the trial's seed."""
    noise = scale * np.random.default_rng(config["seed"]).normal()
    return float(config["x"] ** 2 + 0.1 / config["epochs"] + noise)


def make(cls: Callable[..., PolicySearch[Any]] = IISESearch, **options: Any) -> PolicySearch[Any]:
    """A search for the lowest loss among four arms."""
    arguments: dict[str, Any] = {
        "fidelity": EPOCHS,
        "arms": ARMS,
        "metric": "loss",
        "mode": "min",
        "epsilon": 0.1,
        "seed": 0,
    }
    arguments.update(options)
    return cls(**arguments)


def trial_ids(prefix: str = "trial") -> Iterator[str]:
    """Names of trials."""
    number = 0
    while True:
        yield f"{prefix}_{number:05d}"
        number += 1


def run(
    search: PolicySearch[Any],
    objective: Callable[[Mapping[str, Any]], float] = bowl,
    prefix: str = "trial",
    at_most: int = 3000,
) -> list[dict[str, Any]]:
    """Run a race, one trial after the other, and return the configurations of its trials."""
    configs: list[dict[str, Any]] = []
    for trial_id in trial_ids(prefix):
        config = search.suggest(trial_id)
        if config == search.FINISHED or len(configs) == at_most:
            return configs
        configs.append(config)
        search.on_trial_complete(trial_id, {"loss": objective(config)})
    return configs


def pulls(configs: list[dict[str, Any]]) -> list[tuple[float, int]]:
    """What the trials evaluated, seeds aside."""
    return [(config["x"], config["epochs"]) for config in configs]
