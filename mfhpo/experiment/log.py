"""Events in their order, whatever order they come in, and which version of each holds."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from mfhpo.experiment.configurations import key_of
from mfhpo.experiment.events import Begun, Ended, Event, Found, Joined

Place: TypeAlias = tuple[int, int, str, str, str]
_Subject: TypeAlias = tuple[str, str]

# A claim that is told again keeps its place unless one of these changes, or a known level.
_OF_PLACE = ("configuration", "draw", "block", "purpose", "replicate", "shortlist", "retry_of")


class Log:
    """The events that hold: of several about the same, the latest, since it was first told.

    Attributes
    ----------
    telling
        The events that change what is known, in their order.
    n_begun
        Number of evaluations that were begun.
    """

    def __init__(self) -> None:
        self.telling: list[Event] = []
        self.n_begun = 0
        self._places: list[Place] = []
        self._versions: dict[_Subject, list[Event]] = {}
        self._holding: dict[_Subject, list[Event]] = {}
        self._latest = -1

    def add(self, event: Event) -> int:
        """Take an event, and return the first of them that has changed; -1 if all may have."""
        subject = type(event).__name__, event.id
        versions = self._versions.setdefault(subject, [])
        if any(_version(event) == _version(known) for known in versions):
            return len(self.telling)
        self._latest = max(self._latest, event.order)
        self.n_begun += isinstance(event, Begun) and not versions
        if versions:
            insort(versions, event, key=_version)
        else:
            versions.append(event)
        changed = self._renew(subject)
        if isinstance(event, Begun) and ("Ended", event.id) in self._versions:
            changed = min(changed, self._renew(("Ended", event.id)))
        return changed

    def _renew(self, subject: _Subject) -> int:
        """Take in which events about a subject hold now, and return the first that changed."""
        versions, before = self._versions[subject], self._holding.get(subject)
        groups = self._by_level(versions) if subject[0] == "Ended" else [versions]
        self._holding[subject] = holding = [_held(group) for group in groups]
        if before is None:
            return min(map(self._insert, holding))
        old, new = ({_told(event): event for event in events} for events in (before, holding))
        changed = [self._remove(event) for told, event in old.items() if told not in new]
        changed += [self._insert(event) for told, event in new.items() if told not in old]
        return min(changed, default=len(self.telling))

    def _by_level(self, versions: Sequence[Event]) -> list[list[Event]]:
        """Return the ends of a claim by level; one that names none is about the only one."""
        ends = [event for event in versions if isinstance(event, Ended)]
        claim, named = self.claim(ends[0].id), {e.level for e in ends if e.level is not None}
        levels = None if claim is None else claim.levels
        level = min(named, default=None) if levels is None else None
        if levels is not None and len(levels) == 1 and levels[0] in named:
            level = levels[0]
        groups: defaultdict[int | None, list[Event]] = defaultdict(list)
        for end in ends:
            names_none = end.level is None and level is not None
            end = replace(end, level=level) if names_none else end
            groups[end.level].append(end)
        return list(groups.values())

    @property
    def order(self) -> int:
        """The counter of the next event that is written here."""
        return 1 + self._latest

    @property
    def events(self) -> list[Event]:
        """All events that hold, in their order, and the last words about those told again.

        Where some ends of a claim name a level and others do not, it is all that was told: which
        ones are about the same depends on the claim.
        """
        events: dict[Place, Event] = {}
        for subject, versions in self._versions.items():
            named = {event.level is None for event in versions if isinstance(event, Ended)}
            told = versions if len(named) > 1 else [versions[-1], *self._holding[subject]]
            events |= {_place_of(event): event for event in told}
        return [events[place] for place in sorted(events)]

    @property
    def last(self) -> Place | None:
        """The place of the last event that changes what is known."""
        return self._places[-1] if self._places else None

    def up_to(self, place: Place | None) -> int:
        """Return how many of these events have places up to this one."""
        return 0 if place is None else bisect_right(self._places, place)

    def claim(self, id: str) -> Begun | None:
        """Return the claim with an id as it stands, or None."""
        for claim in self._holding.get(("Begun", id), ()):
            if isinstance(claim, Begun):
                return claim
        return None

    @property
    def levels(self) -> tuple[object, ...] | None:
        """The levels that were found first, or None."""
        found = (event.levels for event in self.telling if isinstance(event, Found))
        return next(filter(None, found), None)

    def _insert(self, event: Event) -> int:
        if isinstance(event, Joined):  # for readers only
            return len(self.telling)
        place = _place_of(event)
        position = len(self._places)
        if position and place < self._places[-1]:
            position = bisect_left(self._places, place)
        self._places.insert(position, place)
        self.telling.insert(position, event)
        return _first_changed(event, position)

    def _remove(self, event: Event) -> int:
        if isinstance(event, Joined):
            return len(self.telling)
        position = bisect_left(self._places, _place_of(event))
        del self._places[position], self.telling[position]
        return _first_changed(event, position)


def _first_changed(event: Event, position: int) -> int:
    """Return a position, or -1 for levels, which are known from the beginning."""
    return -1 if isinstance(event, Found) and event.levels else position


def _place_of(event: Event) -> Place:
    return event.order, len(event.id), event.id, *event.subject


def _version(event: Event) -> tuple[int, str]:
    return event.order, _content(event)


def _told(event: Event) -> tuple[int, str]:
    """Return what experiments are told: when an evaluation began, and where, changes nothing."""
    return event.order, _content(event, "time", "worker")


def _content(event: Event, *without: str) -> str:
    """Return a text that only events share which say the same."""
    names = vars(event).keys() - {"order", *without}
    return key_of({name: vars(event)[name] for name in names})


def _held(versions: Sequence[Event]) -> Event:
    """Return which of the versions of an event holds: the latest, from when it was first told."""
    *earlier, latest = versions
    later, order = latest, latest.order
    for version in reversed(earlier):
        if not _keeps_place(version, later):
            break
        later, order = version, version.order
    return latest if order == latest.order else replace(latest, order=order)


def _keeps_place(version: Event, later: Event) -> bool:
    if not (isinstance(version, Begun) and isinstance(later, Begun)):
        return _content(version) == _content(later)
    is_of_level = version.levels is None or version.levels == later.levels
    return is_of_level and _key_of_place(version) == _key_of_place(later)


def _key_of_place(begun: Begun) -> str:
    about = {name: vars(begun)[name] for name in _OF_PLACE}
    if begun.draw is not None:
        about["configuration"] = {}  # more and more of it becomes known
    return key_of(about)
