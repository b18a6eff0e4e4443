"""Events in their order, whatever order they come in, and which version of each holds."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from mfhpo.experiment.configurations import key_of
from mfhpo.experiment.events import Begun, Concluded, Ended, Event, Found, Joined

Place: TypeAlias = tuple[int, int, str, str, str]
_Subject: TypeAlias = tuple[str, str]

_FOR_READERS = (Joined, Concluded)

# A claim that is told again keeps its place unless one of these changes, or a known level.
_OF_PLACE = ("configuration", "draw", "block", "purpose", "replicate", "shortlist", "retry_of")


class Log:
    """The events that hold: of several about the same, the latest, since it was first told."""

    def __init__(self) -> None:
        self.telling: list[Event] = []  # those that change what is known, in their order
        self.order = 0  # the counter of the next event that is written here
        self.n_begun = 0  # evaluations
        self.concluded = -1  # the counter of the last answer that was given
        self.places: list[Place] = []  # where these are
        self._versions: dict[_Subject, list[Event]] = {}
        self._holding: dict[_Subject, list[Event]] = {}
        self._open_until: dict[str, int] = {}  # answers that claims were open at, by counter

    def add(self, event: Event) -> int:
        """Take an event, and return the first of them that has changed; -1 if all may have."""
        subject = type(event).__name__, event.id
        versions = self._versions.setdefault(subject, [])
        if versions and _version(event) in map(_version, versions):
            return len(self.telling)
        self.order = max(self.order, event.order + 1)
        self.n_begun += isinstance(event, Begun) and not versions
        versions.append(event)
        if len(versions) > 1:
            versions.sort(key=_version)
        changed = self._renew(subject)
        if isinstance(event, Concluded):
            changed = min(changed, self._put_behind(event))
        if isinstance(event, Begun) and ("Ended", event.id) in self._versions:
            changed = min(changed, self._renew(("Ended", event.id)))
        return changed

    def _put_behind(self, concluded: Concluded) -> int:
        """Put the ends of claims that were open behind an answer; return the first change."""
        self.concluded = max(self.concluded, concluded.order)
        until = self._open_until
        late = [id for id in concluded.open if until.get(id, -1) < concluded.order]
        subjects = [(kind, id) for id in late for kind in ("Ended", "Lost")]
        ends = [end for subject in subjects for end in self._holding.get(subject, ())]
        changed = [self._put(end, takes_out=True) for end in ends]
        until |= dict.fromkeys(late, concluded.order)
        changed += [self._put(end) for end in ends]
        return min(changed, default=len(self.telling))

    def _renew(self, subject: _Subject) -> int:
        """Take in which events about a subject hold now, and return the first that changed."""
        versions, before = self._versions[subject], self._holding.get(subject, [])
        holding = versions[:]
        if len(versions) > 1:
            groups = self._by_level(versions) if subject[0] == "Ended" else [versions]
            holding = [_held(group) for group in groups]
        self._holding[subject] = holding
        if not before:
            return min(map(self._put, holding))
        old, new = ({_version(event): event for event in events} for events in (before, holding))
        changed = [self._put(old[each], takes_out=True) for each in old if each not in new]
        changed += [self._put(new[each]) for each in new if each not in old]
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
            end = replace(end, level=level) if end.level is None and level is not None else end
            groups[end.level].append(end)
        return list(groups.values())

    @property
    def events(self) -> list[Event]:
        """All events that hold, in their order, and the last words about those told again."""
        events: dict[Place, Event] = {}
        for subject, versions in self._versions.items():
            # Which ends are about the same level depends on the claim, where only some name one.
            named = {event.level is None for event in versions if isinstance(event, Ended)}
            told = versions if len(named) > 1 else [versions[-1], *self._holding[subject]]
            events |= {self._place_of(event): event for event in told}
        return [events[place] for place in sorted(events)]

    def up_to(self, place: Place | None) -> int:
        """Return how many of these events have places up to this one."""
        return 0 if place is None else bisect_right(self.places, place)

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

    def _put(self, event: Event, takes_out: bool = False) -> int:
        """Put an event in its place, or take it out; return the first change (see `add`)."""
        if isinstance(event, _FOR_READERS):
            return len(self.telling)
        place = self._place_of(event)
        position = bisect_left(self.places, place)
        if takes_out:
            del self.places[position], self.telling[position]
        else:
            self.places.insert(position, place)
            self.telling.insert(position, event)
        return -1 if isinstance(event, Found) and event.levels else position

    def _place_of(self, event: Event) -> Place:
        order = event.order
        if not isinstance(event, Begun):
            order = max(order, self._open_until.get(event.id, -1))
        level = event.level if isinstance(event, Ended) else None
        return order, len(event.id), event.id, type(event).__name__, str(level)


def _version(event: Event) -> tuple[int, str]:
    return event.order, _content(event)


def _content(event: Event) -> str:
    """Return a text that only events share which say the same."""
    return key_of({name: value for name, value in vars(event).items() if name != "order"})


def _held(versions: Sequence[Event]) -> Event:
    """Return which of the versions of an event holds: the latest, from when it was first told."""
    *earlier, latest = versions
    first = latest
    for version in reversed(earlier):
        if not _keeps_place(version, first):
            break
        first = version
    return latest if first is latest else replace(latest, order=first.order)


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
