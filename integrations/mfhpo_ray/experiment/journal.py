"""The journal of an experiment, in its storage, and the log that writes its events there."""

from __future__ import annotations

import json
import logging
import math
import posixpath
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import pyarrow.fs
from ray.tune.experiment import Trial

from mfhpo import __version__
from mfhpo.experiment import Answer, Begun, Ended, Event, Experiment, Joined, Lost, event_of
from mfhpo.experiment.kinds.runner import Settings
from mfhpo_ray.experiment.configurations import decode, encode

_logger = logging.getLogger("mfhpo_ray")

Records: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The records of a journal by name: one for each trial, and one for all else."""

DRIVER = "driver"  # the only worker that tells events
SHARED = "experiment"  # the record of what is about no trial
EVENTS = "events"
LEFT = "the run that began it was left for another one"
RECOMMENDATION = "recommendation"  # the record that has the answer

_TRIAL = "trial"  # what a line of the journal is about
_EVENTS = "events"  # the file of these lines
_APPENDING = ("local", "mock")  # file systems; stores of objects cannot append
_FOLDER = "mfhpo"
# Ray tells nobody that it stops: the answer so far is noted often, in such a share of the time.
_ANSWER_SHARE = 0.05
# Ray downloads every .json of an experiment's folder when it restores.
_SUFFIX = ".jsonl"


class Journal:
    """Records of one run of an experiment, by name, in a `folder` of its own."""

    def __init__(self, filesystem: pyarrow.fs.FileSystem, folder: str) -> None:
        self._filesystem = filesystem
        self.folder = folder
        self._is_made = False
        self._driver = self._n_files = 0  # where nothing can be appended

    @property
    def run(self) -> str:
        """The run's name: the time at which it began."""
        return posixpath.basename(self.folder)

    @classmethod
    def of(cls, trial: Trial) -> Journal | None:
        """Return the journal of a trial's run, the same after ``Tuner.restore``; None without."""
        storage = trial.storage
        if storage is None:
            return None
        # Another run of the same name writes to the same folder; the time of its beginning differs.
        run = str(storage._timestamp)
        folder = posixpath.join(str(storage.experiment_fs_path), _FOLDER, run)
        return cls(storage.storage_filesystem, folder)

    @classmethod
    def of_runs(cls, filesystem: pyarrow.fs.FileSystem, experiment: str) -> list[Journal]:
        """Return the journals of all runs of the experiment at a path, the newest last."""
        parent = posixpath.join(str(experiment), _FOLDER)
        folders = [entry.path for entry in _listed(filesystem, parent) if not entry.is_file]
        return [cls(filesystem, folder) for folder in sorted(folders)]

    def to_record(self) -> dict[str, Any] | None:
        """Return its encoded arguments; None if they cannot be saved."""
        try:
            return encode([self._filesystem, self.folder])
        except Exception:  # file systems of users may be of any kind
            return None

    def append(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """Write parts of records, each with its trial, behind what is there."""
        if self._filesystem.type_name in _APPENDING:
            with self._filesystem.open_append_stream(self._made(_EVENTS)) as stream:
                stream.write(_as_lines(parts))
            return
        if not self._driver:  # counted, as a clock may be set back
            files = [each.base_name.split("_") for each in _listed(self._filesystem, self.folder)]
            numbers = [int(parts[1]) for parts in files if parts[0] == _EVENTS]
            self._driver = 1 + max(numbers, default=0)
        self._n_files += 1
        path = self._made(f"{_EVENTS}_{self._driver:09}_{self._n_files:09}")
        with self._filesystem.open_output_stream(path) as stream:
            stream.write(_as_lines(parts))

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Write a record that is none of a trial, in place of an earlier one of that name."""
        path = self._made(name)
        # Whoever dies while writing leaves the earlier record as it was.
        draft = path + ".draft"
        with self._filesystem.open_output_stream(draft) as stream:
            stream.write(json.dumps(record).encode())
        self._filesystem.move(draft, path)

    def read(self) -> dict[str, dict[str, Any]]:
        """Return the records of all trials, and what is about none, by name."""
        records: dict[str, dict[str, Any]] = {}
        files = [each.path for each in _listed(self._filesystem, self.folder) if each.is_file]
        for path in sorted(files, key=lambda path: (f"/{_EVENTS}" in path, path)):
            name, suffix = posixpath.splitext(posixpath.basename(path))
            if suffix == _SUFFIX and name != RECOMMENDATION:
                for part in self._lines(path):
                    record = records.setdefault(part.pop(_TRIAL, name), {})
                    known = record.get(EVENTS, [])
                    record.update(part)
                    if EVENTS in part:
                        record[EVENTS] = known + [
                            each for each in part[EVENTS] if each not in known
                        ]
        return records

    def read_one(self, name: str) -> dict[str, Any] | None:
        """Return what was written under that name, or None."""
        is_there = self._filesystem.get_file_info(path := self._path(name)).is_file
        return next(self._lines(path), None) if is_there else None

    def _path(self, name: str) -> str:
        return posixpath.join(self.folder, name + _SUFFIX)

    def _made(self, name: str) -> str:
        """Return the path of a file in the folder, which is made."""
        if not self._is_made:
            self._filesystem.create_dir(self.folder, recursive=True)
            self._is_made = True
        return self._path(name)

    def _lines(self, path: str) -> Iterator[dict[str, Any]]:
        with self._filesystem.open_input_stream(path) as stream:
            lines = stream.readall().splitlines()
        for line in filter(None, lines):
            try:
                yield json.loads(line)
            except ValueError:
                _logger.warning("a line of %s was cut short; it is left out", path)


@contextmanager
def of_this_version(what: str) -> Iterator[None]:
    """Raise ValueError if something is missing in what was saved."""
    try:
        yield
    except KeyError as error:
        raise ValueError(
            f"{what} is of an earlier version of mfhpo: it has no {error}. Begin the experiment "
            f"anew, under another RunConfig(name=...)."
        ) from error


def _as_lines(parts: Sequence[Mapping[str, Any]]) -> bytes:
    # What a process that died has left of a line is a line of its own.
    return ("\n" + "".join(json.dumps(part) + "\n" for part in parts)).encode()


def _listed(filesystem: pyarrow.fs.FileSystem, folder: str) -> list[pyarrow.fs.FileInfo]:
    selector = pyarrow.fs.FileSelector(folder, allow_not_found=True)
    return list(filesystem.get_file_info(selector))


class EventLog:
    """An experiment, to be read, whose events are in a journal, or nowhere yet.

    An event's id is that of its trial; what follows a colon tells claims of one trial apart. The
    digest is what must be the same after a restart, by name.
    """

    def __init__(
        self,
        settings: Settings,
        digest: Mapping[str, Any],
        journal: Journal | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.journal, self._clock = journal, clock
        self.experiment = Experiment(settings)
        self._unwritten: list[Mapping[str, Any]] = []
        self._answer: Mapping[str, Any] | None = None  # that is not written
        self._answered, self._answer_at = -1, -math.inf  # what is in the last; when others may be
        self._waits = False  # with writing, for what else comes at the same moment
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
        encoded = encode(event.to_dict())
        record = self._records.setdefault(name, {EVENTS: []})
        record[EVENTS].append(encoded)
        record.update(notes)
        if isinstance(event, Begun):
            self._last_begun = event.id
        if self.journal is not None:
            self._unwritten.append({_TRIAL: name, EVENTS: [encoded], **notes})
        self._write()
        self.experiment.apply(event)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Write what is told within as one."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
            self._write()

    def write_answer(self, recommend: Callable[[], Answer], urgent: bool) -> None:
        """Write the answer; if that is not urgent, only news, and not all the time."""
        begun, order = self._clock(), self.experiment.order
        is_time = order > self._answered and begun >= self._answer_at
        if self.journal is None or not (urgent or is_time):
            return
        self._answer = {"answer": encode(recommend())}
        self._write()
        self._answered = order
        self._answer_at = begun + (self._clock() - begun) / _ANSWER_SHARE

    def _write(self) -> None:
        if self.journal is None or self._waits:
            return
        try:
            if self._unwritten:
                self.journal.append(self._unwritten)
                self._unwritten = []
            if self._answer is not None:
                self.journal.write(RECOMMENDATION, self._answer)
                self._answer = None
        except Exception as error:  # file systems raise errors of their own
            words = "what was told could not be written to the experiment's storage, and waits: %s"
            _logger.warning(words, error)

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

        Claims that were begun in another run are lost, but for the last one of this process.
        """
        earlier = self.run
        self.journal = journal
        self._unwritten, self._answer = [], None  # another experiment's
        stored = journal.read()
        n = self.take_over(stored)
        last = self._last_begun
        is_other = earlier not in (None, journal.run)
        if is_other and self._is_without_events:
            raise ValueError(
                f"the search was saved in the run {earlier}, whose events cannot be read any "
                f"more; restore it where the experiment's storage is."
            )
        for name, record in self._records.items():
            there = stored.get(name, {})
            news = {key: each for key, each in record.items() if each != there.get(key)}
            if news:
                known = there.get(EVENTS, ())
                news[EVENTS] = [each for each in record[EVENTS] if each not in known]
                self._unwritten.append({_TRIAL: name, **news})
        with self.at_once():
            if is_other:
                self.lose(set(self.experiment.open) - {last}, LEFT)
            if last in self.experiment.open and self.experiment.settle(last) is None:
                # Killed before its first snapshot, an experiment begins with the same again.
                self.lose([last], "it was made before", is_withdrawn=True)
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


def events_in(record: Mapping[str, Any] | None) -> list[Event]:
    """Return the events of a record, in the order in which they were told; none without one."""
    with of_this_version("the journal in the experiment's storage"):
        return [] if record is None else [event_of(decode(one)) for one in record[EVENTS]]
