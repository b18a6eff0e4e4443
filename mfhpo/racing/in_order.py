"""Observations in the order in which they were begun, whatever the order in which they end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from mfhpo._validation import check_count

__all__ = ["InOrder"]

ItemT = TypeVar("ItemT")


class InOrder(Generic[ItemT]):
    """Hands on what was begun first before what was begun later.

    A confidence radius for n pulls is about the first n values of an arm as they were drawn. With
    several workers, values arrive in another order: quick ones first, slow ones late, or never if
    the race ends before. Where the time that a pull takes goes with its value, the first n to
    arrive are no sample of the arm, their mean is biased, and a certificate that rests on it may be
    wrong far more often than it says. In the order of their beginnings they are a sample again.

    Parameters
    ----------
    patience
        What is begun is not waited for any longer once so many that were begun later have ended,
        so that one that hangs does not hold up all others; it is handed on when it ends. 1: what
        ends is handed on at once.

    Attributes
    ----------
    begun
        How many were begun; the next ticket.
    patience
        As given; it may be raised at any time.

    Raises
    ------
    TypeError, ValueError
        If `patience` is no whole number of at least 1.

    Notes
    -----
    What is given up (`drop`) is left out of the sequence. That is harmless if it has nothing to do
    with its value; giving up what is slow is not.

    Examples
    --------
    >>> values = InOrder()
    >>> slow, quick = values.begin(), values.begin()
    >>> values.end(quick, 0.9)
    []
    >>> values.end(slow, 0.1)
    [0.1, 0.9]
    """

    def __init__(self, patience: int = 10) -> None:
        self.patience = check_count("patience", patience, 1)
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
        """Take what came of a ticket, and return all items whose turn it is now, in order.

        Parameters
        ----------
        ticket
            The ticket. One that is not awaited (any more) holds back nothing, and is not held.
        item
            What came of it.
        """
        if ticket not in self._awaited:
            return [item]
        self._awaited.remove(ticket)
        self._held[ticket] = item
        overtaken = [
            early
            for early in self._awaited
            if sum(late > early for late in self._held) >= self.patience
        ]
        self._awaited.difference_update(overtaken)
        return self._release()

    def drop(self, ticket: int) -> list[ItemT]:
        """Give up a ticket, and return all items whose turn it is now, in order."""
        self._awaited.discard(ticket)
        return self._release()

    def load(self, begun: int, awaited: Iterable[int], held: Iterable[tuple[int, ItemT]]) -> None:
        """Go on from saved values of `begun`, `awaited` and `held`."""
        self.begun = begun
        self._awaited = set(awaited)
        self._held = dict(held)

    def _release(self) -> list[ItemT]:
        first = min(self._awaited, default=self.begun)
        return [self._held.pop(ticket) for ticket in sorted(self._held) if ticket < first]
