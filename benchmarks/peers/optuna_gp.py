"""Optuna's Gaussian process; apart from its other samplers, for it needs PyTorch."""

from __future__ import annotations

import functools

from optuna.samplers import BaseSampler, GPSampler

from benchmarks.hpo.methods import Method
from benchmarks.peers.optuna import optimise


def _gp(seed: int) -> BaseSampler:
    return GPSampler(seed=seed)


METHODS: dict[str, Method] = {"optuna gp": functools.partial(optimise, sampler=_gp)}
