"""The trials of a search: the experiment that its user declares, and what each of them is given."""

from __future__ import annotations

import abc
import copy
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from mfhpo._validation import check_name
from mfhpo.experiment import Assignment, Begun, Configurations
from mfhpo.experiment.kinds.settings import Settings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.replicate import MOST_SHUFFLED, replicate_of
from mfhpo.search.declared import has_levels
from mfhpo_ray.experiment.limits import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.experiment.metric import as_number
from mfhpo_ray.experiment.space import Config, assign, fingerprint, levels_of, replicates_of
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from mfhpo_ray.searchers.candidates import Parameters

# Seeds differ between so many configurations of a search, whose number may grow.
_MOST_ARMS = 1 << 16
_MASK = (1 << 31) - 1  # seeds have 31 bits

Source: TypeAlias = list[Config] | Parameters
"""The configurations, or where a search draws its own from."""


class Trials(abc.ABC):
    """Each trial evaluates a configuration at a level, or fully where there is no fidelity.

    The `host` are the options of all searches. Evaluations of a block share the value of the key
    `replicate`; `training` names a training with checkpoints.
    """

    hangs = ""  # what happens without the search's scheduler, in words; empty: nothing
    stops_surplus = True  # trials that still run when the experiment is over

    def __init__(
        self,
        fidelity: Fidelity,
        host: Mapping[str, Any],
        replicate: str | None = None,
        training: str | None = None,
    ) -> None:
        self.host, seed_key = host, host["seed_key"]
        if seed_key is not None:
            check_name("seed_key", seed_key, "a key of the configuration or None")
        if seed_key == fidelity.name:
            raise ValueError(f"seed_key={seed_key!r} is what the search sets to something else.")
        own = (fidelity.name, seed_key, replicate, training)
        self.keys = tuple(key for key in own if key is not None)  # what is set, the level first
        self.levels, self.replicate = tuple(fidelity.levels or ()), replicate
        self.replicates: Sequence[Any] = ()
        self._seed_key, self._fidelity, self._training = seed_key, fidelity, training
        self.has_levels = has_levels(fidelity)

    # The experiment, as it is declared.

    @abc.abstractmethod
    def settings(self, source: Source, **common: Any) -> Settings:
        """Return the settings, which have those that are `common` to all kinds."""

    def objection(self) -> str | None:
        """Return what is wrong with the budget, if the levels tell."""
        return None

    def announcement(self, settings: Any, metric: str) -> list[str]:
        """Return what the log is to say about what nobody has declared."""
        return []

    def digest(self) -> dict[str, Any]:
        """Return what must be the same after a restart, as plain JSON values."""
        return {}

    def look_up(self, space: Mapping[str, Any]) -> None:
        """Find the levels and the replicates in the search space."""
        if self.has_levels:
            levels = levels_of(self._fidelity, space)
            self._fidelity.costs_of(levels)  # raises for levels that are no numbers, without costs
            self.levels = levels
        if self.replicate is not None and not self.replicates:
            self.replicates = replicates_of(self.replicate, space)

    def scheduler(self, limit: float | None, memory_limit: float | None) -> PullScheduler:
        """Return the companion of the search, with these limits."""
        return PullScheduler(limit=limit, memory_limit=memory_limit)

    # One trial.

    def configured(self, wanted: Assignment, known: Configurations, seed: int) -> Config:
        """Return the configuration of a trial, with all keys that are set."""
        config: Config = copy.deepcopy(dict(wanted.configuration))
        arm = known.find(wanted.configuration)
        arm = len(known) if arm is None else arm
        self._set_level(config, wanted)
        if self._training is not None:
            digest = zlib.crc32(fingerprint(wanted.configuration).encode())
            name = f"configuration-{arm}-{digest:08x}"
            is_new = wanted.purpose != "search"
            assign(config, self._training, f"{name}-replicate-{wanted.repeat}" if is_new else name)
        if self._seed_key is not None:
            assign(config, self._seed_key, self._seed_of(wanted, arm, len(known), seed))
        if self.replicate is not None and wanted.block is not None:
            chosen = replicate_of(wanted.block, seed, len(self.replicates))
            assign(config, self.replicate, self.replicates[chosen])
        return config

    def _set_level(self, config: Config, wanted: Assignment) -> None:
        if self.has_levels:
            assign(config, self.keys[0], self.levels[wanted.level])

    def _seed_of(self, wanted: Assignment, arm: int, n_arms: int, seed: int) -> int:
        n, level, repeat = len(self.levels), wanted.level, wanted.repeat
        if wanted.block is not None and len(self.replicates) <= MOST_SHUFFLED:
            arm, level, repeat = 0, n - 1, wanted.block  # the same value on the same replicate
        if wanted.purpose == "given":
            return replicate_seed(seed, arm, level, repeat, n_arms=n_arms, n_fidelities=n)
        if wanted.purpose != "search":
            level = n
        elif self._training is not None:
            level = repeat = 0
        return replicate_seed(seed, arm, level, repeat, n_arms=_MOST_ARMS, n_fidelities=n + 1)

    def outcome(
        self, begun: Begun, value: float | None, cost: float | None, result: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return what a trial gave, as arguments of `Ended`; one that was stopped has no value.

        To a search, one that was stopped for its memory would be at any limit; else it has failed.
        """
        stopped_at = as_number(result.get(CENSORED_KEY))
        if MEMORY_KEY in result:
            value, stopped_at = None, math.inf if begun.purpose == "search" else None
        value = value if stopped_at is None else None
        return {"value": value, "cost": cost, "stopped_at": stopped_at}

    def cost(self, seconds: float) -> float | None:
        """Return what so many seconds have cost; None where costs are declared."""
        return seconds if self._fidelity.costs == "measured" else None


def replicate_seed(
    seed: int, arm: int, fidelity: int, r: int, *, n_arms: int, n_fidelities: int
) -> int:
    """Return the seed of an arm's r-th pull at a fidelity, from 0 to 2**31 - 1.

    No two pulls of a race share one, before their numbers come to 2**31.
    """
    number = (r * n_arms + arm) * n_fidelities + fidelity
    # Each step maps the numbers of 31 bits onto themselves one to one, so that none occurs twice.
    for key in np.random.SeedSequence(seed).generate_state(3).tolist():
        number = ((number ^ (key & _MASK)) * ((key << 1 | 1) & _MASK)) & _MASK
        number ^= number >> 16
    return number
