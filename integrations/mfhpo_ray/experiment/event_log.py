"""An experiment's events: stored where the experiment is, then applied, read after a restart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mfhpo import __version__
from mfhpo.experiment import Ended, Event, Experiment, Joined, Lost, event_of
from mfhpo.experiment.events import Begun
from mfhpo.experiment.settings import Settings
from mfhpo_ray.experiment.encoding import decode, encode
from mfhpo_ray.experiment.journal import Journal, of_this_version
from mfhpo_ray.experiment.notebook import Notebook

_DRIVER = "driver"  # the only worker that tells events
_SHARED = "experiment"  # the record of what is about no trial
_EVENTS = "events"
_LEFT = "the run that began it was left for another one"


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
    experiment
        Read it, and change it by `tell` alone.
    """

    def __init__(
        self, settings: Settings, digest: Mapping[str, Any], notebook: Notebook | None = None
    ) -> None:
        self.notebook = Notebook() if notebook is None else notebook
        self.experiment = Experiment(settings)
        self._settings = settings
        self._records: dict[str, dict[str, Any]] = {}
        self._known: set[tuple[Any, ...]] = set()
        self._begun_here: set[str] = set()
        self._run: str | None = None  # whose events are known
        self._digest = json.dumps(dict(digest))
        self.tell(Joined(id=_DRIVER, order=0, digest=self._digest, version=__version__))

    def tell(self, event: Event, **notes: Any) -> None:
        """Store an event with notes for its trial, as plain JSON values; then apply it."""
        if isinstance(event, Begun):
            self._begun_here.add(event.id)
        name = _record_of(event)
        record = self._records.setdefault(name, {_EVENTS: []})
        record[_EVENTS].append(encode(event.to_dict()))
        record.update(notes)
        self._known.add(_subject(event))
        self.notebook.write(name, record)
        self.experiment.apply(event)

    def notes(self, trial_id: str) -> Mapping[str, Any]:
        """Return the notes about a trial, and its events; empty if there are none."""
        return self._records.get(trial_id, {})

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        """All that is known, to be taken over by another log where there is no journal."""
        return self._records

    def connect(self, journal: Journal) -> int:
        """Write to a journal from now on, and take over what is there; return how many events.

        What is known here and not there is written. Claims that were begun in another run, whose
        events were taken over, are lost.
        """
        self.notebook.connect(journal)
        n = self.take_over(self.notebook.records)
        if self._run is not None and journal.run != self._run:
            for id in set(self.experiment.open) - self._begun_here:
                self.tell(Lost(id=id, order=self.experiment.order, why=_LEFT))
        self._run = journal.run
        for name, record in self._records.items():
            if record != self.notebook.records.get(name):
                self.notebook.write(name, record)
        return n

    def take_over(self, records: Mapping[str, Mapping[str, Any]], run: str | None = None) -> int:
        """Learn the events of another log's records, of a run; return how many were not known.

        ValueError if they are of another version, or of an experiment with another digest.
        """
        self._run = self._run or run
        news: list[Event] = []
        with of_this_version("the journal in the experiment's storage"):
            told = {name: record[_EVENTS] for name, record in records.items()}
        for name, encoded in told.items():
            mine = self._records.setdefault(name, {_EVENTS: []})
            self._records[name] = {**mine, **records[name], _EVENTS: mine[_EVENTS]}
            for one in encoded:
                event = event_of(decode(one))
                if isinstance(event, Joined):
                    self._check_digest(event.digest)
                if _subject(event) not in self._known:
                    self._known.add(_subject(event))
                    mine[_EVENTS].append(one)
                    news.append(event)
        if news:
            events = [*self.experiment.events, *news]
            self.experiment = Experiment.replay(self._settings, events)
        return len(news)

    def _check_digest(self, text: str) -> None:
        mine, stored = json.loads(self._digest), json.loads(text)
        for name in {**mine, **stored}:
            if mine.get(name) != stored.get(name):
                raise ValueError(
                    f"{name}: {mine.get(name)}, but {stored.get(name)} in the experiment's "
                    f"storage. Restore it with what it was begun with, or begin a new experiment, "
                    f"RunConfig(name=...)."
                )


def _record_of(event: Event) -> str:
    return event.id.partition(":")[0] if isinstance(event, (Begun, Ended, Lost)) else _SHARED


def _subject(event: Event) -> tuple[Any, ...]:
    return (*event.subject, event.order)
