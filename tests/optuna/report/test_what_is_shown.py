"""Names, values and messages are shown without passwords, escape sequences and markup."""

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mfhpo.racing.text import clean
from mfhpo_optuna import IISESampler, publish_to_dashboard, write_report
from mfhpo_optuna.command_line import app
from tests.optuna.report.conftest import summarised
from tests.optuna.report.test_report_page import answer_in

HOSTILE = "x\x1b]0;taken\x07\x1b[2J\x9b2J\u202eevil`code`\nnext"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann:s3cret@host:5432/db", "postgresql://ann:***@host:5432/db"),
        ("mysql+pymysql://ann:p@ss:w/rd@host/db", "mysql+pymysql://ann:***@host/db"),
        ("redis://:s3cret@host", "redis://:***@host"),
        ("pg://host/db?user=ann&password=s3cret&a=1", "pg://host/db?user=ann&password=***&a=1"),
        ("x://h/db?sslPassword=s3cret&token_id=s3", "x://h/db?sslPassword=***&token_id=***"),
        ("sqlite:///study.db, at 12:30", "sqlite:///study.db, at 12:30"),
        ("bell\x07 and \x9b31m", r"bell\x07 and \u009b31m"),
        ("größer\u00a0≤ 3 μ", "größer\u00a0≤ 3 μ"),
    ],
)
def test_passwords_and_escape_sequences_are_taken_out(text, shown):
    assert clean(text) == shown
    assert clean(shown) == shown


@given(
    st.text(), st.text(alphabet=st.characters(exclude_characters="@", categories=["L", "N", "P"]))
)
def test_no_password_comes_through(before, password):
    shown = clean(f"{before} mysql://ann:{password}@host/db")
    assert shown.endswith("mysql://ann:***@host/db")
    assert shown.isprintable() or "\u00a0" in shown or not before.isprintable()


@pytest.fixture
def hostile():
    sampler = IISESampler("epochs", arms=2, budget=12, seed=0)
    study = optuna.create_study(study_name=HOSTILE, sampler=sampler)

    def objective(trial):
        kind = trial.suggest_categorical(HOSTILE, [HOSTILE, "plain"])
        return len(kind) / trial.suggest_int("epochs", 1, 3)

    study.optimize(objective)
    return study


def test_a_page_and_a_summary(hostile, tmp_path):
    summary = write_report(hostile, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8").partition("<script>/**")[0]
    for text in (str(summary), *(word for row in summary.rows for word in row), page):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(text)
    assert r"x\x1b]0;taken\x07" in page
    assert HOSTILE in answer_in(page)["params"]


def test_a_terminal(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(storage=url, study_name="a\x1b[2J")
    for name in ("a\x1b[2J", "b\x1b[2J"):
        result = CliRunner().invoke(app, ["show", url, name])
        assert "\x1b[2J" not in result.output
        assert r"\x1b[2J" in result.output
    result = CliRunner().invoke(app, ["show", "postgresql://ann:s3cret@127.0.0.1:1/db", "a"])
    assert "s3cret" not in result.output
    assert "postgresql://ann:***@127.0.0.1:1/db" in result.stderr


def test_a_note(hostile):
    dashboard = pytest.importorskip("optuna_dashboard")
    publish_to_dashboard(hostile)
    note = dashboard.get_note(hostile)
    assert "\x1b" not in note
    assert note.count("`") == note.count(r"\`") > 0


def test_the_numbers_of_trials_agree():
    study = optuna.create_study(sampler=IISESampler("epochs", arms=3, budget=40, seed=0))

    def objective(trial):
        value = trial.suggest_float("x", 0, 1) / trial.suggest_int("epochs", 1, 3)
        if trial.number == 4:
            raise ArithmeticError
        return value + 0.01 * (trial.number % 3)

    study.optimize(objective, catch=(ArithmeticError,))
    study.ask()
    total, _, parts = dict(summarised(study).facts)["trials"].partition(" in the study: ")
    assert int(total) == len(study.trials)
    counts = dict(part.split(" ", 1)[::-1] for part in parts.split(", ") if part[0].isdigit())
    assert sum(map(int, counts.values())) == len(study.trials)
    assert counts["failed"] == counts["running"] == "1"
    answer = study.sampler.recommendation(study)
    assert int(counts["with a value"]) == answer.trials
