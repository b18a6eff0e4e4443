"""Optuna's Gaussian process; apart from its other samplers, for it needs PyTorch.

It models what all trials ask for, and draws the rest at random. All parameters are asked for.
"""

from __future__ import annotations

import functools

from optuna.samplers import BaseSampler, GPSampler

from benchmarks.hpo.ask_tell import Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.peers.optuna import Study


def _gp(setting: Setting) -> BaseSampler:
    return GPSampler(seed=setting.seed)


CLOCKED: dict[str, Make] = {"optuna gp": functools.partial(Study, sampler=_gp, conditions=False)}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
