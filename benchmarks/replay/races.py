"""Small races that Optuna's samplers and Ray's searchers both run, and what their trials give."""

import math
from typing import Any

import numpy as np

from mfhpo import Fidelity
from mfhpo.censored import Linear

TRIALS = 120
"""The most that a race has."""

EPOCHS = Fidelity("epochs", levels=[1, 3, 9])
"""Levels of a trial."""

_ARMS = [{"x": x} for x in (-0.9, -0.5, 0.0, 0.3, 0.6)]
_ON_GRID = [{"x": n % 21, "kind": "abc"[(n + n // 21) % 3]} for n in range(30)]
_DRAWN = {"fidelity": EPOCHS, "arms": 8, "pilot_arms": 3}
_DECLARED = {"fidelity": EPOCHS, "arms": _ARMS, "sigma": 0.05, "bias": [0.1, 0.04, 0.0]}
_TIMED = {"cost": Linear(0.01), "horizon": 100}
_BEST_ARM = ("IISE", "MFTopTwo", "MFLUCB", "MFGrad", "MF")

RACES: dict[str, dict[str, Any]] = {
    **dict.fromkeys((*_BEST_ARM, "MFUCB", "MFElimination"), _DRAWN),
    **{f"{name}, declared": _DECLARED for name in (*_BEST_ARM, "MFUCB")},
    "MFLUCB, EXPLORE-A": {**_DECLARED, "explore": "A"},
    "MF, reward per cost": {**_DRAWN, "aim": "reward per cost"},
    "MF, reward per pull": {**_DRAWN, "aim": "reward per pull"},
    "Search": {"fidelity": EPOCHS, "budget": 400},
    "Search, full evaluations": {"trials": 60},
    "Search, on a grid": {"fidelity": EPOCHS, "budget": 200},
    "Search, full evaluations on a grid": {"trials": 40, "certify_share": 0.3},
    "Search, candidates on a grid": {"fidelity": EPOCHS, "budget": 300, "candidates": _ON_GRID},
    "MF, budget for a few on a grid": {"fidelity": EPOCHS, "budget": 300, "arms": _ON_GRID},
    "RCUCB": {"arms": _ARMS, "limits": [4.0, 9.0, 20.0], "reward_range": (0.0, 2.0), **_TIMED},
    "RCUCB, derived limits": {"arms": 8, **_TIMED},
    "ZoomingRCUCB": {"arms": 8, "longest": 20.0, **_TIMED},
}
"""Options by the name of what runs the race, without "Sampler" or "Search", and the variant."""


def loss(x: float, epochs: int, seed: int) -> float:
    """A noisy loss, biased at few epochs; one trial in 13 fails."""
    noise = 0.05 * np.random.default_rng(seed).normal()
    return math.nan if seed % 13 == 7 else float(x**2 + 0.1 / epochs + noise)


def loss_on_grid(x: int, kind: str, epochs: int, seed: int) -> float:
    """The same for x from 0 to 20, with a choice."""
    return loss(x / 10 - 0.7, epochs, seed) + {"a": 0.3, "b": 0.0, "c": 0.1}[kind]


def seconds(x: float, epochs: int, seed: int) -> float:
    """How long a trial takes; a larger x takes longer."""
    return float(epochs * np.random.default_rng([seed, 1]).gamma(4.0, 0.2 * (1.2 + x)))
