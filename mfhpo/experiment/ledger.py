"""The claims of workers, and the order in which results may be learned.

The values of an arm at a level are learned in the order in which their evaluations began: what
takes long may be poor, and the first n values to arrive are no sample of the arm's. A result waits
until all earlier claims of its kind have ended or were given up. Values of blocks need no order, as
policies in blocks take them by block. Nor do a search, a game, or a choice of limits, which promise
nothing about means.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from mfhpo.experiment.events import Begun, Ended
from mfhpo.problem import Pull
from mfhpo.racing.in_order import InOrder

# Losses of an arm in a row that are excused. A node that goes down takes some evaluations with it,
# but hardly as many of one arm.
_MOST_LOST_IN_A_ROW = 10
_MOST_LOST_OF_ALL = 100  # in a row, of all arms: a broken storage takes no more

# So many evaluations of an arm and fidelity may wait for an earlier one: at least, and for each
# that is under way. Fewer would idle workers whose trials differ a little in time; more would be
# paid for though the race may never use them.
_LEAST_HELD = 10
_HELD_PER_WORKER = 3

Kind: TypeAlias = tuple[int, int, str]
"""Arm, level and purpose: what is learned in order."""


@dataclass(frozen=True)
class Result:
    """A result of an evaluation, as a policy is told.

    Parameters
    ----------
    id
        Of the claim.
    pull, observation
        What a policy is told; values are maximised.
    purpose
        See `mfhpo.experiment.Begun`.
    """

    id: str
    pull: Pull
    observation: Any
    purpose: str


@dataclass
class Claim:
    """An evaluation that was begun and has not ended.

    `tickets` holds its place in the order of each level that it may give a value at; without an
    order the places are 0.
    """

    begun: Begun
    pull: Pull
    tickets: dict[int, int] = field(default_factory=dict)

    def is_equal(self, other: Claim) -> bool:
        """Tell whether another claim is of the same evaluation."""
        return (self.pull, self.begun.purpose) == (other.pull, other.begun.purpose)

    def level_of(self, ended: Ended) -> int:
        """Return the level that an end is about; -1 for a value whose level nobody knows."""
        if ended.level is not None:
            return ended.level
        levels = self.begun.levels
        if levels is not None and (len(levels) == 1 or ended.has_value):
            return self.pull.fidelity
        return -1 if ended.has_value else min(self.tickets, default=-1)


@dataclass(frozen=True)
class WaitedFor:
    """A claim that holds back later ones which have ended, and how many."""

    id: str
    pull: Pull
    n_held: int


class Ledger:
    """The open claims of an experiment, and the results that wait for earlier ones.

    Parameters
    ----------
    n_levels
        Number of levels: a claim whose level is not known yet has a place in the order of each.
    ordered
        Purposes of claims whose values are learned in order.
    """

    def __init__(self, n_levels: int, ordered: frozenset[str]) -> None:
        self._n_levels = n_levels
        self._ordered = ordered
        self.open: dict[str, Claim] = {}
        self.n_begun: Counter[str] = Counter()  # claims by purpose
        self.n_of_kind: Counter[Kind] = Counter()  # claims by the level that they were sent to
        self.lost: dict[str, Claim] = {}  # excused losses
        self.held: dict[tuple[str, int], Result] = {}
        """Results that wait for earlier claims, by claim and level."""
        self._orders: defaultdict[Kind, InOrder[Result]] = defaultdict(InOrder)
        self._most_open = 0
        self._lost_in_a_row: Counter[int] = Counter()  # by arm
        self._lost_of_all = 0  # in a row

    def begin(self, begun: Begun, pull: Pull, inherited: Claim | None = None) -> None:
        """Note a claim; one that retries another takes its place, and closes it."""
        claim = Claim(begun, pull, {} if inherited is None else inherited.tickets)
        if inherited is None:
            self.n_begun[begun.purpose] += 1
            self.n_of_kind[self._kind_of(claim, pull.fidelity)] += 1
        else:
            del self.open[inherited.begun.id]
        for level in range(self._n_levels) if begun.levels is None else begun.levels:
            if level not in claim.tickets:
                claim.tickets[level] = self._draw(claim, level)
        self.open[begun.id] = claim
        self._most_open = max(self._most_open, len(self.open))

    def end(self, claim: Claim, level: int, observation: Any, last: bool) -> list[Result]:
        """Take what a claim gave at a level, and return what may be learned now, in order.

        An observation of None is paid and not learned.
        """
        self._lost_in_a_row.pop(claim.pull.arm, None)
        self._lost_of_all = 0
        ticket = claim.tickets.pop(level, None)
        released: list[Result] = []
        if ticket is not None:
            result = None
            if observation is not None:
                pull = _at(claim.pull, level)
                result = Result(claim.begun.id, pull, observation, claim.begun.purpose)
            released = self._release(claim, level, ticket, result)
        if last or not claim.tickets:
            released += self._drop(claim)
        return released

    def lose(self, claim: Claim, failure: Any) -> list[Result]:
        """Give a claim up, and return what may be learned now.

        An arm that is lost time and again takes its processes down itself: that is a failure,
        as it is observed. So is what is lost when all have been lost for long.
        """
        arm = claim.pull.arm
        self._lost_in_a_row[arm] += 1
        self._lost_of_all += 1
        is_excused = self._lost_in_a_row[arm] <= _MOST_LOST_IN_A_ROW
        if is_excused and self._lost_of_all <= _MOST_LOST_OF_ALL:
            self.lost[claim.begun.id] = claim
            return self._drop(claim)
        level = min(claim.tickets, default=claim.pull.fidelity)
        ticket = claim.tickets.pop(level, 0)
        pull = _at(claim.pull, level)
        result = Result(claim.begun.id, pull, failure, claim.begun.purpose)
        return self._release(claim, level, ticket, result) + self._drop(claim)

    def withdraw(self, claim: Claim) -> list[Result]:
        """Close a claim whose configuration has left, and return the results that go with it.

        What waits for it is quicker than it: learned alone, it would be no sample of the arm's.
        """
        self.open.pop(claim.begun.id, None)
        tickets, claim.tickets = claim.tickets, {}
        if not self._is_ordered(claim):
            return []
        orders = ((self._orders[self._kind_of(claim, level)], t) for level, t in tickets.items())
        cut = _flat(order.cut(ticket) for order, ticket in orders)
        for each in cut:
            del self.held[each.id, each.pull.fidelity]
        return cut

    def pending(self, moving: str | None = None) -> list[Pull]:
        """Return the pulls that a policy was not told about: under way, or waiting for earlier.

        A claim that has to move is left out. One whose level is not known may be at the target.
        One that may give values at several levels is sent to the lowest.
        """
        under_way = [_pull_of(claim) for id, claim in self.open.items() if id != moving]
        return [*under_way, *(result.pull for result in self.held.values())]

    @property
    def waited_for(self) -> list[WaitedFor]:
        """Claims that hold back others, those that hold back most first."""
        first = {
            (self._kind_of(claim, level), ticket): claim
            for claim in self.open.values()
            for level, ticket in claim.tickets.items()
        }
        found = []
        for kind, order in self._orders.items():
            held = order.held
            claim = first.get((kind, order.awaited[0])) if held else None
            if claim is not None:
                pull = _at(claim.pull, kind[1])
                found.append(WaitedFor(claim.begun.id, pull, len(held)))
        return sorted(found, key=lambda waited: -waited.n_held)

    @property
    def full(self) -> set[Kind]:
        """Kinds of which so many results wait for an earlier one that no other one is begun."""
        most = max(_LEAST_HELD, _HELD_PER_WORKER * self._most_open)
        results = self.held.values()
        counts = Counter((each.pull.arm, each.pull.fidelity, each.purpose) for each in results)
        return {kind for kind, n in counts.items() if n >= most}

    def _draw(self, claim: Claim, level: int) -> int:
        """Return a claim's place in the order of a level."""
        if not self._is_ordered(claim):
            return 0
        return self._orders[self._kind_of(claim, level)].begin()

    def _release(
        self, claim: Claim, level: int, ticket: int, result: Result | None
    ) -> list[Result]:
        if not self._is_ordered(claim):
            return [] if result is None else [result]
        order = self._orders[self._kind_of(claim, level)]
        if result is None:
            released = order.drop(ticket)
        else:
            self.held[result.id, level] = result
            released = order.end(ticket, result)
        for each in released:
            del self.held[each.id, level]
        return released

    def _drop(self, claim: Claim) -> list[Result]:
        """Close a claim, and give up its remaining places."""
        self.open.pop(claim.begun.id, None)
        left, claim.tickets = claim.tickets, {}
        dropped = (
            self._release(claim, level, ticket, None) for level, ticket in sorted(left.items())
        )
        return _flat(dropped)

    def _is_ordered(self, claim: Claim) -> bool:
        return claim.pull.block is None and claim.begun.purpose in self._ordered

    def _kind_of(self, claim: Claim, level: int) -> Kind:
        return claim.pull.arm, level, claim.begun.purpose


def _at(pull: Pull, level: int) -> Pull:
    return pull if pull.fidelity == level else replace(pull, fidelity=level)


def _pull_of(claim: Claim) -> Pull:
    levels = claim.begun.levels
    if levels is None or len(levels) == 1:
        return claim.pull
    return _at(claim.pull, min(claim.tickets, default=claim.pull.fidelity))


def _flat(lists: Iterable[list[Result]]) -> list[Result]:
    return [result for results in lists for result in results]
