"""A page takes the place of an earlier one once it is whole."""

import errno
import os
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


@pytest.mark.parametrize("is_read_only", [False, True])
def test_what_is_there_is_replaced_or_written_over(study, yesterday, monkeypatch, is_read_only):
    before = yesterday.stat()
    if is_read_only:
        monkeypatch.setattr(os, "access", lambda *_: False)
    write_report(study, yesterday)
    assert "<!DOCTYPE html>" in yesterday.read_text(encoding="utf-8")
    assert yesterday.stat().st_mode == before.st_mode
    assert (yesterday.stat().st_ino == before.st_ino) == is_read_only
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


def test_a_path_that_no_file_can_have(study):
    with pytest.raises(ValueError, match="path must be the name of a file"):
        write_report(study, "")
    with pytest.raises(FileNotFoundError, match=r"its folder does not exist: '/none/a.html'"):
        write_report(study, "/none/a.html")


def test_a_pipe_is_written_to():
    reading, writing = os.pipe()
    _replace(Path(f"/dev/fd/{writing}"), "a page")
    assert os.read(reading, 10) == b"a page"
