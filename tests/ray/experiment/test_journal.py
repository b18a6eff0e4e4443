"""What was observed is in the storage at once, and is read back as it was."""

import pyarrow.fs
import pytest
from ray.train._internal.storage import StorageContext

from benchmarks.tune_clock.cluster import SimulatedTrial
from mfhpo_ray.experiment.journal import Journal


@pytest.fixture
def journal(tmp_path):
    return Journal(pyarrow.fs.LocalFileSystem(), str(tmp_path / "race" / "mfhpo" / "1"))


A = {"id": "a", "kind": "begun"}
END = {"id": "a", "kind": "ended", "value": 0.5}
B = {"id": "b", "kind": "begun"}
PARTS = [
    {"trial": "a", "events": [A]},
    {"trial": "b", "events": [B], "note": 1},
    {"trial": "a", "events": [END], "note": 2},
]
RECORDS = {"a": {"events": [A, END], "note": 2}, "b": {"events": [B], "note": 1}}


def test_parts_are_put_together_and_the_answer_is_none_of_them(journal, tmp_path):
    for part in PARTS:
        journal.append([part])
    journal.write("recommendation", {"answer": 1})
    journal.write("recommendation", {"answer": 2})
    assert journal.read() == RECORDS
    assert journal.read_one("recommendation") == {"answer": 2}
    # Ray downloads every .json file of an experiment that is restored.
    assert not list((tmp_path / "race").rglob("*.json"))


def test_what_is_written_once_more_counts_once(journal):
    journal.append(PARTS)
    journal.append(PARTS[:2])
    assert journal.read() == RECORDS


@pytest.mark.parametrize("n_bytes", range(1, 40, 6))
def test_a_line_that_was_cut_short_is_left_out(journal, tmp_path, caplog, n_bytes):
    journal.append(PARTS)
    [file] = (tmp_path / "race" / "mfhpo" / "1").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-n_bytes])
    is_cut = n_bytes > 1  # the last byte ends the line
    journal.append([{"trial": "c", "events": [A]}])
    records = journal.read()
    assert records["c"] == {"events": [A]}
    assert records["a"] == ({"events": [A]} if is_cut else RECORDS["a"])
    assert ("was cut short" in caplog.text) == is_cut


def test_a_store_that_appends_nothing_gets_a_file_for_each_write(tmp_path, monkeypatch):
    monkeypatch.setattr("time.time_ns", iter([3, 2, 1]).__next__)  # of clocks that are set back
    files = pyarrow.fs.LocalFileSystem()

    class Objects:
        type_name = "s3"

        def open_append_stream(self, path):
            raise NotImplementedError("It is not possible to append efficiently to S3 objects")

        def __getattr__(self, name):
            return getattr(files, name)

    for part in PARTS:  # each by another driver
        journal = Journal(Objects(), str(tmp_path))
        journal.append([part])
        journal.append([{"trial": "b", "events": []}])
        journal.append([{"trial": "b", "events": []}])
    assert journal.read() == RECORDS
    assert len(list(tmp_path.iterdir())) == 9


def test_a_failed_write_is_made_once_more_and_no_file_is_written_over(tmp_path):
    files = pyarrow.fs.LocalFileSystem()

    class Objects:
        type_name = "s3"
        is_down = True

        def open_output_stream(self, path):
            if self.is_down:
                raise OSError("no connection")
            return files.open_output_stream(path)

        def __getattr__(self, name):
            return getattr(files, name)

    store = Objects()
    journal = Journal(store, str(tmp_path))
    for _ in range(3):
        with pytest.raises(OSError, match="no connection"):
            journal.append(PARTS)
    store.is_down = False
    journal.append(PARTS)
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / "recommendation.jsonl.draft").write_text("{}")  # counted by nobody
    Journal(store, str(tmp_path)).append([{"trial": "c", "events": [A]}])
    (tmp_path / "recommendation.jsonl.draft").unlink()
    Journal(store, str(tmp_path)).append([{"trial": "c", "events": [END]}])
    assert journal.read() == {**RECORDS, "c": {"events": [A, END]}}


def test_reading_makes_no_folder(journal, tmp_path):
    assert journal.read_one("recommendation") is None
    assert journal.read() == {}
    assert not list(tmp_path.iterdir())


def stored(tmp_path, timestamp=None):
    storage = StorageContext(str(tmp_path), experiment_dir_name="race", trial_dir_name="t")
    if timestamp is not None:
        storage._timestamp = timestamp
    return SimulatedTrial("simulated", trial_id="t", storage=storage, stub=True)


def test_runs_of_the_same_name_are_kept_apart_and_a_restored_one_together(tmp_path):
    first, again, second = stored(tmp_path, 1), stored(tmp_path, 1), stored(tmp_path, 2)
    for trial, value in ((first, 0.1), (second, 0.2)):
        Journal.of(trial).append([{"trial": "t", "value": value}])
    assert Journal.of(again).read() == {"t": {"value": 0.1}}
    newest = Journal.of_runs(pyarrow.fs.LocalFileSystem(), str(tmp_path / "race"))[-1]
    assert newest.read() == {"t": {"value": 0.2}}
