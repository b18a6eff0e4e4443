"""Events in their order, whatever order they come in, and which version of each holds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from mfhpo.experiment.configurations import key_of
from mfhpo.experiment.events import Answered, Begun, Event, Found, Joined

Place: TypeAlias = tuple[int, int, str, str, str]


class Log:
    """The events that hold: of several about the same, the latest, since it was first told.

    Attributes
    ----------
    telling
        The events that change what is known, in their order.
    retries
        By claim, those that take its place.
    n_begun
        Number of evaluations that were begun.
    """

    def __init__(self) -> None:
        self.telling: list[Event] = []
        self.retries: defaultdict[str, set[str]] = defaultdict(set)
        self.n_begun = 0
        self._places: list[Place] = []
        self._for_readers: list[Event] = []
        self._versions: dict[tuple[str, str], list[Event]] = {}
        self._latest = -1

    def add(self, event: Event) -> int:
        """Take an event, and return the first of them that has changed; -1 if all may have."""
        versions = self._versions.setdefault(event.subject, [])
        if not versions:
            self.n_begun += isinstance(event, Begun)
            versions.append(event)
            return self._insert(event)
        if any(_version(event) == _version(known) for known in versions):
            return len(self.telling)
        held = _holding(versions)
        insort(versions, event, key=_version)
        holding = _holding(versions)
        if holding is held:
            return len(self.telling)
        return min(self._remove(held), self._insert(holding))

    @property
    def order(self) -> int:
        """The counter of the next event that is written here."""
        return 1 + self._latest

    @property
    def events(self) -> list[Event]:
        """All events that hold, in their order."""
        return sorted([*self.telling, *self._for_readers], key=_place_of)

    @property
    def last(self) -> Place | None:
        """The place of the last event that changes what is known."""
        return self._places[-1] if self._places else None

    def up_to(self, place: Place | None) -> int:
        """Return how many of these events have places up to this one."""
        return 0 if place is None else bisect_right(self._places, place)

    def claim(self, id: str) -> Begun | None:
        """Return the claim with an id as it stands, or None."""
        versions = self._versions.get(("Begun", id))
        claim = None if versions is None else _holding(versions)
        return claim if isinstance(claim, Begun) else None

    @property
    def levels(self) -> tuple[object, ...] | None:
        """The levels that were found first, or None."""
        found = (event.levels for event in self.telling if isinstance(event, Found))
        return next(filter(None, found), None)

    def _insert(self, event: Event) -> int:
        self._latest = max(self._latest, event.order)
        if isinstance(event, (Joined, Answered)):
            self._for_readers.append(event)
            return len(self.telling)
        place = _place_of(event)
        position = len(self._places)
        if position and place < self._places[-1]:
            position = bisect_left(self._places, place)
        self._places.insert(position, place)
        self.telling.insert(position, event)
        if isinstance(event, Begun) and event.retry_of is not None:
            self.retries[event.retry_of].add(event.id)
        return self._first_changed(event, position)

    def _remove(self, event: Event) -> int:
        if isinstance(event, (Joined, Answered)):
            self._for_readers.remove(event)
            return len(self.telling)
        position = bisect_left(self._places, _place_of(event))
        del self._places[position], self.telling[position]
        if isinstance(event, Begun) and event.retry_of is not None:
            self.retries[event.retry_of].discard(event.id)
        return self._first_changed(event, position)

    def _first_changed(self, event: Event, position: int) -> int:
        """Return a position, or -1 where an event is known from the beginning: retries, levels."""
        is_retry = isinstance(event, Begun) and ("Begun", event.retry_of) in self._versions
        return -1 if is_retry or (isinstance(event, Found) and event.levels) else position


def _place_of(event: Event) -> Place:
    return event.order, len(event.id), event.id, *event.subject


def _version(event: Event) -> tuple[int, str]:
    return event.order, _content(event)


def _content(event: Event) -> str:
    """Return a text that only events share which say the same."""
    return key_of({name: value for name, value in vars(event).items() if name != "order"})


def _holding(versions: Sequence[Event]) -> Event:
    """Return which of the versions of an event holds: the latest, from when it was first told."""
    *earlier, held = versions
    for version in reversed(earlier):
        if _content(version) != _content(held):
            break
        held = version
    return held
