"""The vocabulary of a race: what is compared, what is pulled, what is seen, what is answered."""

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Real
from typing import Any, Protocol

import numpy as np

from mfhpo._validation import (
    MOST_ARMS,
    MOST_LEVELS,
    check_costs,
    check_count,
    check_index,
    check_instance,
    check_nonnegative,
    check_number,
    check_sequence,
    plain,
    shown,
    unwrapped,
)
from mfhpo.knowledge.arrays import IntArray
from mfhpo.knowledge.bias import Bias
from mfhpo.knowledge.noise import EstimatedNoise, Noise
from mfhpo.knowledge.statistics import SurvivalPoint

LARGEST = 1e50
"""Size of the largest value: fourth powers of such ones, and sums of them, are still finite."""


@dataclass(frozen=True, slots=True)
class Pull:
    """One evaluation that a policy asks for.

    Parameters
    ----------
    arm, fidelity
        Index of the configuration, 0 to K - 1, and of the level, 0 (cheapest) to M - 1 (the
        target).
    limit
        Wall-clock limit in seconds, or None.
    block
        Index of the block, from 0, or None. All evaluations of a block share their replicate: the
        split, or the seed.
    """

    arm: int
    fidelity: int
    limit: float | None = None
    block: int | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What came back from a pull.

    Parameters
    ----------
    value
        The noisy value, larger is better. None is a failure: the pull crashed; so is a value that
        is not finite, or beyond 1e50.
    cost
        What was really paid, in the unit of the problem's costs. None: the declared cost, or of a
        failure what others have paid on average.
    censored_at
        The limit, in seconds, at which the pull was stopped, or None.
    """

    value: float | None
    cost: float | None = None
    censored_at: float | None = None

    def __post_init__(self) -> None:
        for name in ("value", "cost", "censored_at"):
            object.__setattr__(self, name, unwrapped(getattr(self, name)))
        if isinstance(self.value, (bool, np.bool_)):
            raise TypeError(f"value must be a number; use 1.0 or 0.0, got {self.value}.")
        check_instance("value", self.value, Real | None, "a number or None")
        if self.cost is not None:
            check_nonnegative("cost", self.cost)
        if self.censored_at is not None and not check_number("censored_at", self.censored_at) >= 0:
            raise ValueError(f"censored_at must be at least 0, got {shown(self.censored_at)}.")

    @property
    def has_value(self) -> bool:
        """Whether there is a value to learn from."""
        if self.censored_at is not None or self.value is None:
            return False
        return abs(self.value) <= LARGEST

    @property
    def failed(self) -> bool:
        """Whether the pull gave neither a value nor a censored duration."""
        return self.censored_at is None and not self.has_value


@dataclass(frozen=True)
class Problem:
    """What is known about a race before its first pull.

    Parameters
    ----------
    n_arms
        Number of configurations K, at least 1.
    costs
        Cost of one pull at each fidelity, shape (M,), positive and strictly increasing; the last
        fidelity is the target. None: measured during the race.
    bias
        Bounds on the fidelities' bias. None: estimated during the race.
    noise
        What is known about the noise around a configuration's mean.
    n_fidelities
        Number of fidelities M; only needed when ``costs`` is None.
    """

    n_arms: int
    costs: Sequence[float] | None
    bias: Bias | None = None
    noise: Noise = field(default_factory=EstimatedNoise)
    n_fidelities: int = 0
    target: int = field(init=False, repr=False, compare=False)
    """Index of the target fidelity, M - 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_arms", check_count("n_arms", self.n_arms, 1, MOST_ARMS))
        check_count("n_fidelities", self.n_fidelities, 0, MOST_LEVELS)
        check_instance("bias", self.bias, Bias | None, "a mfhpo.Bias or None")
        check_instance("noise", self.noise, Noise, "a noise such as mfhpo.SubGaussian(0.1)")
        if self.costs is not None:
            costs = check_costs(self.costs, "one number for each fidelity, or None")
            if self.n_fidelities not in (0, len(costs)):
                raise ValueError(
                    f"n_fidelities={self.n_fidelities} contradicts costs={list(costs)}, which has "
                    f"{len(costs)}; leave n_fidelities out."
                )
            object.__setattr__(self, "costs", costs)
            object.__setattr__(self, "n_fidelities", len(costs))
        if self.n_fidelities < 1:
            raise ValueError(
                f"n_fidelities must be at least 1 with costs=None, got {self.n_fidelities}."
            )
        object.__setattr__(self, "target", self.n_fidelities - 1)
        if self.bias is not None and len(self.bias.bounds) != self.n_fidelities:
            raise ValueError(
                f"bias has {len(self.bias.bounds)} bounds {list(self.bias.bounds)} but there are "
                f"{self.n_fidelities} fidelities; give one bound per fidelity, the last one 0."
            )


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The answer of a policy, at any time.

    That of a choice of time limits is never certified. Its `mean` is the gain of arm and limit, and
    its `interval` is valid for all such pairs together, approximately where something is
    `estimated`.

    Parameters
    ----------
    arm
        The recommended configuration, or None when every arm has failed.
    mean
        Its estimated mean, at the highest fidelity at which it was seen (NaN if it never was).
    interval
        Bounds on its mean at the target that hold, with all the others of the race and at all
        times, with probability 1 - delta; infinite where nothing is known about it.
    fidelity
        The highest fidelity at which the arm was pulled.
    delta, epsilon
        Error probability and tolerance of the certificate.
    finished
        Whether the race is over: certified, out of budget, or out of arms.
    certified
        Whether the arm is within epsilon of the best, wrong with probability at most delta.
    reason
        Why it is certified, or why not.
    cost
        What the race has paid, in the unit of the costs.
    pulls, failures
        Number of pulls that gave a value, and of those that gave none.
    survivors
        Arms still in the race.
    compared
        Number of arms that the claim is about: all but those that failed or repeat another one.
    assumptions, conditions
        What the certificate rests on, in words, and what must be true for it, as clauses: "wrong
        with probability at most delta if ...".
    remaining_cost
        A guess of what it would still take to certify: 0 when certified, None when too little is
        known, infinite when no amount seems to suffice.
    unseen
        Which rare outcomes of the arm and its closest rival the evaluations cannot exclude, in
        words; empty without an arm.
    not_compared
        The arms that left because their evaluations failed, in words.
    notices
        What was observed that speaks against the conditions, in words.
    is_exact
        Whether all arms were evaluated on all of a finite set of replicates: nothing is uncertain.
    limit
        The recommended limit in seconds, None before any limit is known.
    survival
        The recommended arm's survival curve, one point for each of its limits.
    censored
        Share of the pulls so far that were stopped at their limit; None if none are chosen.
    estimated
        What the bounds of a choice of limits rest on and was not declared, in words.
    """

    arm: int | None = None
    mean: float = math.nan
    interval: tuple[float, float] = (-math.inf, math.inf)
    fidelity: int = 0
    delta: float = math.nan
    epsilon: float = math.nan
    finished: bool
    certified: bool = False
    reason: str
    cost: float
    pulls: int
    survivors: tuple[int, ...] = ()
    compared: int = 0
    assumptions: tuple[str, ...] = ()
    remaining_cost: float | None = None
    conditions: tuple[str, ...] = ()
    unseen: str = ""
    not_compared: tuple[str, ...] = ()
    failures: int = 0
    notices: tuple[str, ...] = ()
    is_exact: bool = False
    limit: float | None = None
    survival: tuple[SurvivalPoint, ...] = ()
    censored: float | None = None
    estimated: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain JSON values (None for what is not finite)."""
        content: dict[str, Any] = plain(asdict(self))
        of_limits = ("limit", "survival", "censored", "estimated")
        for name in of_limits if self.censored is None else ():
            del content[name]
        return content


@dataclass(frozen=True)
class Labels:
    """Names for messages; whoever runs a policy may give it better ones than indices.

    Parameters
    ----------
    arm, fidelity
        Name one by its index.
    value
        Undoes what was done to maximise a value.
    """

    arm: Callable[[int], str] = "arm {}".format
    fidelity: Callable[[int], str] = "fidelity {}".format
    value: Callable[[float], float] = float


class Policy(Protocol):
    """A sequential rule that decides what to evaluate next and when to stop.

    Whoever runs it asks for pulls, evaluates them anywhere and in any order, and tells what came
    back.

    Attributes
    ----------
    labels
        How arms and fidelities are named in warnings.
    certifies
        Whether it is after a certificate; else rewards count while it runs.
    provisos
        What else must be true for a claim, as clauses.
    held_cost
        What was paid for evaluations that have ended and are not told yet.
    most_blocks
        Number of replicates, where pulls carry blocks; None: as many as are wanted.
    """

    labels: Labels = Labels()
    certifies: bool = True
    provisos: tuple[str, ...] = ()
    held_cost: float = 0.0
    most_blocks: int | None = None

    @abc.abstractmethod
    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Propose the next `n` pulls; the same pull may occur more than once.

        Asking changes nothing: the answer is a function of what was told and of `pending`, the
        pulls that are under way. After the race has ended pulls refine the answer.
        """

    @abc.abstractmethod
    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation; each evaluation is told once.

        Arms and fidelities may be told in any order. But the values of an arm at a fidelity belong
        in the order in which their evaluations began, as what takes long may be poor.
        """

    @property
    @abc.abstractmethod
    def finished(self) -> bool:
        """Whether the race is over: certified, out of budget, or out of arms."""

    @abc.abstractmethod
    def recommend(self) -> Recommendation:
        """Return the best answer so far; before the end it is marked as not certified."""

    @abc.abstractmethod
    def withdraw(self, arm: int, duplicate_of: int | None = None) -> None:
        """Take an arm out of the race, perhaps because it turned out to repeat another one."""

    @abc.abstractmethod
    def leader(self) -> tuple[int | None, float, tuple[float, float], int]:
        """Return arm, mean, interval at the target and fidelity of the best answer so far."""

    @abc.abstractmethod
    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Return count, mean and confidence radius of an arm at a fidelity."""

    @property
    @abc.abstractmethod
    def active(self) -> IntArray:
        """Arms still in the race, shape (n,)."""

    @property
    @abc.abstractmethod
    def fidelity(self) -> int:
        """The fidelity being explored."""

    @property
    @abc.abstractmethod
    def piloting(self) -> bool:
        """Whether what was not declared is still being found out."""

    @property
    @abc.abstractmethod
    def cost(self) -> float:
        """What was paid so far."""


def check_pull(pull: Pull, problem: Problem | None = None, name: str = "pull") -> None:
    """Raise unless a pull is of the problem's arms and fidelities."""
    check_instance(name, pull, Pull, "a mfhpo.Pull, as it was asked for")
    if problem is not None:
        check_index("arm", pull.arm, problem.n_arms)
        check_index("fidelity", pull.fidelity, problem.n_fidelities)


def check_pulls(pending: Sequence[Pull], problem: Problem | None = None) -> list[Pull]:
    """Return the pulls that are under way as a list, or raise (see `check_pull`)."""
    pulls: list[Pull] = check_sequence("pending", pending, "a list of pulls")
    for position, pull in enumerate(pulls):
        check_pull(pull, problem, f"pending[{position}]")
    return pulls
