"""Optuna's Gaussian process; apart from its other samplers, for it needs PyTorch."""

from __future__ import annotations

import functools

from optuna.samplers import BaseSampler, GPSampler

from benchmarks.hpo.ask_tell import Make, Setting, in_turn
from benchmarks.hpo.methods import Method
from benchmarks.peers.optuna import Study


def _gp(setting: Setting) -> BaseSampler:
    return GPSampler(seed=setting.seed)


CLOCKED: dict[str, Make] = {"optuna gp": functools.partial(Study, sampler=_gp)}
METHODS: dict[str, Method] = {name: in_turn(make) for name, make in CLOCKED.items()}
