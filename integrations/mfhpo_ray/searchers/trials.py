"""The trials of a search: what one is given, and what came back from it."""

from __future__ import annotations

import abc
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from mfhpo._validation import shown
from mfhpo.experiment import Assignment, Begun, LimitSettings, RaceSettings, SearchSettings
from mfhpo.experiment.settings import Settings
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.racing.declaration import Declaration
from mfhpo.search.declared import has_levels
from mfhpo_ray.experiment.prices import Prices
from mfhpo_ray.experiment.pulls import replicate_seed
from mfhpo_ray.experiment.space import Config, assign, fingerprint, levels_of, replicates_of
from mfhpo_ray.schedulers.pull_scheduler import PullScheduler
from mfhpo_ray.searchers.parameters import Parameters

# Seeds differ between so many configurations of a search, whose number may grow.
_MOST_ARMS = 1 << 16

Source: TypeAlias = list[Config] | Parameters
"""The configurations, or where a search draws its own from."""


class Plan(Protocol):
    """What a user declares of a search over levels."""

    @property
    def declaration(self) -> Declaration:
        """What is known about levels, bias and noise."""

    def settings(
        self, levels: tuple[Any, ...], source: Source, seed: int, sign: float
    ) -> RaceSettings | SearchSettings:
        """Return the settings; `sign` is -1 where values are minimised."""

    def objection(self, levels: Sequence[Any]) -> str | None:
        """Return what is wrong with the budget, if the levels tell."""

    def in_words(self, levels: Sequence[Any], n_arms: int) -> str:
        """Return what levels are used for; empty where that is known."""


@dataclass(frozen=True)
class Outcome:
    """What came back from a trial: see `mfhpo.experiment.Ended`."""

    value: float | None
    cost: float | None
    stopped_at: float | None = None


class Trials(abc.ABC):
    """What a trial is given besides its configuration, and what came back from it.

    Attributes
    ----------
    owned
        The key of the configuration that sets the level or the limit.
    others
        Further keys that are set, but for that of the seed.
    replicates
        Values of the replicate's key, once the space is known.
    stops_surplus
        Whether trials that still run when the experiment is over are stopped.
    without_companion
        What happens without the search's scheduler, in words; empty: nothing.
    """

    owned: str
    others: tuple[str, ...] = ()
    replicate: str | None = None
    replicates: Sequence[Any] = ()
    stops_surplus: bool = True
    without_companion: str = ""
    while_drawing: Any = None

    @abc.abstractmethod
    def settings(self, source: Source, seed: int, sign: float) -> Settings:
        """Return what kind of experiment it is."""

    @abc.abstractmethod
    def assign(self, config: Config, wanted: Assignment, arm: int) -> None:
        """Set what the trial is given."""

    @abc.abstractmethod
    def seed_of(self, wanted: Assignment, arm: int, n_arms: int, seed: int) -> int:
        """Return the seed of a trial."""

    @abc.abstractmethod
    def outcome(
        self,
        begun: Begun,
        value: float | None,
        seconds: float,
        stopped_at: float | None,
        resources: Mapping[str, float],
    ) -> Outcome:
        """Return what a trial gave, in the unit and the direction of the metric."""

    @abc.abstractmethod
    def cost(self, seconds: float, resources: Mapping[str, float]) -> float | None:
        """Return what so many seconds have cost; None where costs are declared."""

    def scheduler(self, limit: float | None) -> PullScheduler:
        """Return the companion of the search; a trial may run for `limit` seconds."""
        return PullScheduler(limit=limit)

    def look_up(self, space: Mapping[str, Any]) -> None:  # noqa: B027 # most need nothing
        """Find what the search owns in the search space."""

    def objection(self) -> str | None:
        """Return what is wrong with the budget, if anything is known to be."""
        return None

    def in_words(self, n_arms: int) -> str:
        """Return what is done that the user has not declared; empty if nothing is."""
        return ""

    def check_companion(self, is_there: bool) -> None:  # noqa: B027 # most need none
        """Raise RuntimeError if the search's scheduler is needed and not there."""

    def limit_of(self, begun: Begun, resources: Mapping[str, float]) -> float | None:
        """Return the seconds after which the trial is to be stopped; None for no limit."""
        return None

    @property
    def digest(self) -> dict[str, Any]:
        """What must be the same after a restart, as plain JSON values."""
        return {}


class TrialsAtLevels(Trials):
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
    without_companion
        See `Trials`.
    """

    def __init__(
        self,
        plan: Plan,
        fidelity: Fidelity,
        *,
        prices: Mapping[str, float] | None,
        replicate: str | None = None,
        training: str | None = None,
        without_companion: str = "",
    ) -> None:
        self.owned = fidelity.name
        self.without_companion = without_companion
        self.replicate = replicate
        self.others = tuple(key for key in (replicate, training) if key is not None)
        self.levels = tuple(fidelity.levels or ())
        self._fidelity = fidelity
        self._plan = plan
        self._training = training
        self._prices = Prices(prices, fidelity.costs)
        self._has_prices = prices is not None

    @property
    def while_drawing(self) -> Any:
        """The target, while configurations are drawn: functions may use it."""
        return self.levels[-1]

    def look_up(self, space: Mapping[str, Any]) -> None:
        """Find the levels and the replicates in the search space."""
        if has_levels(self._fidelity):
            levels = levels_of(self._fidelity, space)
            self._fidelity.costs_of(levels)  # raises for levels that are no numbers, without costs
            self.levels = levels
        if self.replicate is not None:
            self.replicates = replicates_of(self.replicate, space)

    def objection(self) -> str | None:
        """Return what is wrong with the budget (see `Trials.objection`)."""
        return self._plan.objection(self.levels)

    def in_words(self, n_arms: int) -> str:
        """Return what levels are used for (see `Trials.in_words`)."""
        return self._plan.in_words(self.levels, n_arms)

    def check_companion(self, is_there: bool) -> None:
        """Raise RuntimeError for prices without the search's scheduler."""
        if self._has_prices and not is_there:
            raise RuntimeError(
                "prices=... need to know which resources a trial holds, which only the search's "
                "own scheduler tells: TuneConfig(search_alg=search, scheduler=search.scheduler())."
            )

    def settings(self, source: Source, seed: int, sign: float) -> Settings:
        """Return what kind of experiment it is."""
        return self._plan.settings(self.levels, source, seed, sign)

    def assign(self, config: Config, wanted: Assignment, arm: int) -> None:
        """Set the level, and the name of the training."""
        if has_levels(self._fidelity):
            assign(config, self.owned, self.levels[wanted.level])
        if self._training is not None:
            digest = zlib.crc32(fingerprint(wanted.configuration).encode())
            name = f"configuration-{arm}-{digest:08x}"
            is_new = wanted.purpose != "search"
            assign(config, self._training, f"{name}-replicate-{wanted.repeat}" if is_new else name)

    def seed_of(self, wanted: Assignment, arm: int, n_arms: int, seed: int) -> int:
        """Return the seed of a trial; new evaluations are numbered apart from a search's."""
        n, level, repeat = len(self.levels), wanted.level, wanted.repeat
        if wanted.purpose == "given":
            return replicate_seed(seed, arm, level, repeat, n_arms=n_arms, n_fidelities=n)
        if wanted.purpose != "search":
            level = n
        elif self._training is not None:
            level = repeat = 0
        return replicate_seed(seed, arm, level, repeat, n_arms=_MOST_ARMS, n_fidelities=n + 1)

    def outcome(
        self,
        begun: Begun,
        value: float | None,
        seconds: float,
        stopped_at: float | None,
        resources: Mapping[str, float],
    ) -> Outcome:
        """Return what a trial gave; none that was stopped gives a value."""
        cost = self.cost(seconds, resources)
        return Outcome(value if stopped_at is None else None, cost, stopped_at)

    def cost(self, seconds: float, resources: Mapping[str, float]) -> float | None:
        """Return what so many seconds have cost, if they are measured."""
        if self._fidelity.costs != "measured":
            return None
        return seconds * self._prices.of(resources)

    def limit_of(self, begun: Begun, resources: Mapping[str, float]) -> float | None:
        """Return the seconds after which another trial is worth more, if they are measured."""
        price = self._prices.of(resources)
        return begun.limit / price if begun.limit is not None and price > 0.0 else None

    @property
    def digest(self) -> dict[str, Any]:
        """The levels, what they cost, and their bias."""
        costs = self._fidelity.costs_of(self.levels) if has_levels(self._fidelity) else None
        return {
            "levels": repr(list(self.levels)),
            "costs and bias": f"{costs} and {self._plan.declaration.bias}",
        }


class TrialsWithinLimits(Trials):
    """Each trial runs a configuration within a time limit.

    Parameters
    ----------
    limit_key
        The key of the configuration that gets the limit.
    make
        Makes the settings, given the configurations, and -1 where values are minimised.
    """

    # The trials that still run at the horizon are the slow ones: without them, arms look quicker.
    stops_surplus = False
    without_companion = "trials run to their end, and count as stopped if they took longer"

    def __init__(
        self, limit_key: str, make: Callable[[list[Config], float], LimitSettings]
    ) -> None:
        self.owned = limit_key
        self._make = make

    def scheduler(self, limit: float | None) -> PullScheduler:
        """Return the companion of the search, which keeps the limits that the search sets."""
        if limit is not None:
            raise ValueError(
                f"limit={shown(limit)} has no part: each trial has the limit that the search sets; "
                f"leave it out, and declare limits=... or longest=... of the search."
            )
        return PullScheduler(limit_key=self.owned)

    def settings(self, source: Source, seed: int, sign: float) -> Settings:
        """Return what kind of experiment it is."""
        assert isinstance(source, list)
        return self._make(source, sign)

    def assign(self, config: Config, wanted: Assignment, arm: int) -> None:
        """Set the limit."""
        assign(config, self.owned, wanted.limit)

    def seed_of(self, wanted: Assignment, arm: int, n_arms: int, seed: int) -> int:
        """Return the seed of a trial."""
        return replicate_seed(seed, arm, 0, wanted.repeat, n_arms=n_arms, n_fidelities=1)

    def outcome(
        self,
        begun: Begun,
        value: float | None,
        seconds: float,
        stopped_at: float | None,
        resources: Mapping[str, float],
    ) -> Outcome:
        """Return what a trial gave within its limit."""
        limit = begun.limit
        if stopped_at is not None:
            # That it would have gone on is all that larger limits, which are never granted, tell.
            return Outcome(None, max(seconds, stopped_at), stopped_at if limit is None else limit)
        if value is not None and limit is not None and seconds > limit:
            return Outcome(None, seconds, limit)
        return Outcome(value, seconds)

    def cost(self, seconds: float, resources: Mapping[str, float]) -> float | None:
        """Return the seconds."""
        return seconds
