"""What was observed is in the storage at once, and is read back as it was."""

import pyarrow.fs
import pytest
from ray.train._internal.storage import StorageContext

from benchmarks.tune_clock.cluster import SimulatedTrial
from mfhpo_ray.experiment.journal import Journal


@pytest.fixture
def journal(tmp_path):
    return Journal(pyarrow.fs.LocalFileSystem(), str(tmp_path / "race" / "mfhpo" / "1"))


def test_a_record_takes_the_place_of_an_earlier_one(journal, tmp_path):
    journal.write("a", {"observed": [[1, 0, 0.5, 1.0]]})
    journal.write("b", {"observed": []})
    journal.write("a", {"observed": [[1, 0, 0.5, 1.0], [2, 1, 0.25, 2.0]]})
    both = [[1, 0, 0.5, 1.0], [2, 1, 0.25, 2.0]]
    assert journal.read() == {"a": {"observed": both}, "b": {"observed": []}}
    # Ray downloads every .json file of an experiment that is restored.
    assert not list((tmp_path / "race").rglob("*.json"))


def test_a_draft_that_was_left_behind_is_not_read(journal, tmp_path):
    journal.write("a", {"value": 1})
    folder = tmp_path / "race" / "mfhpo" / "1"
    (folder / "a.jsonl.draft").write_text('{"val')
    (folder / "b.jsonl.draft").write_text('{"val')
    assert journal.read() == {"a": {"value": 1}}
    journal.write("a", {"value": 2})
    assert journal.read() == {"a": {"value": 2}}


def stored(tmp_path, timestamp=None):
    storage = StorageContext(str(tmp_path), experiment_dir_name="race", trial_dir_name="t")
    if timestamp is not None:
        storage._timestamp = timestamp
    return SimulatedTrial("simulated", trial_id="t", storage=storage, stub=True)


def test_runs_of_the_same_name_are_kept_apart_and_a_restored_one_together(tmp_path):
    first, again, second = stored(tmp_path, 1), stored(tmp_path, 1), stored(tmp_path, 2)
    for trial, value in ((first, 0.1), (second, 0.2)):
        Journal.of(trial).write("t", {"value": value})
    assert Journal.of(again).read() == {"t": {"value": 0.1}}
    newest = Journal.of_runs(pyarrow.fs.LocalFileSystem(), str(tmp_path / "race"))[-1]
    assert newest.read() == {"t": {"value": 0.2}}
