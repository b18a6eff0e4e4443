"""The soak in short, and what it says when something fails."""

import json

import pytest

from tests.reliability.soak import __main__ as soak
from tests.reliability.soak.summary import summary

LEFT = {"megabytes": 100.0, "descriptors": 9, "threads": 1, "processes": 2, "temporary_files": 0}


def race(number=0, **other):
    return {
        "number": number,
        "storage": "SQLite",
        "sampler": "IISESampler",
        "workers": 3,
        "faults": ["kill_all_twice"],
        "heartbeat": False,
        "limited": True,
        "values": 30,
        "values_lost": 0,
        "wasted": 1,
        "workers_lost": 3,
        "left_running": 3,
        "went_on": 0,
        "right": True,
        "seconds": 8.0 + number,
        "wrong": [],
        "left": LEFT,
    } | other


@pytest.mark.parametrize(("wrong", "holds"), [(2, True), (15, False)])
def test_so_many_answers_are_wrong_as_delta_allows(wrong, holds):
    found = summary([race(number, right=number >= wrong) for number in range(50)], 60.0)
    assert found["wrong_answers"] == wrong
    assert found["holds"] == holds


@pytest.mark.parametrize("name", LEFT)
def test_what_grows_race_by_race_leaks(name):
    played = [race(n, left={**LEFT, name: LEFT[name] + 3 * n}) for n in range(50)]
    found = summary(played, 60.0)
    assert not found["holds"]
    assert [leak for leak, about in found["leaks"].items() if about["grows"]] == [name]


def test_a_race_can_be_drawn_again():
    storages = ["SQLite", "PostgreSQL"]
    drawn = [soak.draw(7, number, storages, may_mount=False) for number in range(200)]
    assert soak.draw(7, 150, storages, may_mount=False) == drawn[150]
    assert {race.storage for race in drawn} == {*storages, soak.MEMORY}
    assert {race.sampler for race in drawn} == set(soak.OURS)
    assert any(race.heartbeat for race in drawn)
    assert any(race.limited for race in drawn)
    assert {name for race in drawn for name in race.faults} >= {
        "kill_one_after_the_other",
        "lock_for_20_seconds",
        "stop_for_20_seconds",
    }


@pytest.mark.faults
def test_a_short_soak(tmp_path):
    output = tmp_path / "soak.json"
    held = soak.soak(0, range(5, 10), 60.0, output, tmp_path / "kept")
    found = json.loads(output.read_text(encoding="utf-8"))
    assert held, found
    assert found["races"] == 5
    assert found["values"] > 100
    assert found["values_lost"] == 0
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("race", [soak.draw(0, 6, ["SQLite"], False), soak.draw(0, 7, [], False)])
def test_a_race_that_cannot_be_played_is_a_failure(race, tmp_path, monkeypatch):
    def fail(*_):
        raise TimeoutError("the race did not end")

    monkeypatch.setattr(soak, "play_race", fail)
    found = soak.outcome(race, {}, tmp_path)
    assert found["number"] == race.number
    assert found["wrong"] == ["TimeoutError: the race did not end"]


@pytest.mark.faults
def test_what_failed_is_kept(tmp_path, monkeypatch, capsys):
    output, kept = tmp_path / "soak.json", tmp_path / "kept"
    play_race = soak.play_race

    def lose_a_value(race, place, folder):
        return play_race(race, place, folder) | {"values_lost": 1}

    monkeypatch.setattr(soak, "play_race", lose_a_value)
    arguments = ["--race", "6", "--output", str(output), "--kept", str(kept)]
    assert soak.main(arguments) == 1
    found = json.loads(output.read_text(encoding="utf-8"))
    (failure,) = found["failures"]
    assert failure["wrong"] == ["values were lost"]
    assert failure["number"] == 6
    assert {"kept.db", "notes"} <= {file.name for file in (kept / "race-6").iterdir()}
    assert "values were lost" in capsys.readouterr().err
