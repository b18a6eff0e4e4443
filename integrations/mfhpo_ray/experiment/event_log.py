"""An experiment's events: stored where the experiment is, then applied, read after a restart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from mfhpo import __version__
from mfhpo.experiment import Begun, Ended, Event, Experiment, Joined, Lost, event_of
from mfhpo.experiment.settings import Settings
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.journal import Journal, of_this_version
from mfhpo_ray.experiment.notebook import Notebook

Records: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The records of a journal by name: one for each trial, and one for all else."""

DRIVER = "driver"  # the only worker that tells events
SHARED = "experiment"  # the record of what is about no trial
EVENTS = "events"
_LEFT = "the run that began it was left for another one"
_MOST_SHOWN = 300  # characters of a digest


class EventLog:
    """An experiment whose events are in a journal, one record for each trial.

    An event's id is that of its trial; what follows a colon tells claims of one trial apart.

    Parameters
    ----------
    settings
        Of the experiment.
    digest
        What must be the same after a restart, by name: texts and numbers.
    notebook
        Of whoever tells the events.

    Attributes
    ----------
    settings
        Of the experiment.
    experiment
        Read it, and change it by `tell` alone.
    records
        What is in the journal, or would be.
    claims
        What was begun, by id.
    """

    def __init__(
        self, settings: Settings, digest: Mapping[str, Any], notebook: Notebook | None = None
    ) -> None:
        self.notebook = Notebook() if notebook is None else notebook
        self.experiment = Experiment(settings)
        self.records: dict[str, dict[str, Any]] = {}
        self.claims: dict[str, Begun] = {}
        self.settings = settings
        self._known: set[tuple[Any, ...]] = set()
        self._last_begun: str | None = None  # by this process
        self._run: str | None = None  # whose events were taken over
        self._is_without_events = False  # though that run had some
        self._digest = json.dumps(dict(digest))
        self.tell(Joined(id=DRIVER, order=0, digest=self._digest, version=__version__))

    def tell(self, event: Event, **notes: Any) -> None:
        """Store an event with notes for its trial, as plain JSON values; then apply it."""
        name = _record_of(event)
        record = self.records.setdefault(name, {EVENTS: []})
        record[EVENTS].append(encode(event.to_dict()))
        record.update(notes)
        self._note(event)
        if isinstance(event, Begun):
            self._last_begun = event.id
        self.notebook.write(name, record)
        self.experiment.apply(event)

    def notes(self, trial_id: str) -> Mapping[str, Any]:
        """Return the notes about a trial, and its events; empty if there are none."""
        return self.records.get(trial_id, {})

    @staticmethod
    def shared_notes(records: Records) -> Mapping[str, Any]:
        """Return the notes in a log's records that are about no trial."""
        return records.get(SHARED, {})

    def saved(self, elsewhere: bool = True) -> dict[str, Any]:
        """Return where the events are, as plain JSON values: in the journal, or else here."""
        journal = self.notebook.journal if elsewhere else None
        place = None if journal is None else journal.to_record()
        return {"run": self.run, "at": place, "records": None if place else self.records}

    @staticmethod
    def records_in(saved: Mapping[str, Any]) -> tuple[Records, str | None]:
        """Return the records of what was `saved`, none if they are not there, and their run."""
        records: Records = saved["records"]
        if saved["at"] is not None:
            records = Notebook.read(Journal.at(saved["at"]))
        return records, saved["run"]

    @property
    def run(self) -> str | None:
        """The run whose journal has the events, or had them."""
        journal = self.notebook.journal
        return self._run if journal is None else journal.run

    def connect(self, journal: Journal) -> int:
        """Write to a journal from now on, and take over what is there; return how many events.

        What is known here and not there is written. Claims that were begun in another run are lost,
        but for the last one of this process. ValueError if that run's events cannot be read.
        """
        earlier = self.run
        self.notebook.connect(journal)
        n = self.take_over(self.notebook.records)
        if earlier not in (None, journal.run):
            if self._is_without_events:
                raise ValueError(
                    f"the search was saved in the run {earlier}, whose events cannot be read any "
                    f"more; restore it where the experiment's storage is."
                )
            for id in sorted(set(self.experiment.open) - {self._last_begun}):
                self.tell(Lost(id=id, order=self.experiment.order, why=_LEFT))
        last = self._last_begun
        if last in self.experiment.open and self.experiment.settle(last) is None:
            # Killed before its first snapshot, an experiment begins with the same again.
            order = self.experiment.order
            self.tell(Lost(id=last, order=order, why="it was made before", is_withdrawn=True))
        for name, record in self.records.items():
            if record != self.notebook.records.get(name):
                self.notebook.write(name, record)
        return n

    def take_over(self, records: Records, run: str | None = None) -> int:
        """Learn the events of another log's records, of a run; return how many were not known.

        ValueError if they are of another version, or of an experiment with another digest.
        """
        if run is not None:
            self._run, self._is_without_events = run, not records
        with of_this_version("the journal in the experiment's storage"):
            told = {name: record[EVENTS] for name, record in records.items()}
        news: list[Event] = []
        for name, encoded in told.items():
            mine = self.records.setdefault(name, {EVENTS: []})
            self.records[name] = {**mine, **records[name], EVENTS: mine[EVENTS]}
            for one in encoded:
                event = event_of(decode(one))
                if isinstance(event, Joined):
                    self._check_digest(event.digest)
                if _subject(event) not in self._known:
                    self._note(event)
                    mine[EVENTS].append(one)
                    news.append(event)
        if news:
            events = [*self.experiment.events, *news]
            self.experiment = Experiment.replay(self.settings, events)
        return len(news)

    def _note(self, event: Event) -> None:
        self._known.add(_subject(event))
        if isinstance(event, Begun):
            self.claims[event.id] = event

    def _check_digest(self, text: str) -> None:
        mine, stored = json.loads(self._digest), json.loads(text)
        for name in {**mine, **stored}:
            if mine.get(name) != stored.get(name):
                raise ValueError(
                    f"{name}: {_cut(mine.get(name))}, but {_cut(stored.get(name))} in what was "
                    f"saved. Restore it with what it was begun with, or begin a new experiment, "
                    f"RunConfig(name=...)."
                )


def events_in(record: Mapping[str, Any]) -> list[Event]:
    """Return the events of a record, in the order in which they were told."""
    return [event_of(decode(one)) for one in record[EVENTS]]


def _record_of(event: Event) -> str:
    return event.id.partition(":")[0] if isinstance(event, (Begun, Ended, Lost)) else SHARED


def _subject(event: Event) -> tuple[Any, ...]:
    return (*event.subject, event.order)


def _cut(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
