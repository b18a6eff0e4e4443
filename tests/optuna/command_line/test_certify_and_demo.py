import shutil
import sqlite3
import sys

import optuna
import pytest
from optuna.storages import RDBStorage


@pytest.fixture
def copied(database, tmp_path):
    return shutil.copy(database, tmp_path / "copy.db")


def test_certify_records_what_show_reads(mfhpo, copied, objectives):
    certify = ("certify", copied, "plain", f"{objectives}:objective", "--top", 3)
    said = mfhpo(*certify, "--budget", 6, "--json", code=3)
    assert (said["certified"], said["evaluations"]) == (False, 6)
    said = mfhpo(*certify, "--epsilon", 0.05, "--json")
    assert said["certified"] is True
    assert len(optuna.get_all_study_names(f"sqlite:///{copied}")) == 3
    shown = mfhpo("show", copied, said["study_name"], "--json")
    assert shown["status"] == "certified"
    assert shown["answer"]["evaluations"] == said["evaluations"]
    again = mfhpo(*certify, "--epsilon", 0.05, "--timeout", 0)
    assert again.stdout.startswith("CERTIFIED: trial")


def test_a_plan(mfhpo, copied, objectives):
    certify = ("certify", copied, "plain", f"{objectives}:objective", "--plan")
    said = mfhpo(*certify, "--json")
    assert said["evaluations"] < said["at_half_epsilon"]
    assert mfhpo(*certify).stdout.startswith("about ")
    assert len(optuna.get_all_study_names(f"sqlite:///{copied}")) == 2


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("", (), "must be module:function"),
        (":objektive", (), "has no function 'objektive'. Did you mean 'objective'?"),
        (":number", (), "has no function 'number'."),
        (".py:objective", (), "must be module:function"),
        (":of_another_study", (), "the objective asks for 'y', which trial"),
        (":of_another_range", (), "is not a value of the objective's"),
        (":with_no_whole_replicate", ("--replicate", "split"), "must be suggested as a whole"),
    ],
)
def test_an_objective_that_is_none_or_not_the_study_s(
    mfhpo, copied, objectives, function, options, words
):
    result = mfhpo("certify", copied, "plain", f"{objectives}{function}", *options, code=2)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import a_module_that_is_missing", "No module named 'a_module_that_is_missing'"),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(0)", "cannot be imported: SystemExit"),
        ("def f(:", "cannot be imported: SyntaxError"),
    ],
)
def test_a_module_that_does_not_load(mfhpo, copied, objectives, tmp_path, source, words):
    name = f"{objectives}_too"
    (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    assert words in mfhpo("certify", copied, "plain", f"{name}:objective", code=2).stderr


@pytest.mark.parametrize(("function", "status"), [("ends_well", 0), ("ends_badly", "no data")])
def test_an_objective_that_ends_the_program(mfhpo, copied, objectives, function, status):
    result = mfhpo("certify", copied, "plain", f"{objectives}:{function}", code=1)
    assert result.stderr.endswith(
        f"mfhpo: the objective raised RuntimeError: the objective ended the program by "
        f"sys.exit({status!r})\n"
    )
    [record] = set(optuna.get_all_study_names(f"sqlite:///{copied}")) - {"race", "plain"}
    trials = optuna.load_study(study_name=record, storage=f"sqlite:///{copied}").trials
    assert [trial.state.name for trial in trials] == ["FAIL"]


def test_what_the_objective_raises_has_its_traceback_also_where_nothing_is_logged(
    mfhpo, copied, objectives
):
    verbosity = optuna.logging.get_verbosity()
    try:
        result = mfhpo("certify", copied, "plain", f"{objectives}:broken_in_silence", code=1)
    finally:
        optuna.logging.set_verbosity(verbosity)
    assert "in broken_in_silence" in result.stderr
    assert result.stderr.endswith("mfhpo: the objective raised ValueError: of my own\n")


def test_show_of_a_record_that_is_under_way(mfhpo, copied, objectives):
    mfhpo("certify", copied, "plain", f"{objectives}:broken", code=1)
    [record] = set(optuna.get_all_study_names(f"sqlite:///{copied}")) - {"race", "plain"}
    shown = mfhpo("show", copied, record, "--json", code=3)
    assert shown["sentence"] == (
        "No answer: The certificate of study 'plain', which is recorded here, has no answer yet: "
        "it is not complete, or no candidate gave usable values; certify with a timeout of 0 "
        "says which."
    )
    assert "does not say how it was run" not in mfhpo("show", copied, record, code=3).stdout
    page = copied.with_name("page.html")
    mfhpo("report", copied, record, "-o", page, code=3)
    assert "which is recorded here, has no answer yet" in page.read_text("utf-8")


@pytest.mark.parametrize("hides", [False, True])
def test_a_storage_that_fails(mfhpo, copied, objectives, hides):
    def fail(*arguments, **named):
        raise sqlite3.OperationalError("disk I/O error")

    def fail_at_the_end(storage, trial_id, state, values=None):
        if state.is_finished():
            if hides:  # Optuna's loop ends with an error of its own then
                patch.setattr(RDBStorage, "get_trial", fail)
            fail()
        return known(storage, trial_id, state, values)

    known = RDBStorage.set_trial_state_values
    certify = ("certify", copied, "plain", f"{objectives}:objective", "--top", 2, "--budget", 8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RDBStorage, "set_trial_state_values", fail_at_the_end)
        result = mfhpo(*certify, code=4)
    assert result.stderr == (
        "mfhpo: the storage failed: sqlite3.OperationalError: disk I/O error. Once it works, the "
        "same call goes on.\n"
    )
    assert mfhpo(*certify, "--timeout", 0, "--json", code=3)["evaluations"] == 0


def test_demo_ends_with_an_answer_and_a_report(mfhpo, tmp_path):
    pytest.importorskip("sklearn")
    page = tmp_path / "demo.html"
    said = mfhpo("demo", "--budget", 40, "-o", page).stdout
    assert "ertified: " in said
    assert '<section id="pictures">' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("folder", "missing", "words"),
    [
        ("no", None, "cannot be written: its folder does not exist"),
        (".", "jinja2", "needs Jinja2, which is not installed"),
        (".", "plotly.offline", "needs plotly, which is not installed"),
    ],
)
def test_demo_knows_before_the_search_that_it_cannot_report(
    mfhpo, tmp_path, monkeypatch, folder, missing, words
):
    pytest.importorskip("sklearn")
    if missing is not None:
        monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(optuna.Study, "optimize", lambda *_: pytest.fail("it searches"))
    result = mfhpo("demo", "-o", tmp_path / folder / "demo.html", code=2)
    assert words in result.stderr
