"""A clock that is invented: what was begun ends in the order of its duration."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

__all__ = ["VirtualClock"]

ItemT = TypeVar("ItemT")


class VirtualClock(Generic[ItemT]):
    """Evaluations under way.

    Examples
    --------
    >>> clock = VirtualClock()
    >>> clock.begin("slow", 9.0)
    >>> clock.begin("quick", 1.0)
    >>> clock.next_end(), len(clock)
    ('quick', 1)
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._begun = 0
        self._ends: list[tuple[float, int, ItemT]] = []

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def items(self) -> list[ItemT]:
        """What is under way."""
        return [item for _, _, item in self._ends]

    def begin(self, item: ItemT, seconds: float) -> None:
        """Begin something now."""
        heapq.heappush(self._ends, (self._now + seconds, self._begun, item))
        self._begun += 1

    def next_end(self) -> ItemT:
        """Wait for the next one to end."""
        self._now, _, item = heapq.heappop(self._ends)
        return item
