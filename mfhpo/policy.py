"""The contract between what runs an algorithm and its host: ask, tell, recommend."""

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mfhpo._validation import check_index, check_instance, check_sequence
from mfhpo.knowledge.arrays import IntArray
from mfhpo.problem import Observation, Problem, Pull, Recommendation


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

    A policy knows nothing about trials, processes or clocks. Whoever runs it asks for pulls,
    evaluates them anywhere and in any order, and tells what came back.

    Attributes
    ----------
    labels
        How arms and fidelities are named in warnings.
    certifies
        Whether it is after a certificate; else rewards count while it runs.
    withheld
        Why nothing may be certified at the moment, whatever the values say; else empty. Whoever
        runs the policy sets it: while an evaluation is under way that later ones of its arm and
        fidelity have overtaken, for what takes long may be poor.
    provisos
        What else must be true for a claim, as clauses, by what whoever runs the policy supposes.
    held_cost
        What was paid for evaluations that have ended and are not told yet.
    most_blocks
        Where pulls carry blocks, how many replicates there are: blocks from 0 to one less. None: as
        many as are wanted. Whoever runs the policy sets it as soon as it is known.
    """

    labels: Labels = Labels()
    certifies: bool = True
    withheld: str = ""
    provisos: tuple[str, ...] = ()
    held_cost: float = 0.0
    most_blocks: int | None = None

    @abc.abstractmethod
    def ask(self, n: int = 1, pending: Sequence[Pull] = ()) -> list[Pull]:
        """Propose the next pulls; the same pull may occur more than once.

        Asking changes nothing: the answer is a function of what was told and of `pending`, the
        pulls that are under way. There are exactly `n`, at least 1, also after the race has ended
        (then they refine the answer), and none only when no arm is left. A ValueError names a
        pending pull that there is not.
        """

    @abc.abstractmethod
    def tell(self, pull: Pull, observation: Observation) -> None:
        """Learn from one observation; each evaluation is told once.

        Arms and fidelities may be told in any order. But the values of an arm at a fidelity belong
        in the order in which their evaluations began (`mfhpo.racing.in_order`), as what takes long
        may be poor. A ValueError names an arm or a fidelity that the problem does not have.
        """

    def _check(self, pull: Pull, name: str = "pull") -> None:
        """Raise TypeError or ValueError unless the policy may have asked for this pull."""
        check_instance(name, pull, Pull, "a mfhpo.Pull, as it was asked for")

    def _checked(self, pending: Sequence[Pull]) -> list[Pull]:
        """Return the pulls that are under way as a list, or raise (see `_check`)."""
        pulls: list[Pull] = check_sequence("pending", pending, "a list of pulls")
        for position, pull in enumerate(pulls):
            self._check(pull, f"pending[{position}]")
        return pulls

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
        """Return arm, mean, interval at the target and fidelity of the best answer so far.

        It agrees with `recommend`, and is cheap enough to be shown after every pull.
        """

    @abc.abstractmethod
    def summary(self, arm: int, fidelity: int) -> tuple[int, float, float]:
        """Return count, mean and confidence radius of an arm at a fidelity."""

    @property
    @abc.abstractmethod
    def active(self) -> IntArray:
        """Arms still in the race, shape (n,); not to be written to."""

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


def check_pull(pull: Pull, problem: Problem, name: str = "pull") -> None:
    """Raise TypeError or ValueError unless a pull is of the problem's arms and fidelities."""
    check_instance(name, pull, Pull, "a mfhpo.Pull, as it was asked for")
    check_index("arm", pull.arm, problem.n_arms)
    check_index("fidelity", pull.fidelity, problem.n_fidelities)


def check_pulls(pending: Sequence[Pull], problem: Problem) -> list[Pull]:
    """Return the pulls that are under way as a list, or raise (see `check_pull`)."""
    pulls: list[Pull] = check_sequence("pending", pending, "a list of pulls")
    for position, pull in enumerate(pulls):
        check_pull(pull, problem, f"pending[{position}]")
    return pulls
