"""Observations in the order in which they were begun, whatever the order in which they end."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

ItemT = TypeVar("ItemT")

# So many evaluations of an arm and fidelity may wait for an earlier one: at least, and for each
# that is under way. Fewer would idle workers whose trials differ a little in time; more would be
# paid for though the race may never use them.
_LEAST_HELD = 10
_HELD_PER_WORKER = 3


class InOrder(Generic[ItemT]):
    """Hands on what was begun first before what was begun later.

    A confidence radius for n pulls is about the first n values of an arm as they were drawn. Where
    the time that a pull takes goes with its value, the first n to arrive are no such sample: a
    certificate that rests on them may be wrong far more often than it says. What is given up
    (`drop`) is left out of the sequence, which is harmless if it has nothing to do with its value.
    `begun` is the next ticket.

    Examples
    --------
    >>> values = InOrder()
    >>> slow, quick = values.begin(), values.begin()
    >>> values.end(quick, 0.9), values.end(slow, 0.1)
    ([], [0.1, 0.9])
    """

    def __init__(self) -> None:
        self.begun = 0
        self._awaited: set[int] = set()
        self._held: dict[int, ItemT] = {}

    @property
    def awaited(self) -> list[int]:
        """The tickets that hold back later ones, in order."""
        return sorted(self._awaited)

    @property
    def held(self) -> list[tuple[int, ItemT]]:
        """The tickets, with their items, that have ended and wait for earlier ones, in order."""
        return sorted(self._held.items(), key=lambda entry: entry[0])

    def begin(self) -> int:
        """Draw the next ticket."""
        ticket = self.begun
        self.begun += 1
        self._awaited.add(ticket)
        return ticket

    def end(self, ticket: int, item: ItemT) -> list[ItemT]:
        """Take the result of an awaited ticket, and return all items whose turn it is now."""
        if ticket not in self._awaited:
            return [item]
        self._held[ticket] = item
        return self.drop(ticket)

    def drop(self, ticket: int) -> list[ItemT]:
        """Give up a ticket, and return all items whose turn it is now, in order."""
        self._awaited.discard(ticket)
        first = min(self._awaited, default=self.begun)
        return [self._held.pop(ticket) for ticket in sorted(self._held) if ticket < first]

    def cut(self, ticket: int) -> list[ItemT]:
        """Give up a ticket, and return the later items that have ended, which it takes along."""
        self._awaited.discard(ticket)
        return [self._held.pop(held) for held in sorted(self._held) if held > ticket]


def most_held(n_workers: int) -> int:
    """Return how many evaluations of an arm and fidelity may wait for an earlier one."""
    return max(_LEAST_HELD, _HELD_PER_WORKER * n_workers)


def in_turn(
    items: Iterable[ItemT],
    *,
    kind: Callable[[ItemT], Hashable],
    beginning: Callable[[ItemT], Any],
    end: Callable[[ItemT], Any],
) -> list[ItemT]:
    """Sort items that wait for nothing any longer, as if each had been told when its turn came.

    Items of a kind keep the order in which they began. One that ended before an earlier one of its
    kind waits for it; apart from that, the order is that in which they ended.

    Examples
    --------
    >>> ended = [("a", 2), ("b", 1), ("a", 1)]
    >>> in_turn(ended, kind=lambda i: i[0], beginning=lambda i: i[1], end=ended.index)
    [('b', 1), ('a', 1), ('a', 2)]
    """
    latest: dict[Hashable, Any] = {}
    turns = []
    for item in sorted(items, key=beginning):
        latest[kind(item)] = max(latest.get(kind(item), end(item)), end(item))
        turns.append((latest[kind(item)], item))
    return [item for _, item in sorted(turns, key=lambda turn: turn[0])]
