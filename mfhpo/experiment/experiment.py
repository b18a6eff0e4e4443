"""An experiment: what to do next, what is known, what the answer is, as a function of events."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import TypeAlias

from mfhpo.experiment.answer import Answer
from mfhpo.experiment.assignment import Assignment, Done, Wait
from mfhpo.experiment.events import Begun, Event, Lost, Origin
from mfhpo.experiment.kinds.runner import Runner, Wanted
from mfhpo.experiment.ledger import Result
from mfhpo.experiment.settings import Settings
from mfhpo.experiment.state import State
from mfhpo.problem import Pull

_Place: TypeAlias = tuple[int, int, str, str, str]

# How often a pull whose kind is full is passed over for what is wanted besides it. A policy that
# takes turns lets the others get so many pulls ahead.
_MOST_PASSED_OVER = 4


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
        self._events: list[tuple[_Place, Event]] = []
        self._latest: dict[tuple[str, str], Event] = {}
        self._retries: dict[str, str] = {}
        self._n_begun = 0
        self._state = self._new_state()
        self._n_taken = 0  # of the events in their order, by the state
        self._n_known = 0  # events whose warnings were given
        self._is_stale = False  # whether an event before those that were taken came late

    def _new_state(self) -> State:
        settings = self.settings
        return State(settings.runner(), settings.about_evaluations, self._retries)

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

        Events come in any order, and more than once. Of two about the same claim the one with the
        larger counter holds; one that says the same as before changes nothing.
        """
        known = self._latest.get(event.subject)
        if known is not None:
            if known.order >= event.order or replace(event, order=known.order) == known:
                return
            self._remove(known)
        elif isinstance(event, Begun):
            self._n_begun += 1
        self._latest[event.subject] = event
        place = _place_of(event)
        if not self._events or self._events[-1][0] < place:
            self._events.append((place, event))
        else:
            position = bisect_left(self._events, place, key=itemgetter(0))
            self._events.insert(position, (place, event))
            self._is_stale |= position < self._n_taken
        if isinstance(event, Begun) and event.retry_of is not None:
            self._retries[event.retry_of] = event.id
            lost = self._latest.get(("Lost", event.retry_of))
            self._is_stale |= isinstance(lost, Lost)

    def _remove(self, event: Event) -> None:
        position = bisect_left(self._events, _place_of(event), key=itemgetter(0))
        del self._events[position]
        self._is_stale |= position < self._n_taken

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
        worker: str = "",
        fixed: tuple[Mapping[str, object], int] | None = None,
    ) -> Assignment | Wait | Done:
        """Return what a worker does next; nothing changes by asking.

        Parameters
        ----------
        now
            In seconds, by the clock of `Begun.time`.
        worker
            Who asks.
        fixed
            Configuration and level that the user has enqueued: they are not changed.
        """
        state = self._current()
        if fixed is not None:
            configuration, level = fixed
            return _assigned(state, Wanted(Pull(-1, level), configuration, "given"), "enqueued")
        if state.finished:
            return Done(self.answer().reason)
        pending, passed_over = state.ledger.pending, 0
        while passed_over < _MOST_PASSED_OVER:
            wanted = state.runner.next(pending)
            if wanted is None:
                break
            if not state.ledger.is_full(wanted.pull, wanted.purpose):
                return _assigned(state, wanted, "chosen")
            pending.append(wanted.pull)
            passed_over += 1
        if not pending:
            return Done(self.answer().reason)
        return Wait(state.whom_it_waits_for(), self._seconds_to_lease(state, now))

    def settle(self, id: str) -> Begun | None:
        """Return the claim as it stands; None if an earlier one is equal, and it must move.

        Two workers that ask at the same moment may choose the same: the same configuration in the
        same block, the same new configuration, or other shortlists. Of these the earliest stands.
        Whoever has to move asks again, and writes a claim with the same id and a larger counter.
        """
        claim = self._latest.get(("Begun", id))
        assert isinstance(claim, Begun), f"id {id!r} was not begun"
        return None if id in self._current().rivals else claim

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


def _assigned(state: State, wanted: Wanted, origin: Origin) -> Assignment:
    runner, pull = state.runner, wanted.pull
    return Assignment(
        configuration=wanted.configuration,
        level=pull.fidelity,
        replicate=runner.replicate_of(wanted, state.ledger.n_begun),
        point=wanted.point,
        block=pull.block,
        limit=pull.limit,
        purpose=wanted.purpose,
        shortlist=tuple(map(runner.configurations.key, wanted.shortlist)),
        origin=origin,
    )


def _place_of(event: Event) -> _Place:
    return event.order, len(event.id), event.id, *event.subject
