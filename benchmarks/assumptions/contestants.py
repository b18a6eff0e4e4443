"""Ways to a certificate, by their names in the table."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.assumptions.by_adapter import race_sampler, race_searcher
from benchmarks.assumptions.by_certificate import race_paired, race_shortlist
from benchmarks.assumptions.by_policy import race_policy
from benchmarks.assumptions.outcome import Outcome
from benchmarks.assumptions.scenarios import Scenario, World
from mfhpo import IISE, MFLUCB, MFGrad, MFTopTwo, SuccessiveElimination
from mfhpo.certification import Certification
from mfhpo.group_sequential_certification import GroupSequentialCertification
from mfhpo_optuna import IISESampler, MFSampler

__all__ = ["ADAPTERS", "CONTESTANTS", "run"]

Race = Callable[[Scenario, World, np.random.Generator], Outcome]


def _ray(name: str, *race: Any) -> Outcome:
    """Run a race by a searcher; Ray takes seconds to import, so only where it is raced."""
    import mfhpo_ray

    return race_searcher(getattr(mfhpo_ray, name), *race)


CONTESTANTS: dict[str, Race] = {
    "MFTopTwo": partial(race_policy, MFTopTwo),
    "IISE": partial(race_policy, IISE),
    "MFLUCB": partial(race_policy, MFLUCB),
    "MFGrad": partial(race_policy, MFGrad),
    "SuccessiveElimination": partial(race_policy, SuccessiveElimination),
    "MFTopTwo, eliminate": partial(race_policy, MFTopTwo, estimated_bias="eliminate"),
    "IISE, eliminate": partial(race_policy, IISE, estimated_bias="eliminate"),
    "certify": partial(race_shortlist, Certification),
    "group-sequential": partial(race_shortlist, GroupSequentialCertification),
    "paired": race_paired,
    "MFSampler": partial(race_sampler, MFSampler),
    "IISESampler": partial(race_sampler, IISESampler),
    "MFSearch": partial(_ray, "MFSearch"),
    "IISESearch": partial(_ray, "IISESearch"),
}
"""Policies, certificates of shortlists, Optuna's samplers, Ray's searchers."""

ADAPTERS = frozenset({"MFSampler", "IISESampler", "MFSearch", "IISESearch"})
"""The slow ones: a trial takes them milliseconds."""


def run(task: tuple[Scenario, str, int]) -> Outcome:
    """Run one race, given its scenario, contestant and seed."""
    scenario, contestant, seed = task
    # All contestants of a scenario meet the same truth.
    rng = np.random.default_rng([seed, zlib.crc32(scenario.name.encode())])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CONTESTANTS[contestant](scenario, scenario.world(rng), rng)
