"""A page takes the place of an earlier one once it is whole."""

import errno
import os
import stat
from pathlib import Path

import optuna
import pytest

from mfhpo_optuna import write_report
from mfhpo_optuna.report.page import _replace


@pytest.fixture
def study():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    return study


@pytest.fixture
def yesterday(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("yesterday's")
    path.chmod(0o640)
    return path


def test_what_is_there_is_replaced_and_nothing_else_is_left(study, yesterday):
    write_report(study, yesterday)
    assert "<!DOCTYPE html>" in yesterday.read_text(encoding="utf-8")
    assert stat.S_IMODE(yesterday.stat().st_mode) == 0o640
    assert list(yesterday.parent.iterdir()) == [yesterday]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), KeyboardInterrupt()])
def test_an_error_on_the_way_leaves_the_earlier_page(study, yesterday, monkeypatch, error):
    def fail(number):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(error)):
        write_report(study, yesterday)
    assert yesterday.read_text() == "yesterday's"
    assert list(yesterday.parent.iterdir()) == [yesterday]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "path must be the name of a file"),
        ("/none/a.html", "its folder does not exist: '/none/a.html'"),
    ],
)
def test_a_path_that_no_file_can_have(study, path, words):
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        write_report(study, path)


def test_a_pipe_is_written_to():
    reading, writing = os.pipe()
    _replace(Path(f"/dev/fd/{writing}"), "a page")
    assert os.read(reading, 10) == b"a page"


def test_a_page_in_a_folder_that_is_read_only_is_written_over(study, yesterday, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = yesterday.stat().st_ino
    write_report(study, yesterday)
    assert yesterday.stat().st_ino == before
    assert "<!DOCTYPE html>" in yesterday.read_text(encoding="utf-8")
