"""The journal of an experiment, in its storage: a file for each trial, written at once."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pyarrow.fs
from ray.tune.experiment import Trial

from mfhpo_ray.experiment.encoding import decode, encode

_FOLDER = "mfhpo"
# Ray downloads every .json of an experiment's folder when it restores.
_SUFFIX = ".jsonl"


class Journal:
    """Records of one run of an experiment, by name, in a `folder` of its own."""

    def __init__(self, filesystem: pyarrow.fs.FileSystem, folder: str) -> None:
        self._filesystem = filesystem
        self.folder = folder
        self._made = False

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
        """Return where the journal is, as plain JSON values; None if that cannot be saved."""
        try:
            return encode([self._filesystem, self.folder])
        except Exception:  # file systems of users may be of any kind
            return None

    @classmethod
    def at(cls, record: dict[str, Any]) -> Journal:
        """Return the journal at a place that `to_record` gave."""
        return cls(*decode(record))

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Write a record, in place of an earlier one of that name."""
        if not self._made:
            self._filesystem.create_dir(self.folder, recursive=True)
            self._made = True
        path = posixpath.join(self.folder, name + _SUFFIX)
        # Whoever dies while writing leaves the earlier record as it was.
        draft = path + ".draft"
        with self._filesystem.open_output_stream(draft) as stream:
            stream.write(json.dumps(record).encode())
        self._filesystem.move(draft, path)

    def read(self) -> dict[str, dict[str, Any]]:
        """Return all records, by name."""
        return {
            posixpath.basename(entry.path)[: -len(_SUFFIX)]: self._read(entry.path)
            for entry in _listed(self._filesystem, self.folder)
            if entry.is_file and entry.path.endswith(_SUFFIX)
        }

    def read_one(self, name: str) -> dict[str, Any] | None:
        """Return the record of that name, or None."""
        path = posixpath.join(self.folder, name + _SUFFIX)
        is_there = self._filesystem.get_file_info(path).is_file
        return cast(dict[str, Any], self._read(path)) if is_there else None

    def _read(self, path: str) -> Any:
        with self._filesystem.open_input_stream(path) as stream:
            return json.loads(stream.readall())


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


def check_state(state: Mapping[str, Any], version: int, search: str) -> None:
    """Raise ValueError if a search's state is of another version, or of another class."""
    if state.get("version") != version:
        raise ValueError(
            "the saved state of the search is of another version of mfhpo, such as 0.1.4, which "
            "alone reads it; or begin the experiment anew, under another RunConfig(name=...)."
        )
    if state["search"] != search:
        raise ValueError(f"the state is that of a {state['search']}, but this is a {search}.")


def _listed(filesystem: pyarrow.fs.FileSystem, folder: str) -> list[pyarrow.fs.FileInfo]:
    selector = pyarrow.fs.FileSelector(folder, allow_not_found=True)
    return list(filesystem.get_file_info(selector))
