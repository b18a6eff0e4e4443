import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.hpo.__main__ import main
from benchmarks.hpo.record import append, file_of, read
from benchmarks.hpo.reference import Reference
from benchmarks.hpo.report import ALL, Report
from benchmarks.hpo.runs import Environment, Job, Plan, environments, jobs, play_all
from tests.benchmarks.hpo.made_up import record


def steps(value):
    return [(8.0, value - 1.0, value), (60.0, value, value + 0.5)]


TASKS = ("lcbench 1", "lcbench 2", "rbv2_xgboost 1", "branin")


def made_up():
    """On all tasks but the last one, "ours" is best; a crash, and a method with a run missing."""
    shift = {"ours": 0.0, "optuna tpe": -1.0, "random": -3.0, "late": -2.0}
    records = []
    for method, task, seed in itertools.product(shift, TASKS, range(6)):
        value = 90.0 + shift[method] * (-1 if task == "branin" else 1) + 0.1 * seed
        crash = "it broke" if (method, task, seed) == ("random", "branin", 0) else None
        if (method, task) != ("late", "branin"):
            told = {"best_tried": value, "crash": crash, "evaluations": (10, 10)}
            records.append(record(method, task, seed, steps(value), total_seconds=1.0, **told))
    references = {task: Reference(92.0, 72.0) for task in TASKS}
    return Report.of(records, references, dict.fromkeys(TASKS[:3], 10.0), ["ours", "never played"])


class TestReport:
    def test_figures_are_plain_and_complete(self):
        report = made_up()
        figures = json.loads(json.dumps(report.figures(), allow_nan=False))
        assert list(figures["groups"]) == [ALL, "LCBench", "rbv2_xgboost", "synthetic"]
        assert figures["left_out"] == {"late": 18}
        assert figures["ours"] == ["ours"]
        # The best known was 92, but random found 93.5.
        assert figures["tasks"]["branin"]["best"] == 93.5
        lcbench = figures["groups"]["LCBench"]
        ours = lcbench["methods"][0]
        assert ours["points"] == [2.75, 2.75, 2.75, 1.75]
        assert ours["percent"] == [13.75, 13.75, 13.75, 8.75]
        assert ours["rank"] == [1.0] * 4
        [ratio, *_] = lcbench["over_best_optuna"]["ours"]
        assert ratio["best"] == "optuna tpe"
        assert ratio["ratio"] == pytest.approx(2.75 / 3.75, abs=1e-4)
        assert lcbench["rankings"][0]["order"] == ["ours", "optuna tpe", "random"]
        assert lcbench["rankings"][0]["alike"] == []
        assert lcbench["points_by_task"]["lcbench 2"]["random"] == [5.75, 5.75, 5.75, 4.75]

    def test_the_table_marks_the_best_and_ours(self):
        header, _, first, *_ = made_up().markdown().splitlines()
        assert header.startswith("| method | LCBench: regret in points at 10 / 20 / 50 / 100 |")
        assert first.startswith("| **ours** | **2.75** / **2.75** / **2.75** / **1.75** |")
        assert "| synthetic: regret in percent at 10 / 20 / 50 / 100 |" in header
        # Half a point of 20 on the surrogates, of 21.5 on branin.
        assert "| +2.5 % | 100 % | 50.0 |" in first

    def test_tasks_won_tied_and_lost(self):
        header, _, first, second = made_up().markdown_of_duels("ours").splitlines()
        assert header == ("| ours against | budget 10 | budget 20 | budget 50 | budget 100 |")
        # Six pairs are the fewest with a p-value below .05, but Holm's method takes eight of them.
        assert first.startswith("| optuna tpe | 0 / 4 / 0, 0.75 |")
        assert second.startswith("| random | 0 / 4 / 0, 0.75 |")


def plan(folder, **options):
    given = Plan(("branin", "currin"), range(3), budget=3.0, records=folder, block=2)
    return replace(given, **options)


class TestRuns:
    def test_environments(self, tmp_path):
        found, missing = environments(["random_search", "smac"], root=tmp_path)
        assert found == [Environment("random_search", Path(sys.executable), ("random",))]
        assert missing == {"smac": "make peer-smac makes its environment"}
        python = tmp_path / ".venvs" / "peer-smac" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text("#!/bin/sh\necho 'no module x' >&2\nexit 2\n", encoding="utf-8")
        python.chmod(0o755)
        assert environments(["smac"], root=tmp_path) == ([], {"smac": "no module x"})
        python.write_text("#!/bin/sh\necho smac one; echo smac two\n", encoding="utf-8")
        found = [Environment("smac", python, ("smac one", "smac two"))]
        assert environments(["smac"], root=tmp_path) == (found, {})

    def test_what_remains_in_an_order_that_keeps_methods_comparable(self, tmp_path):
        both = Environment("two", Path("python"), ("m", "n"))
        third = Environment("one", Path("python"), ("o",))
        wanted = list(jobs(plan(tmp_path), [both, third]))
        assert [(job.environment.peer, job.task, job.seeds) for job in wanted[:5]] == [
            ("two", "branin", range(2)),
            ("one", "branin", range(2)),
            ("two", "currin", range(2)),
            ("one", "currin", range(2)),
            ("two", "branin", range(2, 3)),
        ]
        assert len(wanted) == 8
        assert wanted[0].words == "two on branin, seeds 0 to 1"
        for seed in range(3):
            done = record("m", "branin", seed, [], budget=3.0)
            append(done, file_of("m", "branin", tmp_path))
        wanted = list(jobs(plan(tmp_path), [both]))
        assert [job.methods for job in wanted] == [("n",), ("m", "n"), ("n",), ("m", "n")]

    def job(self, folder, script):
        python = folder / "python"
        python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        python.chmod(0o755)
        environment = Environment("peer", python, ("m",))
        return Job(environment, ("m",), "branin", range(1), plan(folder))

    def test_a_job_that_fails_is_told_and_the_others_go_on(self, tmp_path):
        said = []
        broken = self.job(tmp_path, "echo oh dear >&2; exit 3")
        [failed] = play_all([broken, broken], 1, said.append)[1:]
        assert failed.startswith("peer on branin, seeds 0 to 0: ended with 3")
        assert len(said) == 2
        assert (tmp_path / "logs" / "peer.log").read_text("utf-8") == "oh dear\n" * 2

    def test_a_job_that_never_ends_is_stopped_and_told(self, tmp_path, monkeypatch):
        monkeypatch.setattr("benchmarks.hpo.runs._MOST_MINUTES", 0.0)
        said = []
        assert play_all([self.job(tmp_path, "exec sleep 600")], 1, said.append) == []
        assert said[0] == "peer on branin, seeds 0 to 0: stopped after 0 minutes"


@pytest.mark.slow
def test_run_and_report(tmp_path, capsys):
    common = ["--tasks", "branin", f"--records={tmp_path}", "--seeds=2"]
    assert main(["run", *common, "--peers", "random_search", "--workers=1"]) == 0
    said = capsys.readouterr().err
    assert "random_search: random" in said
    assert "[1/1]" in said
    [file] = tmp_path.glob("*.jsonl")
    assert [one.seed for one in read([file])] == [0, 1]
    before = file.read_bytes()
    assert main(["run", *common, "--peers", "random_search"]) == 0
    assert "0 jobs" in capsys.readouterr().err
    assert file.read_bytes() == before
    assert main(["report", *common, f"--output={tmp_path / 'out'}"]) == 0
    assert "| random | " in capsys.readouterr().out
    report = json.loads((tmp_path / "out" / "hpo.json").read_text("utf-8"))
    assert report["command"] == "python -m benchmarks.hpo report --tasks branin --seeds 2"
    assert report["seeds"] == [0, 1]
    assert (tmp_path / "out" / "hpo.html").stat().st_size > 1_000
    assert (tmp_path / "out" / "hpo.svg").read_text("utf-8").endswith("</svg>\n")


@pytest.mark.slow
def test_architectures_are_a_comparison_of_their_own(tmp_path):
    common = ["--nas", f"--records={tmp_path}", "--seeds=2"]
    assert main(["run", *common, "--peers", "random_search", "regularised_evolution"]) == 0
    assert main(["report", *common, f"--output={tmp_path / 'out'}"]) == 0
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "hpo_nas.html",
        "hpo_nas.json",
        "hpo_nas.svg",
    }
    report = json.loads((tmp_path / "out" / "hpo_nas.json").read_text("utf-8"))
    assert report["command"] == "python -m benchmarks.hpo report --nas --seeds 2"
    assert set(report["tasks"]) == {"nas digits table"}
    assert set(report["identities"]) == {"random", "regularised evolution"}
