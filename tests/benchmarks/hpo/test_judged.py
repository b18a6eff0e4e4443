"""Tasks that methods are developed on, and those that judge them, once per release."""

import json

import pytest

import mfhpo
from benchmarks.hpo import certificates
from benchmarks.hpo.__main__ import main
from benchmarks.hpo.clock import limits
from benchmarks.hpo.judged import begin, check_first_time, release_of
from benchmarks.hpo.problems import DEVELOPMENT_TASKS
from benchmarks.hpo.problems.families import tasks_of
from benchmarks.hpo.reference import Reference
from benchmarks.hpo.report import Report
from benchmarks.hpo.tasks import CLOCK_TASKS, QUICK_TASKS, grouped, judged_tasks
from tests.benchmarks.hpo.made_up import record


class TestTasks:
    def test_none_is_both_developed_on_and_judged(self, data_folder):
        judged = judged_tasks(data_folder / "yahpo")
        assert not set(judged) & {*DEVELOPMENT_TASKS, *CLOCK_TASKS, *QUICK_TASKS}
        groups = grouped(judged)
        assert {"LCBench", "rbv2_xgboost"} <= set(groups)
        assert {len(tasks) for tasks in groups.values()} == {12}
        for name in judged:
            family, _, task = name.partition(" ")
            assert task in tasks_of(family, data_folder / "yahpo")

    def test_they_are_always_the_same(self, data_folder):
        first, *_, last = judged_tasks(data_folder / "yahpo")[:12]
        assert (first, last) == ("lcbench 126029", "lcbench 189865")


class TestOnce:
    @pytest.fixture
    def judged(self, tmp_path):
        """Writes what a release was judged with."""

        def write(version, *identities):
            report = {
                "date": "2026-01-02",
                "versions": {"mfhpo": version},
                "ours": ["ours"],
                "identities": {"ours": list(identities), "random": [""]},
            }
            (tmp_path / "hpo_judged.json").write_text(json.dumps(report), encoding="utf-8")
            return tmp_path

        return write

    def test_a_release_that_was_not_judged_may_be(self, judged, tmp_path):
        check_first_time(tmp_path, {"code"})
        check_first_time(judged("0.0.1", "other"), {"code"})

    def test_going_on_with_the_same_code_is_no_second_time(self, judged):
        check_first_time(judged(mfhpo.__version__, "code"), {"code"})

    def test_other_code_of_the_same_release_is_refused(self, judged):
        with pytest.raises(ValueError, match="was judged on 2026-01-02, by other code"):
            check_first_time(judged(mfhpo.__version__, "other"), {"code"})

    def test_some_runs_of_the_same_code_excuse_no_others(self, judged):
        with pytest.raises(ValueError, match="by other code"):
            check_first_time(judged(mfhpo.__version__, "code"), {"code", "other"})

    def test_what_has_begun_to_be_judged_is_not_exchanged(self, judged, tmp_path):
        judged("0.0.1", "older")
        begin(tmp_path, "code")
        begin(tmp_path, "code")
        with pytest.raises(ValueError, match="by other code than today's"):
            begin(tmp_path, "other")

    def test_the_next_release_may_begin(self, tmp_path, monkeypatch):
        begin(tmp_path, "code")
        monkeypatch.setattr(mfhpo, "__version__", "9.9.9")
        begin(tmp_path, "other")
        with pytest.raises(ValueError, match=r"9\.9\.9 was judged on"):
            begin(tmp_path, "code")

    def test_records_judge_the_release_that_has_played_them(self, judged):
        assert release_of(judged("0.0.1", "code"), {"code"}, present="other") == "0.0.1"
        assert release_of(judged("0.0.1", "code"), {"other"}, present="other") == mfhpo.__version__

    def test_records_of_an_unknown_release_are_refused(self, judged, tmp_path):
        with pytest.raises(ValueError, match="must all be of the present code, new"):
            release_of(tmp_path, {"old", "new"}, present="new")
        with pytest.raises(ValueError, match="our records are of"):
            release_of(judged("0.0.1", "code"), {"code", "new"}, present="new")


class TestCommand:
    @pytest.mark.parametrize("command", ["run", "clock"])
    def test_naming_the_tasks_is_no_way_round_it(
        self, command, data_folder, tmp_path, monkeypatch, capsys
    ):
        monkeypatch.setattr("benchmarks.hpo.__main__._RESULTS", tmp_path)
        monkeypatch.setattr("benchmarks.hpo.__main__.play_all", lambda *_: [])
        begin(tmp_path, "other code")
        data, folder = f"--data={data_folder / 'yahpo'}", f"--records={tmp_path}"
        one = [command, "--tasks", "lcbench 126025", data, folder, "--seeds=1", "--peers"]
        assert main([*one, "ours"]) == 2
        assert "by other code than today's" in capsys.readouterr().err


@pytest.mark.parametrize("program", [certificates, limits])
def test_benchmarks_on_which_the_search_is_developed_refuse_them(program, capsys):
    with pytest.raises(SystemExit):
        program.main(["--tasks", "lcbench 126025"])
    assert "'lcbench 126025' is kept to judge releases" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        (["lcbench 3945, workers 16"], "Our methods were developed on these tasks."),
        (["lcbench 3945", "branin"], "Our methods were developed on these tasks."),
        (["lcbench 1", "rbv2_svm 2"], "developed on other tasks; these were kept to judge them."),
        (["lcbench 1", "branin"], "developed on other tasks than 1 of these."),
        (["nas digits table"], "developed on other tasks; these were kept to judge them."),
    ],
)
def test_a_report_says_what_its_methods_were_developed_on(tasks, words):
    steps = [(8.0, 1.0, 1.0)]
    records = [
        record(method, task, seed, steps, identity="code")
        for method in ("ours", "random")
        for task in tasks
        for seed in (0, 1)
    ]
    report = Report.of(records, {task: Reference(2.0, 0.0) for task in tasks}, {}, ["ours"])
    assert words in report.notes()
    assert report.figures()["identities"] == {"ours": ["code"], "random": ["code"]}
