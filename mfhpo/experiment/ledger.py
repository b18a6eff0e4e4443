"""The claims of workers, and the order in which results may be learned.

What takes long may be poor, so that the first n values to arrive are no sample of an arm's. A
result waits until all earlier claims of its kind have ended or were given up. Values of blocks need
no order, nor do a search, a game, or a choice of limits, which promise nothing about means.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from mfhpo.experiment.events import Begun, Ended
from mfhpo.problem import Pull

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
    """A result of an evaluation of a claim, as a policy is told: values are maximised."""

    id: str
    pull: Pull
    observation: Any
    purpose: str


@dataclass
class Claim:
    """An evaluation that was begun and has not ended.

    `tickets` holds its place in the order of each level that it may give a value at.
    """

    begun: Begun
    pull: Pull
    tickets: dict[int, int]

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
        return -1 if ended.has_value else min(self.tickets)

    def pull_at(self, level: int) -> Pull:
        """Return the pull of an evaluation at one of its levels."""
        return self.pull if self.pull.fidelity == level else replace(self.pull, fidelity=level)


class WaitedFor(NamedTuple):
    """A claim that holds back later ones which have ended, and how many."""

    id: str
    pull: Pull
    n_held: int


class Ledger:
    """The open claims of an experiment, and the results that wait for earlier ones.

    A claim whose level is not known yet has a place in the order of each of `n_levels`. Values of
    claims with the purposes `ordered` are learned in order, unless they are of blocks.
    """

    def __init__(self, n_levels: int, ordered: frozenset[str]) -> None:
        self._n_levels = n_levels
        self._ordered = ordered
        self.open: dict[str, Claim] = {}
        self.n_begun: Counter[str] = Counter()  # claims by purpose
        self.n_of_kind: Counter[Kind] = Counter()  # claims by the level that they were sent to
        self.lost: dict[str, Claim] = {}  # excused losses
        self.held: dict[tuple[str, int], Result] = {}  # what waits, by claim and level
        # By ticket, in order: the results that wait, and None for what is awaited.
        self._queues: defaultdict[Kind, dict[int, Result | None]] = defaultdict(dict)
        self._n_tickets = 0
        self._most_open = 0
        self._lost_in_a_row: Counter[int] = Counter()  # by arm
        self._lost_of_all = 0  # in a row

    def begin(self, begun: Begun, pull: Pull, inherited: Claim | None = None) -> None:
        """Note a claim; one that retries another takes its place, and closes it."""
        claim = Claim(begun, pull, {} if inherited is None else inherited.tickets)
        if inherited is None:
            self.n_begun[begun.purpose] += 1
            self.n_of_kind[pull.arm, pull.fidelity, begun.purpose] += 1
        else:
            del self.open[inherited.begun.id]
        for level in range(self._n_levels) if begun.levels is None else begun.levels:
            if level not in claim.tickets:
                claim.tickets[level] = self._n_tickets
                self._queue_of(claim, level)[self._n_tickets] = None
                self._n_tickets += 1
        self.open[begun.id] = claim
        self._most_open = max(self._most_open, len(self.open))

    def end(self, claim: Claim, level: int, observation: Any, last: bool) -> list[Result]:
        """Take what a claim gave, None for nothing; return what may be learned now, in order."""
        self._lost_in_a_row.pop(claim.pull.arm, None)
        self._lost_of_all = 0
        released = self._fill(claim, level, observation) if level in claim.tickets else []
        return released + self._close(claim) if last or not claim.tickets else released

    def lose(self, claim: Claim, failure: Any) -> list[Result]:
        """Give a claim up, and return what may be learned now.

        An arm that is lost time and again takes its processes down itself: that is a failure.
        """
        arm, released = claim.pull.arm, []
        self._lost_in_a_row[arm] += 1
        self._lost_of_all += 1
        is_excused = self._lost_in_a_row[arm] <= _MOST_LOST_IN_A_ROW
        if is_excused and self._lost_of_all <= _MOST_LOST_OF_ALL:
            self.lost[claim.begun.id] = claim
        else:
            released = self._fill(claim, min(claim.tickets), failure)
        return released + self._close(claim)

    def withdraw(self, claim: Claim) -> list[Result]:
        """Close a claim whose arm has left, and return the quicker results that wait for it."""
        del self.open[claim.begun.id]
        cut = []
        for level, own in claim.tickets.items():
            queue = self._queue_of(claim, level)
            queue.pop(own, None)
            for ticket, result in list(queue.items()):
                if result is not None and ticket > own:
                    cut.append(result)
                    del queue[ticket], self.held[result.id, level]
        claim.tickets = {}
        return cut

    def pending(self, moving: str | None = None) -> list[Pull]:
        """Return the pulls that a policy was not told about, but for a claim that has to move."""
        pulls = []
        for id, claim in self.open.items():
            if id != moving:
                is_unknown = claim.begun.levels is None
                pulls.append(claim.pull if is_unknown else claim.pull_at(min(claim.tickets)))
        pulls += [result.pull for result in self.held.values()]
        return pulls

    @property
    def waited_for(self) -> list[WaitedFor]:
        """Claims that hold back others, those that hold back most first."""
        n_held = Counter(
            (each.pull.arm, level, each.purpose) for (_, level), each in self.held.items()
        )
        found = []
        for kind in (kind for kind in self._queues if n_held and kind in n_held):
            first, level = next(iter(self._queues[kind])), kind[1]
            claim = next(each for each in self.open.values() if each.tickets.get(level) == first)
            found.append(WaitedFor(claim.begun.id, claim.pull_at(level), n_held[kind]))
        return sorted(found, key=lambda waited: -waited.n_held)

    @property
    def full(self) -> set[Kind]:
        """Kinds of which so many results wait for an earlier one that no other one is begun."""
        most, results = max(_LEAST_HELD, _HELD_PER_WORKER * self._most_open), self.held.values()
        if len(results) < most:
            return set()
        counts = Counter((each.pull.arm, each.pull.fidelity, each.purpose) for each in results)
        return {kind for kind, n in counts.items() if n >= most}

    def _queue_of(self, claim: Claim, level: int) -> dict[int, Result | None]:
        """Return what is learned in order at a level; a new one for what needs no order."""
        if claim.pull.block is None and claim.begun.purpose in self._ordered:
            return self._queues[claim.pull.arm, level, claim.begun.purpose]
        return {}

    def _fill(self, claim: Claim, level: int, observation: Any) -> list[Result]:
        """Give up a claim's place at a level, or put its result there; return whose turn it is."""
        queue, ticket = self._queue_of(claim, level), claim.tickets.pop(level)
        if observation is None:
            queue.pop(ticket, None)
        else:
            id = claim.begun.id
            result = Result(id, claim.pull_at(level), observation, claim.begun.purpose)
            queue[ticket] = self.held[id, level] = result
        released = []
        for place, waiting in list(queue.items()):
            if waiting is None:
                break
            released.append(waiting)
            del queue[place], self.held[waiting.id, level]
        return released

    def _close(self, claim: Claim) -> list[Result]:
        """Close a claim, and give up its remaining places."""
        del self.open[claim.begun.id]
        released = []
        for level in sorted(claim.tickets):
            released += self._fill(claim, level, None)
        return released
