import hashlib
import sqlite3

import optuna
import pytest
import typer
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy import create_engine

from mfhpo_optuna import IISESampler, command_line


def test_show_says_what_the_sampler_says(mfhpo, database):
    study = optuna.load_study(study_name="race", storage=f"sqlite:///{database}")
    answer = IISESampler("epochs", arms=4, epsilon=0.1, seed=0).recommendation(study)
    shown = mfhpo("show", f"sqlite:///{database}", "race", "--json")
    assert shown["status"] == "certified"
    assert shown["answer"] == answer.to_dict()
    assert shown["trials"]["complete"] == answer.trials
    text = mfhpo("show", database, "race").stdout
    assert text.splitlines()[1].startswith("Certified: x=")
    assert f"{answer.mean:.5g}" in text


URLS = ["sqlite:///{}?timeout=5", "sqlite+pysqlite:///{}", "sqlite:///file:{}?uri=true"]
FORMS = ["{}", "sqlite:///{}", *URLS]


@pytest.mark.parametrize("form", FORMS)
def test_show_and_report_write_nothing_to_a_file_or_url(mfhpo, database, tmp_path, form):
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    page = tmp_path / "page.html"
    assert mfhpo("show", form.format(database), "race", "--json")["status"] == "certified"
    said = mfhpo("report", form.format(database), "race", "--output", page, "--json")
    assert said["report"] == str(page)
    assert said["status"] == "certified"
    assert '<section id="pictures">' in page.read_text(encoding="utf-8")
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before


def test_a_server_without_tables_gets_none(monkeypatch):
    """An SQLite file in a server's place: what counts is that nothing makes it create tables."""
    made = []
    empty = create_engine("sqlite://")
    monkeypatch.setattr(command_line, "create_engine", lambda url: empty)
    monkeypatch.setattr(command_line, "RDBStorage", made.append)
    with pytest.raises(typer.Exit):
        command_line._load_study("postgresql://localhost/empty", "race")
    assert made == []


def test_show_while_the_study_runs(mfhpo, tmp_path):
    path = tmp_path / "running.db"
    sampler = IISESampler("epochs", arms=3, epsilon=0.01, seed=0)
    study = optuna.create_study(storage=f"sqlite:///{path}", study_name="running", sampler=sampler)
    shown = []

    def objective(trial):
        x, epochs = trial.suggest_float("x", 0, 1), trial.suggest_int("epochs", 1, 3)
        if trial.number == 8:
            shown.append(mfhpo("show", path, "running", "--json"))
        return x + 0.01 * (trial.number % 7) / epochs

    study.optimize(objective, n_trials=9)
    [seen] = shown
    assert seen["status"] == "best so far"
    assert seen["trials"]["running"] == 1
    assert seen["answer"]["finished"] is False
    assert seen["answer"]["trials"] == seen["trials"]["complete"]


def test_show_reads_a_journal(mfhpo, tmp_path):
    path = tmp_path / "journal.log"
    storage = JournalStorage(JournalFileBackend(str(path)))
    sampler = IISESampler("epochs", arms=2, budget=9, seed=0)
    study = optuna.create_study(storage=storage, study_name="race", sampler=sampler)
    study.optimize(lambda t: t.suggest_float("x", 0, 1) / t.suggest_int("epochs", 1, 3))
    shown = mfhpo("show", path, "race", "--json")
    assert shown["answer"]["params"] == {"x": study.best_params["x"]}


def test_a_page_without_an_answer_is_written_and_the_exit_code_says_so(mfhpo, database, tmp_path):
    page = tmp_path / "page.html"
    assert mfhpo("report", database, "plain", "-o", page, "--json", code=3)["status"] == "no answer"
    assert page.exists()
    assert "No answer" in mfhpo("report", database, "plain", "-o", page, code=3).stdout


def mistakes(database, folder):
    (folder / "notes.txt").write_text("no storage", encoding="utf-8")
    (folder / "junk.log").write_text('{"op_code": 99}\n', encoding="utf-8")
    with sqlite3.connect(folder / "other.db") as other:
        other.execute("create table animals (name text)")
    optuna.create_study(storage=f"sqlite:///{folder / 'bare.db'}", study_name="x")
    optuna.delete_study(storage=f"sqlite:///{folder / 'bare.db'}", study_name="x")
    return [
        *((form.format(folder / "none.db"), "race", "can be read") for form in FORMS),
        (f"sqlite:///{folder / 'other.db'}?timeout=5", "race", "lacks Optuna's tables"),
        (folder, "race", "Is a directory"),
        (f"sqlite:///{folder}", "race", "Is a directory"),
        (folder / "notes.txt", "race", "holds no study"),
        (folder / "junk.log", "race", "no storage of Optuna that can be read"),
        (folder / "other.db", "race", "lacks Optuna's tables"),
        (folder / "bare.db", "race", "holds no study."),
        ("nonsense://here", "race", "no storage of Optuna"),
        ("postgresql://localhost:1/none", "race", "no storage of Optuna that can be read"),
        (database, "rase", "holds no study 'rase', but 'plain', 'race'. Did you mean 'race'?"),
    ]


def test_mistakes_are_said_in_one_line_and_nothing_is_created(mfhpo, database, tmp_path):
    for storage, study, words in mistakes(database, tmp_path):
        for command in ("show", "report"):
            result = mfhpo(command, storage, study, code=2)
            assert words in result.stderr
            assert result.stderr.count("\n") == 1
            assert "Traceback" not in result.output
    assert not (tmp_path / "none.db").exists()
    with sqlite3.connect(tmp_path / "other.db") as other:
        assert other.execute("select name from sqlite_master").fetchall() == [("animals",)]
