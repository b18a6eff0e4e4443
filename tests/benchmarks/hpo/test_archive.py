from dataclasses import replace

import pytest

from benchmarks.hpo.__main__ import main
from benchmarks.hpo.archive import keep, restore
from benchmarks.hpo.record import append, file_of, read
from tests.benchmarks.hpo.made_up import record

STEPS = [(1.0, 80.0, None), (2.5, None, 81.25)]
ONE = record("tpe + median", "lcbench 3945", 0, STEPS)
RECORDS = [
    record(method, problem, seed, STEPS)
    for method in ("tpe + median", "tpe")
    for problem in ("lcbench 3945", "branin, sigma 2")
    for seed in (2, 0, 1)
]


@pytest.fixture
def played(tmp_path):
    for one in RECORDS:
        append(one, file_of(one.method, one.problem, tmp_path / "played"))
    return tmp_path / "played"


def everything(folder):
    records = read(sorted(folder.glob("*.jsonl")))
    assert len({record.run for record in records}) == len(records)
    return {record.run: record for record in records}


def test_what_is_kept_is_restored(played, tmp_path, capsys):
    archive, again = tmp_path / "archive", tmp_path / "again"
    keep_it = ["keep", f"--records={played}", f"--archive={archive}"]
    assert main(keep_it) == 0
    assert ": tpe-median.jsonl.xz, tpe.jsonl.xz" in capsys.readouterr().err
    assert main(keep_it) == 0
    assert "nothing new" in capsys.readouterr().err
    kept = {file.name for file in archive.iterdir()}
    assert kept == {"tpe-median.jsonl.xz", "tpe.jsonl.xz"}
    assert main(["restore", f"--records={again}", f"--archive={archive}"]) == 0
    assert f"{len(RECORDS)} records added" in capsys.readouterr().err
    assert everything(again) == everything(played)
    names, restored = ({file.name for file in of.glob("*.jsonl")} for of in (played, again))
    assert restored == names


def test_an_archive_grows_and_what_was_played_anew_replaces_what_was_kept(played, tmp_path):
    archive, later = tmp_path / "archive", tmp_path / "later"
    keep(played, archive)
    anew = replace(ONE, identity="newer", total_cost=98.0)
    more = replace(ONE, seed=7)
    for one in (anew, more):
        append(one, file_of(one.method, one.problem, later))
    assert [file.name for file in keep(later, archive)] == ["tpe-median.jsonl.xz"]
    restore(archive, tmp_path / "again")
    found = everything(tmp_path / "again")
    assert len(found) == len(RECORDS) + 1
    assert found[anew.run] == anew
    assert found[more.run] == more


def test_only_present_code_replaces_runs_of_ours(played, tmp_path, monkeypatch):
    archive, later = tmp_path / "archive", tmp_path / "later"
    judged = replace(ONE, method="mfhpo search", identity="judged")
    append(judged, file_of(judged.method, judged.problem, played))
    keep(played, archive)
    other = replace(judged, identity="other", total_cost=98.0)
    append(other, file_of(other.method, other.problem, later))
    assert keep(later, archive) == []
    monkeypatch.setattr("benchmarks.hpo.archive.identity_of", lambda peer: "other")
    assert len(keep(later, archive)) == 1
