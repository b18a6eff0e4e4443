"""Observations in the order in which they were begun, whatever the order in which they end."""

from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")


class InOrder(Generic[ItemT]):
    """Hands on what was begun first before what was begun later: see `mfhpo.experiment.ledger`.

    `held` are the items that have ended and wait, by ticket.
    """

    def __init__(self) -> None:
        self._begun = 0
        self._awaited: set[int] = set()
        self.held: dict[int, ItemT] = {}

    def begin(self) -> int:
        """Draw the next ticket."""
        ticket = self._begun
        self._begun += 1
        self._awaited.add(ticket)
        return ticket

    def end(self, ticket: int, item: ItemT) -> list[ItemT]:
        """Take the result of a ticket, and return all items whose turn it is now."""
        self.held[ticket] = item
        self._awaited.discard(ticket)
        first = min(self._awaited, default=self._begun)
        return [self.held.pop(ticket) for ticket in sorted(self.held) if ticket < first]
