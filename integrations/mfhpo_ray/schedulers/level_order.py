"""The order in which runs were sent to the levels of their arms, and whose value counts next."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from mfhpo import Observation, Pull
from mfhpo.racing.in_order import InOrder, most_held
from mfhpo_ray.experiment.open_pulls import WaitedFor
from mfhpo_ray.schedulers.runs import Run


class Arrived(NamedTuple):
    """A run, or None if Ray forgot it, that came to a level or failed on its way there."""

    run: Run | None
    pull: Pull
    observation: Observation


class Place(NamedTuple):
    """Where an arrival stands among those of its arm and level, as it is written in the journal."""

    # How many runs were sent there before, and which of these were still on their way: their
    # tickets, by the names of their trials.
    ticket: int
    awaited: Mapping[str, int]


class LevelOrder:
    """Hands on what runs of an arm have shown at a level in the order in which they were sent.

    Each run on its way holds one ticket, and gives it back by `arrive` or `drop`.
    """

    def __init__(self) -> None:
        self._orders: defaultdict[Pull, InOrder[Arrived]] = defaultdict(InOrder)
        self._on_their_way: defaultdict[Pull, dict[int, Run]] = defaultdict(dict)
        # The same by the names of trials, so that no search goes through all arms.
        self._tickets: dict[str, dict[Pull, int]] = {}
        self._n_held: Counter[Pull] = Counter()
        self._to_be_sent_again: list[Run] = []

    @property
    def held(self) -> list[Pull]:
        """Pulls that have arrived and wait for earlier runs."""
        return list(self._n_held.elements())

    @property
    def held_cost(self) -> float:
        """Cost of these pulls."""
        held = (arrived for pull in self._n_held for _, arrived in self._orders[pull].held)
        return sum(arrived.observation.cost or 0.0 for arrived in held)

    @property
    def waited_for(self) -> list[WaitedFor]:
        """First runs, by arm and level, that hold back others which have arrived."""
        found = []
        for pull, n_held in self._n_held.items():
            run = self._on_their_way[pull][self._orders[pull].awaited[0]]
            found.append(WaitedFor(run.trial.trial_id, pull, n_held))
        return found

    def is_full(self, pull: Pull, n_workers: int) -> bool:
        """Return whether too many wait for an earlier run to send another to this level."""
        return self._n_held[pull] >= most_held(n_workers)

    def send(self, run: Run, level: int) -> None:
        """Note that a run is sent to a level."""
        pull = Pull(run.arm, level)
        self._hand_out(run, pull, self._orders[pull].begin())

    def place(self, run: Run, pull: Pull) -> Place:
        """Return the place of a run that has come to a level; it may not have been sent there."""
        if pull not in self._tickets.get(run.trial.trial_id, {}):
            self.send(run, pull.fidelity)
        ticket = self._tickets[run.trial.trial_id][pull]
        on_their_way = self._on_their_way[pull].items()
        earlier = {run.trial.trial_id: early for early, run in on_their_way if early < ticket}
        return Place(ticket, earlier)

    def arrive(self, place: Place, arrived: Arrived) -> list[Arrived]:
        """Note what came of a run, and return all whose turn it is now, in order."""
        if arrived.run is not None:
            self._take_back(arrived.run, arrived.pull)
        self._hold(arrived)
        return self._release(self._orders[arrived.pull].end(place.ticket, arrived))

    def drop(self, run: Run) -> list[Arrived]:
        """Give up the tickets of a run that will not arrive, and return all whose turn it is."""
        released = []
        for pull in list(self._tickets.get(run.trial.trial_id, ())):
            released += self._release(self._orders[pull].drop(self._take_back(run, pull)))
        return released

    def cut(self, arm: int) -> list[Run]:
        """Give up all of an arm that was not handed on, and return the runs that had arrived.

        Without those on their way, which are the slow ones, these would not be like the arm.
        """
        runs = []
        for pull, order in self._orders.items():
            if pull.arm != arm:
                continue
            for run in list(self._on_their_way[pull].values()):
                self._take_back(run, pull)
            runs += [arrived.run for _, arrived in order.held if arrived.run is not None]
            order.load(order.begun, (), ())
            self._n_held.pop(pull, None)
        return runs

    # After a restart.

    def restore(
        self, places: Sequence[tuple[int, Place, Arrived]], runs: Mapping[str, Run]
    ) -> Iterator[Arrived]:
        """Take in what had arrived, numbered and placed; yield what was handed on, in that order.

        Those of `runs`, by the names of their trials, may still arrive, and keep their tickets.
        """
        by_pull: defaultdict[Pull, list[tuple[int, Place, Arrived]]] = defaultdict(list)
        for number, place, arrived in sorted(places, key=lambda entry: entry[1].ticket):
            by_pull[arrived.pull].append((number, place, arrived))
        released: list[tuple[int, int, Arrived]] = []
        for pull, entries in by_pull.items():
            there = {place.ticket for _, place, _ in entries}
            waiting = {
                ticket: runs[name]
                for _, place, _ in entries
                for name, ticket in place.awaited.items()
                if ticket not in there and name in runs and runs[name].reached < pull.fidelity
            }
            first = min(waiting, default=sys.maxsize)
            held = [
                (place.ticket, arrived) for _, place, arrived in entries if place.ticket > first
            ]
            self._orders[pull].load(1 + max(there), waiting, held)
            for ticket, run in waiting.items():
                self._hand_out(run, pull, ticket)
                if run.granted is None:
                    self._to_be_sent_again.append(run)
            for _, arrived in held:
                self._hold(arrived)
            latest = -1
            for number, place, arrived in entries:
                if place.ticket < first:
                    latest = max(latest, number)
                    released.append((latest, place.ticket, arrived))
        for _, _, arrived in sorted(released, key=lambda entry: entry[:2]):
            yield arrived

    def has_ticket(self, run: Run) -> bool:
        """Return whether a run is known to be on its way."""
        return run.trial.trial_id in self._tickets

    def next_to_be_sent_again(self) -> tuple[Run, int] | None:
        """Return a run that was on its way when the driver died, and its level; None for none."""
        self._to_be_sent_again = [run for run in self._to_be_sent_again if self.has_ticket(run)]
        for run in self._to_be_sent_again:
            if run.waits:
                self._to_be_sent_again.remove(run)
                return run, min(pull.fidelity for pull in self._tickets[run.trial.trial_id])
        return None

    def _hand_out(self, run: Run, pull: Pull, ticket: int) -> None:
        self._on_their_way[pull][ticket] = run
        self._tickets.setdefault(run.trial.trial_id, {})[pull] = ticket

    def _take_back(self, run: Run, pull: Pull) -> int:
        tickets = self._tickets[run.trial.trial_id]
        ticket = tickets.pop(pull)
        if not tickets:
            del self._tickets[run.trial.trial_id]
        del self._on_their_way[pull][ticket]
        return ticket

    def _hold(self, arrived: Arrived) -> None:
        self._n_held[arrived.pull] += 1
        if arrived.run is not None:
            arrived.run.held += 1

    def _release(self, released: list[Arrived]) -> list[Arrived]:
        for arrived in released:
            self._n_held[arrived.pull] -= 1
            if not self._n_held[arrived.pull]:
                del self._n_held[arrived.pull]
            if arrived.run is not None:
                arrived.run.held -= 1
        return released
