"""An experiment: what to do next, what is known, what the answer is, as a function of events."""

from __future__ import annotations

import warnings
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TypeAlias

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.assignment import Assignment, Done, Wait
from mfhpo.experiment.configurations import key_of
from mfhpo.experiment.events import Answered, Begun, Event, Found, Joined
from mfhpo.experiment.kinds.runner import Runner
from mfhpo.experiment.ledger import Result
from mfhpo.experiment.settings import Settings, with_levels
from mfhpo.experiment.state import State

_Place: TypeAlias = tuple[int, int, str, str, str]


class Experiment:
    """One experiment, told by events.

    All that is known is a function of the events, in an order that they carry themselves. Whatever
    order they come in, whoever has read the same events knows the same, and a restart is a replay.

    Parameters
    ----------
    settings
        What kind of experiment it is, with all of its options.

    Examples
    --------
    >>> import numpy as np
    >>> from mfhpo.experiment import Done, Ended, RaceSettings
    >>> rng = np.random.default_rng(0)
    >>> settings = RaceSettings.of([{"lr": 0.1}, {"lr": 1.0}], sigma=0.1, epsilon=0.05, seed=0)
    >>> experiment = Experiment(settings)
    >>> while not isinstance(work := experiment.next(), Done):
    ...     begun = work.begun(str(experiment.n_begun), experiment.order)
    ...     experiment.apply(begun)
    ...     value = work.configuration["lr"] + rng.normal(0.0, 0.1)
    ...     experiment.apply(Ended(id=begun.id, order=experiment.order, value=value))
    >>> experiment.answer().params, experiment.answer().certified
    ({'lr': 1.0}, True)
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._events: list[tuple[_Place, Event]] = []  # those that hold, in their order
        self._versions: dict[tuple[str, str], list[Event]] = {}
        self._retries: defaultdict[str, set[str]] = defaultdict(set)
        self._n_begun = 0
        self._state = self._new_state()
        self._n_taken = 0  # of the events in their order, by the state
        self._n_known = 0  # events whose warnings were given
        self._is_stale = False  # whether an event before those that were taken came late

    def _new_state(self) -> State:
        found = (event for _, event in self._events if isinstance(event, Found) and event.levels)
        first = next(found, None)
        levels = None if first is None else first.levels
        settings = self.settings if levels is None else with_levels(self.settings, levels)
        return State(settings.runner(), settings, self._retries)

    @classmethod
    def replay(cls, settings: Settings, events: Iterable[Event]) -> Experiment:
        """Return the experiment in which these events happened; no warning is repeated."""
        experiment = cls(settings)
        for event in events:
            experiment.apply(event)
        experiment._n_known = len(experiment._events)
        return experiment

    def apply(self, event: Event) -> None:
        """Take an event; nothing else changes the experiment.

        Events come in any order, and more than once. Of several about the same claim the one with
        the largest counter holds; it has its place since it was first told without a change.
        """
        versions = self._versions.setdefault(event.subject, [])
        if not versions:
            self._n_begun += isinstance(event, Begun)
            versions.append(event)
            self._insert(event)
            return
        if any(_version(event) == _version(known) for known in versions):
            return
        held = _holding(versions)
        insort(versions, event, key=_version)
        holding = _holding(versions)
        if holding is not held:
            self._remove(held)
            self._insert(holding)

    def _insert(self, event: Event) -> None:
        place = _place_of(event)
        if not self._events or self._events[-1][0] < place:
            self._events.append((place, event))
        else:
            position = bisect_left(self._events, place, key=itemgetter(0))
            self._events.insert(position, (place, event))
            self._note_change(event, position, 1)
        if isinstance(event, Begun) and event.retry_of is not None:
            self._retries[event.retry_of].add(event.id)
        self._note_foresight(event)

    def _remove(self, event: Event) -> None:
        position = bisect_left(self._events, _place_of(event), key=itemgetter(0))
        del self._events[position]
        self._note_change(event, position, -1)
        if isinstance(event, Begun) and event.retry_of is not None:
            self._retries[event.retry_of].discard(event.id)
        self._note_foresight(event)

    def _note_foresight(self, event: Event) -> None:
        """Note that the past has changed by what is known beforehand: retries and levels."""
        if isinstance(event, Begun):
            self._is_stale |= ("Begun", event.retry_of) in self._versions
        elif isinstance(event, Found):
            self._is_stale |= event.levels is not None

    def _note_change(self, event: Event, position: int, by: int) -> None:
        """Note that the past has changed; what only readers look at leaves the state as it was."""
        self._n_known += by * (position < self._n_known)
        if position >= self._n_taken:
            return
        if isinstance(event, (Joined, Answered)):
            self._n_taken += by
        else:
            self._is_stale = True

    @property
    def order(self) -> int:
        """The counter of the next event that is written here."""
        return 1 + self._events[-1][0][0] if self._events else 0

    @property
    def events(self) -> list[Event]:
        """All events that hold, in their order."""
        return [event for _, event in self._events]

    @property
    def n_begun(self) -> int:
        """Number of evaluations that were begun."""
        return self._n_begun

    def next(
        self,
        now: float = 0.0,
        fixed: tuple[Mapping[str, object], int] | None = None,
        moving: str | None = None,
    ) -> Assignment | Wait | Done:
        """Return what a worker does next; nothing changes by asking.

        Parameters
        ----------
        now
            In seconds, by the clock of `Begun.time`.
        fixed
            Configuration and level that the user has enqueued: they are not changed.
        moving
            The claim that has to move (see `settle`), and is not waited for.

        Raises
        ------
        ValueError
            If many evaluations in a row were of something else than was claimed.
        """
        state = self._current()
        state.check_evaluations()
        if fixed is not None:
            return state.enqueued(*fixed)
        if state.finished:
            return Done(self.answer().reason)
        assignment = state.next(moving)
        if assignment is not None:
            return assignment
        if not state.ledger.pending(moving):
            return Done(self.answer().reason)
        return Wait(state.whom_it_waits_for(), self._seconds_to_lease(state, now))

    def settle(self, id: str) -> Begun | None:
        """Return the claim as it stands; None if an earlier one is equal, and it must move.

        Two workers that ask at the same moment may choose the same: the same configuration in the
        same block, the same new configuration, or other shortlists. Of these the earliest stands.
        Whoever has to move asks again, and writes a claim with the same id and a larger counter.
        """
        return None if id in self._current().rivals else self._claim(id)

    def level_of(self, id: str) -> int:
        """Return the level for a claim that was made before levels were known.

        Whoever asks writes the claim again with it, or names it in its end.
        """
        return self._current().level_of(self._claim(id))

    def _claim(self, id: str) -> Begun:
        versions = self._versions.get(("Begun", id))
        if versions is None:
            raise ValueError(f"id {id!r} names no evaluation that was begun.")
        claim = _holding(versions)
        assert isinstance(claim, Begun)
        return claim

    def overdue(self, now: float) -> list[str]:
        """Return the claims that have lasted longer than their lease.

        Whoever is sure that their workers are dead, or accepts that as a condition, applies `Lost`.
        """
        lease = self.settings.lease_seconds
        if lease is None:
            return []
        claims = self._current().ledger.open
        return [id for id, claim in claims.items() if now - claim.begun.time > lease]

    def answer(self) -> Answer:
        """Return the best answer so far, with its conditions, and whom it waits for."""
        return self._current().answer()

    def history(self) -> list[Result]:
        """Return the results that were learned, in their order."""
        return list(self._current().history)

    @property
    def runner(self) -> Runner:
        """What knows this kind of experiment, for progress and pictures; only to be read."""
        return self._current().runner

    def _seconds_to_lease(self, state: State, now: float) -> float | None:
        lease = self.settings.lease_seconds
        if lease is None or not state.ledger.open:
            return None
        first = min(claim.begun.time for claim in state.ledger.open.values())
        return max(0.0, first + lease - now)

    def _current(self) -> State:
        """Return the state after all events, made anew if the past has changed."""
        if self._is_stale:
            self._state, self._n_taken, self._is_stale = self._new_state(), 0, False
        if self._n_taken < self._n_known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._take_until(min(self._n_known, len(self._events)))
        self._take_until(len(self._events))
        self._n_known = len(self._events)
        return self._state

    def _take_until(self, end: int) -> None:
        while self._n_taken < end:
            self._n_taken += 1
            self._state.take(self._events[self._n_taken - 1][1])


def _place_of(event: Event) -> _Place:
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
