"""The trials of a search: what one is given, and what came back from it."""

from __future__ import annotations

import copy
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from mfhpo._validation import check_name, shown
from mfhpo.experiment import Assignment, Begun, Configurations
from mfhpo.experiment.settings import Settings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.replicate import replicate_of
from mfhpo.search.declared import has_levels
from mfhpo_ray.experiment.metric import as_number
from mfhpo_ray.experiment.prices import Prices
from mfhpo_ray.experiment.pulls import replicate_seed
from mfhpo_ray.experiment.space import Config, assign, fingerprint, levels_of, replicates_of
from mfhpo_ray.experiment.time_limits import CENSORED_KEY, MEMORY_KEY
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from mfhpo_ray.searchers.parameters import Parameters

# Seeds differ between so many configurations of a search, whose number may grow.
_MOST_ARMS = 1 << 16

_NOTHING = object()

Source: TypeAlias = list[Config] | Parameters
"""The configurations, or where a search draws its own from."""


class Plan(Protocol):
    """The declaration of a search by its user."""

    def settings(self, levels: tuple[Any, ...], source: Source, seed: int, sign: float) -> Settings:
        """Return the settings; `sign` is -1 where values are minimised."""

    def objection(self, levels: Sequence[Any]) -> str | None:
        """Return what is wrong with the budget, if the levels tell."""

    def in_words(self, levels: Sequence[Any], n_arms: int) -> str:
        """Return what levels are used for; empty where that is known."""

    def digest(self, levels: Sequence[Any]) -> dict[str, Any]:
        """Return what must be the same after a restart, as plain JSON values."""


class Trials:
    """Each trial evaluates a configuration at a level, or fully where there is no fidelity.

    Parameters
    ----------
    plan
        What the user declares.
    fidelity
        See `mfhpo.search.declared.has_levels`.
    prices
        See `mfhpo_ray.searchers.options.FidelitySearchOptions`.
    replicate
        The key that evaluations of a block share, or None.
    training
        The key that names a training with checkpoints, or None.
    seed_key
        See `mfhpo_ray.searchers.options.SearchOptions`.
    hangs
        What happens without the search's scheduler, in words; empty: nothing.

    Attributes
    ----------
    keys
        What is set in a configuration, the level first.
    levels, replicates
        Their values, as far as they are known.
    stops_surplus
        Whether trials that still run when the experiment is over are stopped.
    """

    stops_surplus = True

    def __init__(
        self,
        plan: Plan,
        fidelity: Fidelity,
        *,
        prices: Mapping[str, float] | None = None,
        replicate: str | None = None,
        training: str | None = None,
        seed_key: str | None = None,
        hangs: str = "",
    ) -> None:
        if seed_key is not None:
            check_name("seed_key", seed_key, "a key of the configuration or None")
        if seed_key == fidelity.name:
            raise ValueError(f"seed_key={seed_key!r} is what the search sets to something else.")
        own = (fidelity.name, seed_key, replicate, training)
        self.keys = tuple(key for key in own if key is not None)
        self.levels = tuple(fidelity.levels or ())
        self.replicate = replicate
        self.replicates: Sequence[Any] = ()
        self._hangs = hangs
        self._seed_key = seed_key
        self.plan = plan
        self._fidelity = fidelity
        self._training = training
        self._prices = Prices(prices, fidelity.costs)
        self._has_prices = prices is not None

    def look_up(self, space: Mapping[str, Any]) -> None:
        """Find the levels and the replicates in the search space."""
        if has_levels(self._fidelity):
            levels = levels_of(self._fidelity, space)
            self._fidelity.costs_of(levels)  # raises for levels that are no numbers, without costs
            self.levels = levels
        if self.replicate is not None:
            self.replicates = replicates_of(self.replicate, space)

    def without_companion(self) -> str:
        """Return what happens without the search's scheduler; RuntimeError if it is needed."""
        if self._has_prices:
            raise RuntimeError(
                "prices=... need to know which resources a trial holds, which only the search's "
                "own scheduler tells: TuneConfig(search_alg=search, scheduler=search.scheduler())."
            )
        return self._hangs

    def scheduler(self, limit: float | None, memory_limit: float | None) -> PullScheduler:
        """Return the companion of the search; a trial may take so many seconds and bytes."""
        return PullScheduler(limit=limit, memory_limit=memory_limit)

    def configured(self, wanted: Assignment, known: Configurations, seed: int) -> Config:
        """Return the configuration of a trial, with all keys that are set."""
        config: Config = copy.deepcopy(dict(wanted.configuration))
        arm = known.find(wanted.configuration)
        arm = len(known) if arm is None else arm
        if (value := self.set_by(wanted)) is not _NOTHING:
            assign(config, self.keys[0], value)
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

    def set_by(self, wanted: Assignment) -> Any:
        """Return the value of the first key."""
        return self.levels[wanted.level] if has_levels(self._fidelity) else _NOTHING

    def _seed_of(self, wanted: Assignment, arm: int, n_arms: int, seed: int) -> int:
        n, level, repeat = len(self.levels), wanted.level, wanted.repeat
        if wanted.purpose == "given":
            return replicate_seed(seed, arm, level, repeat, n_arms=n_arms, n_fidelities=n)
        if wanted.purpose != "search":
            level = n
        elif self._training is not None:
            level = repeat = 0
        return replicate_seed(seed, arm, level, repeat, n_arms=_MOST_ARMS, n_fidelities=n + 1)

    def stopped_at(self, begun: Begun, result: Mapping[str, Any]) -> float | None:
        """Return the limit of time at which a trial was stopped, by its last result.

        To a search, one that was stopped for its memory would be at any limit; else it has failed.
        """
        if MEMORY_KEY in result:
            return math.inf if begun.purpose == "search" else None
        return as_number(result.get(CENSORED_KEY))

    def outcome(
        self, begun: Begun, value: float | None, cost: float | None, stopped_at: float | None
    ) -> dict[str, Any]:
        """Return what a trial gave, as arguments of `Ended`; one that was stopped has no value."""
        value = value if stopped_at is None else None
        return {"value": value, "cost": cost, "stopped_at": stopped_at}

    def cost(self, seconds: float, resources: Mapping[str, float]) -> float | None:
        """Return what so many seconds have cost; None where costs are declared."""
        if self._fidelity.costs != "measured":
            return None
        return seconds * self._prices.of(resources)

    def limit_of(self, begun: Begun, resources: Mapping[str, float]) -> float | None:
        """Return the seconds after which another trial is worth more; None for no limit."""
        price = self._prices.of(resources)
        return begun.limit / price if begun.limit is not None and price > 0.0 else None


class TrialsWithinLimits(Trials):
    """Each trial runs a configuration within a time limit.

    Parameters
    ----------
    plan
        What the user declares.
    limit_key, seed_key
        The keys of the configuration that get the limit and the seed.
    """

    # The trials that still run at the horizon are the slow ones: without them, arms look quicker.
    stops_surplus = False

    def __init__(self, plan: Plan, limit_key: str, seed_key: str | None) -> None:
        hangs = "trials run to their end, and count as stopped if they took longer"
        fidelity = Fidelity(limit_key, levels=(None,), costs="measured")
        super().__init__(plan, fidelity, seed_key=seed_key, hangs=hangs)

    def look_up(self, space: Mapping[str, Any]) -> None:
        """Find nothing: limits are not in the search space."""

    def scheduler(self, limit: float | None, memory_limit: float | None) -> PullScheduler:
        """Return the companion of the search, which keeps the limits that the search sets."""
        if limit is not None:
            raise ValueError(
                f"limit={shown(limit)} has no part: each trial has the limit that the search sets; "
                f"leave it out, and declare limits=... or longest=... of the search."
            )
        return PullScheduler(limit_key=self._fidelity.name, memory_limit=memory_limit)

    def set_by(self, wanted: Assignment) -> float | None:
        """Return the limit."""
        return wanted.limit

    def stopped_at(self, begun: Begun, result: Mapping[str, Any]) -> float | None:
        """Return the limit at which a trial was stopped, be it for its time or its memory."""
        return as_number(result.get(CENSORED_KEY))

    def outcome(
        self, begun: Begun, value: float | None, cost: float | None, stopped_at: float | None
    ) -> dict[str, Any]:
        """Return what a trial gave within its limit (see `Trials.outcome`)."""
        limit, seconds = begun.limit, cost or 0.0
        if stopped_at is not None:
            # That it would have gone on is all that larger limits, which are never granted, tell.
            seconds, stopped_at = max(seconds, stopped_at), stopped_at if limit is None else limit
        elif value is not None and limit is not None and seconds > limit:
            stopped_at = limit
        return super().outcome(begun, value, seconds, stopped_at)

    def limit_of(self, begun: Begun, resources: Mapping[str, float]) -> float | None:
        """Return None: the limit is in the configuration."""
        return None
