"""The contract between an experiment and its kind: a race, a search, a choice of limits."""

from __future__ import annotations

import abc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.assignment import Available
from mfhpo.experiment.configurations import Configurations
from mfhpo.experiment.events import Begun, Ended, Purpose
from mfhpo.knowledge.space import Numeric, OneOf, Point
from mfhpo.problem import LARGEST, Labels, Observation, Policy, Pull


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
    search_replicate
        The replicate of a search's evaluations; None: each evaluation has one of its own.
    replicated
        What is told how many replicates there are, as its `most_blocks`; None: nothing is.
    open_block
        Returns their block, given the arm and what is under way; None: they need none.
    drop_from
        Takes out the arms from a number on, which were expected and do not come; None: all come.
    drop
        Asks for an arm no more, which can be evaluated no more; None: its trials are not missed.
    stop_measuring
        Ends what goes on after the best is known; None: nothing does.
    note_resumption
        Is told whether evaluations go on from a configuration's last level, and the budget if it is
        another one then; None: both are declared.
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
    unlearned_cost
        What was paid for results that wait, and for losses.
    """

    configurations: Configurations
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
    search_replicate: int | None = None
    replicated: Any = None
    open_block: Callable[[int, Sequence[Pull]], int] | None = None
    drop_from: Callable[[int], None] | None = None
    drop: Callable[[int], None] | None = None
    stop_measuring: Callable[[], None] | None = None
    note_resumption: Callable[[bool, float | None], None] | None = None
    limited: Callable[[Pull, Sequence[Pull]], Pull] | None = None
    withdraw: Callable[[int, int], None] | None = None
    inform: Callable[[Mapping[str, Numeric | OneOf], Mapping[int, Point]], None] | None = None
    available: Available | None = None
    lost_cost: float = 0.0
    held: Counter[Pull]
    unlearned_cost: float = 0.0

    @property
    @abc.abstractmethod
    def finished(self) -> bool:
        """True if the experiment is over, whatever is under way."""

    @property
    def is_spent(self) -> bool:
        """True if nothing is left to begin once nothing is under way, where that is known early."""
        return self.finished

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

    @abc.abstractmethod
    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return arm, mean and interval of the best answer so far, in the user's direction."""

    @abc.abstractmethod
    def answer(self) -> Answer:
        """Return the best answer so far."""

    @property
    @abc.abstractmethod
    def cost(self) -> float:
        """The cost of all results that were learned."""

    @property
    @abc.abstractmethod
    def phase(self) -> str:
        """Progress in words."""


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


def leader_of(policy: Policy, sign: float) -> tuple[int | None, float, tuple[float, float]]:
    """Return a policy's best answer so far in short (see `Runner.leader`)."""
    arm, mean, bounds, _ = policy.leader()
    low, high = sorted(sign * bound for bound in bounds)
    return arm, sign * mean, (low, high)


def is_worst(observation: Observation) -> bool:
    """Tell whether a value is the worst there is: too small for a mean, and no failure."""
    return observation.value is not None and observation.value < -LARGEST
