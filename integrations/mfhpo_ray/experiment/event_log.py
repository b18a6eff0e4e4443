"""An experiment's events: stored where the experiment is, then applied, read after a restart."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from mfhpo import __version__
from mfhpo.experiment import Answer, Begun, Ended, Event, Experiment, Joined, Lost, event_of
from mfhpo.experiment.kinds.settings import Settings
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.journal import Journal, of_this_version
from mfhpo_ray.experiment.recommendation import RECOMMENDATION

_logger = logging.getLogger("mfhpo_ray")

Records: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The records of a journal by name: one for each trial, and one for all else."""

DRIVER = "driver"  # the only worker that tells events
SHARED = "experiment"  # the record of what is about no trial
EVENTS = "events"
LEFT = "the run that began it was left for another one"


class EventLog:
    """An experiment whose events are in a journal, one record for each trial, or nowhere yet.

    An event's id is that of its trial; what follows a colon tells claims of one trial apart. The
    digest is what must be the same after a restart, by name. The `experiment` is there to be read;
    `tell` alone changes it. What the storage would not take is written again later.
    """

    def __init__(
        self, settings: Settings, digest: Mapping[str, Any], journal: Journal | None = None
    ) -> None:
        self.journal = journal
        self.experiment = Experiment(settings)
        self._unwritten: dict[str, Mapping[str, Any]] = {}
        self._records: dict[str, dict[str, Any]] = {}  # of the journal, or that it would have
        self._last_begun: str | None = None  # by this process
        self._run: str | None = None  # whose events were taken over
        self._is_without_events = False  # though that run had some
        self._digest = json.dumps(dict(digest))
        self.tell(Joined(id=DRIVER, order=0, digest=self._digest, version=__version__))

    def tell(self, event: Event, **notes: Any) -> None:
        """Store an event with notes for its trial, as plain JSON values; then apply it."""
        is_of_trial = isinstance(event, (Begun, Ended, Lost))
        name = event.id.partition(":")[0] if is_of_trial else SHARED
        record = self._records.setdefault(name, {EVENTS: []})
        record[EVENTS].append(encode(event.to_dict()))
        record.update(notes)
        if isinstance(event, Begun):
            self._last_begun = event.id
        self._write(name, record)
        self.experiment.apply(event)

    def write_answer(self, answer: Answer) -> None:
        """Write the answer so far where `mfhpo_ray.recommendation` finds it."""
        self._write(RECOMMENDATION, {"answer": encode(answer)})

    def _write(self, name: str, record: Mapping[str, Any]) -> None:
        if self.journal is None:
            return
        self._unwritten[name] = record
        failure = None
        for waiting in list(self._unwritten):
            try:
                self.journal.write(waiting, self._unwritten[waiting])
                del self._unwritten[waiting]
            except Exception as error:  # file systems raise errors of their own
                failure = error
        if failure is not None:
            words = "%d records could not be written to the experiment's storage, and wait: %s"
            _logger.warning(words, len(self._unwritten), failure)

    def notes(self, name: str) -> Mapping[str, Any]:
        """Return the notes about a trial, or those `SHARED`, and the events; empty if none."""
        return self._records.get(name, {})

    def saved(self, elsewhere: bool = True) -> dict[str, Any]:
        """Return where the events are, as plain JSON values: in the journal, or else here."""
        place = self.journal.to_record() if self.journal is not None and elsewhere else None
        return {"run": self.run, "at": place, "records": None if place else self._records}

    @property
    def run(self) -> str | None:
        """The run whose journal has the events, or had them."""
        return self._run if self.journal is None else self.journal.run

    def connect(self, journal: Journal) -> int:
        """Write to a journal from now on, and take over what is there; return how many events.

        What is known here and not there is written. Claims that were begun in another run are lost,
        but for the last one of this process. ValueError if that run's events cannot be read.
        """
        earlier = self.run
        self.journal = journal
        self._unwritten.clear()  # another experiment's
        stored = stored_in(journal)
        n = self.take_over(stored)
        last = self._last_begun
        if earlier not in (None, journal.run):
            if self._is_without_events:
                raise ValueError(
                    f"the search was saved in the run {earlier}, whose events cannot be read any "
                    f"more; restore it where the experiment's storage is."
                )
            self.lose(set(self.experiment.open) - {last}, LEFT)
        if last in self.experiment.open and self.experiment.settle(last) is None:
            # Killed before its first snapshot, an experiment begins with the same again.
            self.lose([last], "it was made before", is_withdrawn=True)
        for name, record in self._records.items():
            if record != stored.get(name):
                self._write(name, record)
        return n

    def take_over(self, records: Records, run: str | None = None) -> int:
        """Learn the events of another log's records, of a run; return how many were not known."""
        if run is not None:
            self._run, self._is_without_events = run, not records
        with of_this_version("the journal in the experiment's storage"):
            told = {name: record[EVENTS] for name, record in records.items()}
        news: list[Event] = []
        for name, encoded in told.items():
            known = self._records.setdefault(name, {EVENTS: []})[EVENTS]
            self._records[name] = {**self._records[name], **records[name], EVENTS: known}
            fresh = [one for one in encoded if one not in known]
            known += fresh
            news += [event_of(decode(one)) for one in fresh]
        for event in news:
            if isinstance(event, Joined):
                self._check_digest(event.digest)
        if news:
            events = [*self.experiment.events, *news]
            self.experiment = Experiment.replay(self.experiment.settings, events)
        return len(news)

    def lose(self, ids: Collection[str], why: str, **how: bool) -> None:
        """Lose claims, whatever they have cost."""
        for id in sorted(ids):
            self.tell(Lost(id=id, order=self.experiment.order, why=why, **how))

    def _check_digest(self, text: str) -> None:
        mine, stored = json.loads(self._digest), json.loads(text)
        for name in {**mine, **stored}:
            if mine.get(name) != stored.get(name):
                raise ValueError(
                    f"{name}: {mine.get(name)!s:.300}, but {stored.get(name)!s:.300} in what was "
                    f"saved. Restore it with what it was begun with, or begin a new experiment, "
                    f"RunConfig(name=...)."
                )


def stored_in(journal: Journal) -> dict[str, dict[str, Any]]:
    """Return the records of a journal, but for the answer."""
    records = journal.read()
    records.pop(RECOMMENDATION, None)
    return records


def events_in(record: Mapping[str, Any]) -> list[Event]:
    """Return the events of a record, in the order in which they were told."""
    return [event_of(decode(one)) for one in record[EVENTS]]
