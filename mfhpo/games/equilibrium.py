"""What a search for an equilibrium answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mfhpo.knowledge.space import Point


@dataclass(frozen=True)
class Query:
    """A profile to evaluate.

    Parameters
    ----------
    profile
        All players' parameters.
    levels
        Index of each player's fidelity.
    """

    profile: Point
    levels: tuple[int, ...]


@dataclass(frozen=True)
class Dissatisfaction:
    """What a player may gain by deviating from a profile, in the unit of its utility.

    Parameters
    ----------
    mean
        Mean over all that is believed, at least 0.
    interval
        Holds the gain with the probability of the answer, by the model.
    unit
        Standard deviation of the player's utility.
    """

    mean: float
    interval: tuple[float, float]
    unit: float

    @property
    def relative(self) -> float:
        """The mean in standard deviations of the utility, in which players can be compared."""
        return self.mean / self.unit

    @property
    def relative_interval(self) -> tuple[float, float]:
        """The interval in standard deviations of the utility."""
        lower, upper = self.interval
        return lower / self.unit, upper / self.unit


@dataclass(frozen=True)
class Utility:
    """What a player has of a profile, at the target fidelity.

    Parameters
    ----------
    mean
        Mean over all that is believed.
    interval
        Holds the utility with the probability of the answer, by the model.
    """

    mean: float
    interval: tuple[float, float]

    def mirrored(self, sign: float) -> Utility:
        """Return the utility in its player's own direction; `sign` is -1 where it is minimised."""
        low, high = sorted(sign * bound for bound in self.interval)
        return Utility(sign * self.mean, (low, high))


@dataclass(frozen=True)
class Deviation:
    """The best deviation of one player, all others staying.

    Parameters
    ----------
    gain
        What it may bring the player.
    profile
        All players' parameters after it, by the likeliest models' means; of a study, their values.
    """

    gain: Dissatisfaction
    profile: Mapping[str, Any]


@dataclass(frozen=True)
class Equilibrium:
    """The profile from which players are believed to gain least by deviating.

    Parameters
    ----------
    profile
        Place in its range (0 to 1) or index of each parameter; empty if nothing was observed.
    dissatisfaction, utilities
        By player.
    cost
        What was paid.
    budget
        What may be paid.
    n_queries, n_evaluations
        Profiles that were queried, and those of them that were at the target fidelity for all.
    probability
        With which the model believes in each interval.
    finished
        Whether the budget is used up.
    """

    profile: Point
    dissatisfaction: Mapping[str, Dissatisfaction]
    utilities: Mapping[str, Utility]
    cost: float
    budget: float
    n_queries: int
    n_evaluations: int
    probability: float
    finished: bool

    @property
    def epsilon(self) -> float:
        """The largest mean dissatisfaction, in standard deviations of the player's utility."""
        return max((gain.relative for gain in self.dissatisfaction.values()), default=float("inf"))

    @property
    def at_most(self) -> float:
        """The largest upper end of the intervals, in standard deviations of the utility."""
        gains = self.dissatisfaction.values()
        return max((gain.relative_interval[1] for gain in gains), default=float("inf"))

    @property
    def reason(self) -> str:
        """Why the answer is what it is."""
        if not self.profile:
            return f"none of the {self.n_queries} trials gave a value"
        if self.finished:
            return "the budget is used up"
        if not self.n_evaluations:
            return "nothing was evaluated at the target fidelity yet"
        return f"{self.budget - self.cost:.6g} of the budget is left"

    def mirrored(self, signs: Mapping[str, float]) -> Equilibrium:
        """Return the answer with utilities in their players' own directions (see `Utility`)."""
        utilities = {name: each.mirrored(signs[name]) for name, each in self.utilities.items()}
        return replace(self, utilities=utilities)
