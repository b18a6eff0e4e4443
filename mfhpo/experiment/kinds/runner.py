"""The contract between an experiment and its kind: a race, a search, a choice of limits."""

from __future__ import annotations

import abc
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.assignment import Available
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun, Ended, Found, Purpose
from mfhpo.knowledge.space import Numeric, OneOf, Point
from mfhpo.problem import LARGEST, Labels, Observation, Pull


@dataclass(frozen=True)
class Wanted:
    """An evaluation that is wanted: see `mfhpo.experiment.Begun` for purpose and point.

    A configuration of None is not known yet. One that is a draw has its number in `draw`.
    """

    pull: Pull
    configuration: Mapping[str, Any] | None
    purpose: Purpose
    point: Mapping[str, float] | None = None
    shortlist: tuple[int, ...] = ()
    draw: int | None = None


class Runner(abc.ABC):
    """Knows one kind of experiment: what is next, what was learned, what the answer is.

    It is made anew for a replay, and changes by `adopt`, `learn` and what is set here alone. All
    values are maximised. It knows nothing about workers, order, or losses: see `Ledger`.

    Attributes
    ----------
    configurations
        The arms by number.
    policy, sign
        What decides, if there is one to ask, and -1 where the objective is minimised.
    n_levels
        Number of levels; the last one is the target.
    ordered
        Purposes of evaluations whose values are learned in the order of their beginnings.
    labels
        How arms and levels are named.
    conditions
        What must be true for a claim beyond what the runner supposes, as clauses.
    of_means
        Purposes of evaluations whose values are averaged: what is stopped is missing there.
    counts_late
        Whether what was given up counts if it ends after all; then no order may matter.
    keeps_budget
        Whether of several claims at the same moment the later ones move that exceed the budget.
    purpose
        Of evaluations that a user enqueues.
    n_arms
        How many arms there may be: infinite where new configurations are begun.
    draws
        Whether new arms are draws of the host's.
    observe
        Returns what a claim gave, as it is learned.
    is_spent
        Returns whether nothing is left to begin, where that is known before it is over; None: then.
    search_replicate
        The replicate of a search's evaluations; None: each evaluation has one of its own.
    open_block
        Returns their block, given the arm and what is under way; None: they need none.
    find
        Takes note of what was found out besides replicates (see `mfhpo.experiment.Found`); None:
        nothing has a part in it.
    limited
        Returns what a user has enqueued with the limit that it gets, given what is under way; None:
        there are no limits.
    withdraw
        Is told of a draw that turned out to be equal to another one, which gets its values; None:
        none does.
    inform
        Is told what parameters and draws are to a model (see `mfhpo.experiment.Ended`); None:
        there is no model.
    available
        Returns whether a configuration can be evaluated at a level now; None: all can be.
    lost_cost
        What was paid for losses, and for what was evaluated though nobody asked for it.
    held
        How many of the pending pulls take no more of the budget: results that wait for earlier
        ones, and pulls that are passed over.
    apart_cost
        What was paid for results that the policy was not told.
    unlearned_cost
        What was paid for results that wait, and for losses.
    """

    configurations: Configurations
    policy: Any = None
    sign: float = 1.0
    n_levels: int
    labels: Labels
    ordered: frozenset[str] = frozenset()
    conditions: tuple[str, ...] = ()
    of_means: frozenset[str] = frozenset()
    counts_late: bool = False
    keeps_budget: bool = False
    purpose: Purpose = "given"
    n_arms: float = 0
    draws: bool = False
    observe: Callable[[Ended], Any]
    is_spent: Callable[[], bool] | None = None
    search_replicate: int | None = None
    open_block: Callable[[int, Sequence[Pull]], int] | None = None
    find: Callable[[Found], None] | None = None
    limited: Callable[[Pull, Sequence[Pull]], Pull] | None = None
    withdraw: Callable[[int, int], None] | None = None
    inform: Callable[[Mapping[str, Numeric | OneOf], Mapping[int, Point]], None] | None = None
    available: Available | None = None
    lost_cost: float = 0.0
    held: Counter[Pull]
    apart_cost: float = 0.0
    unlearned_cost: float = 0.0

    @property
    @abc.abstractmethod
    def finished(self) -> bool:
        """True if the experiment is over, whatever is under way."""

    @abc.abstractmethod
    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return what to evaluate besides what is under way: None for nothing now.

        Nothing changes by asking.
        """

    @abc.abstractmethod
    def fits(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        """Tell whether the budget pays for what a user has enqueued, beside what is under way."""

    @abc.abstractmethod
    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim; None if it is none of this experiment's."""

    @abc.abstractmethod
    def learn(self, pull: Pull, observation: Any, purpose: str) -> None:
        """Learn a result whose turn it is."""

    @abc.abstractmethod
    def cost_of(self, pull: Pull, observation: Any) -> float:
        """Return what an evaluation has cost."""

    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return arm, mean and interval of the best answer so far, in the user's direction."""
        if not hasattr(self.policy, "leader"):
            return None, math.nan, (-math.inf, math.inf)
        arm, mean, bounds, _ = self.policy.leader()
        low, high = sorted(self.sign * bound for bound in bounds)
        return arm, self.sign * mean, (low, high)

    @abc.abstractmethod
    def answer(self) -> Answer:
        """Return the best answer so far."""

    @property
    def cost(self) -> float:
        """The cost of all results that were learned."""
        return float(getattr(self.policy, "cost", 0.0)) + self.apart_cost


def maximised(ended: Ended, sign: float) -> Observation:
    """Return the observation of a value; `sign` is -1 where it is minimised."""
    value = None if ended.value is None else sign * ended.value
    return Observation(value, ended.cost, ended.stopped_at)


def pull_of(
    begun: Begun, configurations: Configurations, top: int = 0, in_blocks: bool = False
) -> Pull | None:
    """Return the pull of a claim, at the top where no level is known; None if it is no arm."""
    arm = arm_of(begun, configurations)
    if arm is None or (in_blocks and begun.block is None):
        return None
    return Pull(arm, begun.levels[0] if begun.levels else top, begun.limit, begun.block)


def arm_of(begun: Begun, configurations: Configurations) -> int | None:
    """Return the arm of a claim, or None."""
    if begun.draw is None:
        return configurations.find(begun.configuration)
    return configurations.find_draw(begun.draw)


def is_worst(observation: Observation) -> bool:
    """Tell whether a value is the worst there is: too small for a mean, and no failure."""
    return observation.value is not None and observation.value < -LARGEST
