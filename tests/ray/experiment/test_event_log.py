"""An experiment's events are stored before they count, and read back as they were."""

import math
import subprocess
import sys
from pathlib import Path

import pyarrow.fs

from mfhpo.experiment import Assignment, Ended, RaceSettings
from mfhpo_ray.experiment.configurations import decode, described, encode
from mfhpo_ray.experiment.journal import EventLog, Journal, events_in

ARMS = [{"f": math.sin, "size": (2, 3)}, {"f": math.cos, "size": (2, 3)}, {"f": lambda x: x + 1}]
SETTINGS = RaceSettings.of(ARMS, sigma=1.0, epsilon=0.5, seed=0, describe=described)


def journal(folder: Path) -> Journal:
    return Journal(pyarrow.fs.LocalFileSystem(), str(folder))


def log(folder: Path | None = None, **digest: object) -> EventLog:
    made = EventLog(SETTINGS, {"levels": [1, 3], **digest})
    if folder is not None:
        made.connect(journal(folder))
    return made


def evaluate(told: EventLog, *trial_ids: str, ends: bool = True) -> None:
    for trial_id in trial_ids:
        wanted = told.experiment.next()
        assert isinstance(wanted, Assignment)
        told.tell(wanted.begun(trial_id, told.experiment.order))
        if ends:
            end = Ended(id=trial_id, order=told.experiment.order, value=float(len(trial_id)))
            told.tell(end, result={"score": 1.0})


def seen(told: EventLog) -> list[tuple[str, int]]:
    return [(result.id, result.pull.arm) for result in told.experiment.history()]


def test_that_a_restart_knows_what_was_told(tmp_path: Path) -> None:
    told = log()
    evaluate(told, "a", ends=False)  # the first trial is suggested before its storage is known
    told.connect(journal(tmp_path))
    told.tell(Ended(id="a", order=told.experiment.order, value=1.0), result={"score": 2.0})
    evaluate(told, "bb", "ccc")
    again = log(tmp_path)
    assert seen(again) == seen(told)
    assert len(seen(again)) == 3
    assert again.notes("a")["result"] == {"score": 2.0}
    assert again.connect(journal(tmp_path)) == 0
    assert again.experiment.order == told.experiment.order


def test_that_all_events_are_in_one_file(tmp_path: Path) -> None:
    told = log(tmp_path)
    evaluate(told, "a", "a:2")
    assert [path.name for path in tmp_path.iterdir()] == ["events.jsonl"]


def test_that_another_run_has_the_events_in_their_order(tmp_path: Path) -> None:
    told = log(tmp_path / "1")
    evaluate(told, "a", ends=False)
    evaluate(told, "b", ends=False)
    told.connect(journal(tmp_path / "2"))
    kinds = [type(event).__name__ for event in events_in(journal(tmp_path / "2").read()["a"])]
    assert kinds == ["Begun", "Lost"]


DESCRIBED = [
    1,
    1.0,
    True,
    float("nan"),
    "1",
    (1,),
    [1],
    {"b": 1, "a": 2},
    {"a", "b", "c"},
    math.sin,
    math.cos,
    Path,
    Path("a"),
    lambda x: x + 1,
    lambda x: x + 2,
    lambda x: x in {"a", "b", "c"},
    ("__ref_ph", "abc"),
]


def test_that_values_are_told_apart_and_known_again() -> None:
    names = [repr(described(value)) for value in DESCRIBED]
    assert len(set(names)) == len(names)
    assert [repr(described(decode(encode(value)))) for value in DESCRIBED] == names


def test_that_values_are_known_again_in_another_process() -> None:
    code = (
        "import base64, sys; from mfhpo_ray.experiment.configurations import *;"
        "print([described(value) for value in decode({'pickled': sys.stdin.read()})])"
    )
    asked = encode(DESCRIBED)["pickled"]
    done = subprocess.run(
        [sys.executable, "-c", code], input=asked, text=True, capture_output=True, check=True
    )
    assert done.stdout.strip() == repr(list(map(described, DESCRIBED)))
