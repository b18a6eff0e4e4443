"""The contract between an experiment and its kind: settings, and the runner that they make."""

import abc
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from mfhpo._validation import hook
from mfhpo.experiment.answer import Answer
from mfhpo.experiment.configurations import Configurations, Describe, described
from mfhpo.experiment.events import Begun, Ended, Found, Origin, Purpose
from mfhpo.knowledge.fidelity import Fidelity
from mfhpo.knowledge.space import Numeric, OneOf, Point
from mfhpo.problem import LARGEST, Labels, Observation, Pull

Available: TypeAlias = Callable[[int, Mapping[str, Any], int], bool]
"""Tells whether a host can evaluate an arm, with a configuration, at a level now."""


@dataclass(frozen=True)
class Wanted:
    """An evaluation that is wanted (see `Begun`); a configuration of None is not known yet."""

    pull: Pull
    configuration: Mapping[str, Any] | None
    purpose: Purpose
    point: Mapping[str, float] | None = None
    shortlist: tuple[int, ...] = ()
    draw: int | None = None
    origin: Origin = "chosen"


class Runner(abc.ABC):
    """Knows one kind of experiment: what is next, what was learned, what the answer is.

    All values are maximised. It knows nothing about workers, order, or losses: see `Ledger`.
    """

    configurations: Configurations  # the arms by number
    policy: Any = None  # what decides, if there is one to ask
    sign: float = 1.0  # -1 where the objective is minimised
    n_levels: int  # the last one is the target
    labels: Labels  # how arms and levels are named
    conditions: tuple[str, ...] = ()  # clauses: what a claim supposes that the runner does not know
    # Purposes of evaluations whose values are averaged, and learned in order unless in blocks.
    of_means: frozenset[str] = frozenset()
    in_blocks: bool = False  # whether a claim without a block is none of this experiment's
    counts_late: bool = False  # whether what was given up counts if it ends; then no order matters
    keeps_budget: bool = False  # whether claims move that exceed the budget beside earlier ones
    purpose: Purpose = "given"  # of evaluations that a user enqueues
    n_arms: float = 0  # how many there may be: infinite where new configurations are begun
    draws: bool = False  # whether new arms are draws of the host's
    search_replicate: int | None = None  # of a search's evaluations; None: each has its own
    available: Available | None = None  # whether the host can evaluate a configuration at a level
    held: Counter[Pull]  # pending pulls that take no more of the budget: results that wait
    apart_cost: float = 0.0  # of results that the policy was not told
    lost_cost: float = 0.0  # of losses, and of what was evaluated though nobody asked for it
    unlearned_cost: float = 0.0  # that, and the cost of results that wait

    @property
    @hook
    def finished(self) -> bool:
        """True if the experiment is over, whatever is under way."""
        return bool(self.policy.finished)

    @property
    @hook
    def is_spent(self) -> bool:
        """True if nothing is left to begin, which may be known before it is over."""
        return self.finished

    @abc.abstractmethod
    def next(self, pending: Sequence[Pull]) -> Wanted | None:
        """Return what to evaluate besides what is under way; None for nothing now."""

    @hook
    def fits(self, pull: Pull, pending: Sequence[Pull]) -> bool:
        """Tell whether the budget pays for what a user has enqueued, beside what is under way."""
        return True

    @hook
    def open_block(self, arm: int, pending: Sequence[Pull]) -> int | None:
        """Return the block of what a user has enqueued; None if it needs none."""
        return None

    @hook
    def limited(self, pull: Pull, pending: Sequence[Pull]) -> Pull:
        """Return what a user has enqueued with the limit that it gets, if there are any."""
        return pull

    @hook
    def adopt(self, begun: Begun) -> Pull | None:
        """Return the pull of a claim, at the target where no level is known.

        None if it is none of this experiment's. A configuration that was expected becomes an arm.
        """
        is_draw = begun.draw is not None
        if len(self.configurations) < self.n_arms and is_draw == self.draws:
            arm: int | None = self.configurations.add(begun.configuration, begun.draw)
        else:
            arm = self.configurations.find(begun.configuration, begun.draw)
        if arm is None or (self.in_blocks and begun.block is None):
            return None
        level = begun.levels[0] if begun.levels else self.n_levels - 1
        return Pull(arm, level, begun.limit, begun.block)

    @hook
    def observe(self, ended: Ended) -> Any:
        """Return what a claim gave, as it is learned."""
        value = None if ended.value is None else self.sign * ended.value
        return Observation(value, ended.cost, ended.stopped_at)

    @abc.abstractmethod
    def learn(self, pull: Pull, observation: Any, purpose: str) -> None:
        """Learn a result whose turn it is."""

    @hook
    def find(self, found: Found) -> None:
        """Take note of what was found out, besides levels and replicates."""
        return

    @hook
    def inform(
        self, parameters: Mapping[str, Numeric | OneOf], points: Mapping[int, Point]
    ) -> None:
        """Learn what parameters and draws are to a model (see `mfhpo.experiment.Ended`)."""
        return

    @hook
    def cost_of(self, pull: Pull, observation: Any) -> float:
        """Return what an evaluation has cost, if that is known."""
        return observation.cost or 0.0

    @hook
    def charge(self, lost: float, held: float) -> None:
        """Take note of what was paid for losses and the like, and for results that wait."""
        self.lost_cost, self.unlearned_cost = lost, lost + held

    def leader(self) -> tuple[int | None, float, tuple[float, float]]:
        """Return arm, mean and interval of the best answer so far, in the user's direction."""
        if not hasattr(self.policy, "leader"):
            return None, math.nan, (-math.inf, math.inf)
        arm, mean, (low, high), _ = self.policy.leader()
        return arm, self.sign * mean, (low, high) if self.sign > 0.0 else (-high, -low)

    @abc.abstractmethod
    def answer(self) -> Answer:
        """Return the best answer so far."""

    @property
    def cost(self) -> float:
        """The cost of all results that were learned."""
        return float(getattr(self.policy, "cost", 0.0)) + self.apart_cost


def is_worst(observation: Observation) -> bool:
    """Tell whether a value is the worst there is: too small for a mean, and no failure."""
    return observation.value is not None and observation.value < -LARGEST


_NUMBER = "number of the candidate"  # no parameter has such a name


@dataclass(frozen=True, kw_only=True)
class Settings(abc.ABC):
    """The settings that all kinds of experiments have.

    Parameters
    ----------
    seed, sign
        Of what is drawn; and -1 where the objective is minimised.
    lease_seconds
        How long an evaluation may take before its worker is taken for dead; None: any time.
    about_evaluations
        What evaluations are, as the first of the assumptions of an answer; else empty.
    describe
        See `mfhpo.experiment.key_of`.
    """

    seed: int = 0
    sign: float = 1.0
    lease_seconds: float | None = None
    about_evaluations: str = ""
    describe: Describe = described

    @abc.abstractmethod
    def runner(self) -> Runner:
        """Return a runner to which nothing was told."""


def levels_in_words(fidelity: Fidelity, levels: Sequence[Any]) -> Callable[[int], str]:
    """Return what names the levels of a fidelity."""
    return lambda level: f"{fidelity.name}={levels[level]!r}"


def shown_value(sign: float) -> Callable[[float], float]:
    """Return what undoes that values are maximised."""
    return lambda value: sign * value + 0.0  # the sum makes 0 of -0


def numbered(arms: Configurations) -> list[dict[str, Any]]:
    """Return configurations as a `DeclaredSearch` takes them: 1, 1.0 and True are different."""
    return [{**arms[arm], _NUMBER: str(arm)} for arm in range(len(arms))]
