"""A record of all calls that changed a policy, so that a restart can repeat them."""

import json
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from mfhpo import Observation, Policy, Pull
from mfhpo.search import BudgetedSearch, Point, Replicate


class Replay:
    """A record of all calls that changed a policy, in order.

    Each entry is a line of JSON, written once: saving a long race costs hardly more than copying.

    Parameters
    ----------
    text
        What another one has saved.
    """

    def __init__(self, text: str = "") -> None:
        self._lines = text.splitlines()

    @property
    def text(self) -> str:
        """All entries, to be saved."""
        return "\n".join(self._lines)

    def tell(self, policy: Policy, pull: Pull, observation: Observation) -> None:
        """Tell a policy what came of a pull."""
        shortlist = pull.shortlist if isinstance(pull, Replicate) else None
        told: list[Any] = [pull.arm, pull.fidelity, observation.value, observation.cost]
        told += [observation.censored_at, pull.limit, pull.block, shortlist]
        while told[-1] is None:  # what is most often missing comes last
            told.pop()
        self._do(policy, "tell", *told)

    def withdraw(self, policy: Policy, arm: int, duplicate_of: int) -> None:
        """Take an arm out that repeats another one."""
        self._do(policy, "withdraw", arm, duplicate_of)

    def describe(self, policy: Policy, arm: int, point: Point) -> None:
        """Say to a search which configuration an arm is."""
        self._do(policy, "describe", arm, dict(point))

    def again(self, policy: Policy) -> None:
        """Do everything again to a new policy, whose warnings were seen before."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for line in self._lines:
                what, *arguments = json.loads(line)
                _DEEDS[what](policy, *arguments)

    def _do(self, policy: Policy, what: str, *arguments: Any) -> None:
        _DEEDS[what](policy, *arguments)
        self._lines.append(json.dumps([what, *arguments], separators=(",", ":")))


def _tell(
    policy: Policy,
    arm: int,
    fidelity: int,
    value: float | None = None,
    cost: float | None = None,
    censored_at: float | None = None,
    limit: float | None = None,
    block: int | None = None,
    shortlist: Sequence[int] | None = None,
) -> None:
    pull = Pull(arm, fidelity, limit, block)
    if shortlist is not None:
        pull = Replicate(arm, fidelity, limit, block, shortlist=tuple(shortlist))
    policy.tell(pull, Observation(value, cost, censored_at))


def _withdraw(policy: Policy, arm: int, duplicate_of: int) -> None:
    policy.withdraw(arm, duplicate_of=duplicate_of)


def _describe(policy: Policy, arm: int, point: Point) -> None:
    as_search(policy).search.describe(arm, point)


def as_search(policy: Policy) -> BudgetedSearch:
    """Return the policy of a search; TypeError for any other."""
    if not isinstance(policy, BudgetedSearch):
        raise TypeError(f"policy must be a BudgetedSearch, got {policy!r}.")
    return policy


_DEEDS: dict[str, Callable[..., None]] = {
    "tell": _tell,
    "withdraw": _withdraw,
    "describe": _describe,
}
