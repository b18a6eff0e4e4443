"""Observations in the order in which they were begun, whatever the order in which they end."""

from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")


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
