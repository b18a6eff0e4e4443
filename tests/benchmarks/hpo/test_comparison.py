"""Tests of the command that plays a comparison, and of what it says in the end."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.hpo.__main__ import main
from benchmarks.hpo.identity import identity_of
from benchmarks.hpo.methods import HEADLINE, OURS
from benchmarks.hpo.record import Record, append, file_of, read
from benchmarks.hpo.reference import Reference
from benchmarks.hpo.report import ALL, Report, pinned
from benchmarks.hpo.runs import Environment, Job, Plan, environments, jobs, play_all
from benchmarks.hpo.tasks import grouped


def record(method: str, task: str, seed: int, value: float, crash: str | None = None) -> Record:
    return Record(
        method=method,
        problem=task,
        budget=100.0,
        seed=seed,
        cost=(8.0, 60.0),
        seconds=(0.1, 0.5),
        value=(value - 1.0, value),
        claim=(value, value + 0.5),
        evaluations=(10, 10),
        failures=0,
        total_cost=100.0,
        total_seconds=1.0,
        tried=20,
        best_tried=value,
        crash=crash,
    )


TASKS = ("lcbench 1", "lcbench 2", "rbv2_xgboost 1", "branin")


def made_up() -> Report:
    """On all tasks but the last one, "ours" is best; a crash, and a method with a run missing."""
    shift = {"ours": 0.0, "optuna tpe": -1.0, "random": -3.0, "late": -2.0}
    records = [
        record(
            method,
            task,
            seed,
            90.0 - lower * (-1 if task == "branin" else 1) + 0.1 * seed,
            crash="it broke" if (method, task, seed) == ("random", "branin", 0) else None,
        )
        for method, less in shift.items()
        for lower in [-less]
        for task in TASKS
        for seed in range(6)
        if method != "late" or task != "branin"
    ]
    references = {task: Reference(92.0, 72.0) for task in TASKS}
    return Report.of(records, references, dict.fromkeys(TASKS[:3], 10.0), ["ours", "never played"])


class TestReport:
    def test_figures_are_plain_and_complete(self) -> None:
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

    def test_the_table_marks_the_best_and_ours(self) -> None:
        header, _, first, *_ = made_up().markdown().splitlines()
        assert header.startswith("| method | LCBench: regret in points at 10 / 20 / 50 / 100 |")
        assert first.startswith("| **ours** | **2.75** / **2.75** / **2.75** / **1.75** |")
        assert "| synthetic: regret in percent at 10 / 20 / 50 / 100 |" in header
        # Half a point of 20 on the surrogates, of 21.5 on branin.
        assert "| +2.5 % | 100 % | 50.0 |" in first

    def test_tasks_won_tied_and_lost(self) -> None:
        header, _, first, second = made_up().markdown_of_duels("ours").splitlines()
        assert header == ("| ours against | budget 10 | budget 20 | budget 50 | budget 100 |")
        # Six pairs are the fewest with a p-value below .05, but Holm's method takes eight of them.
        assert first.startswith("| optuna tpe | 0 / 4 / 0, 0.75 |")
        assert second.startswith("| random | 0 / 4 / 0, 0.75 |")

    def test_losses_crashes_and_gaps_are_said(self) -> None:
        notes = made_up().notes().splitlines()
        assert (
            "LCBench: regret of ours over the best of Optuna's: 0.73 (0.73 to 0.74), "
            "0.73 (0.73 to 0.74), 0.73 (0.73 to 0.74), 0.64 (0.62 to 0.65)." in notes
        )
        assert notes[0] == (
            "4 tasks, 3 methods, the same 6 seeds for all methods; noise is a function of seed and "
            "configuration."
        )
        assert (
            "Our methods were developed on these tasks; the peers were not tuned. Where we lose is "
            "judged by ours alone." in notes
        )
        assert "Left out, with 18 runs: late." in notes
        assert "random: 1 of 24 runs crashed, 0 evaluations failed." in notes
        lost = [line for line in notes if line.startswith("We lose")]
        assert len(lost) == 4
        assert lost[0].startswith("We lose on synthetic at budget 10: ours has 19.8 %, behind ran")

    def test_pictures(self) -> None:
        report = made_up()
        pictures = report.pictures()
        assert len(pictures) == 4 * (1 + 4) + 2  # of the whole and of branin no time is known
        for picture in pictures.values():
            assert "ours" in picture.to_json()
        root = ElementTree.fromstring(report.picture())
        said = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {"LCBench, 2 tasks", "rbv2_xgboost, 1 task", "ours", "optuna tpe"} <= set(said)

    def test_ours_is_judged_by_its_headline_alone(self) -> None:
        values = {"best of ours": 91.0, HEADLINE: 88.0, "mfhpo search + certificate": 87.0}
        records = [
            record(method, "branin", seed, value + 0.1 * seed)
            for method, value in (values | {"random": 90.0, "optuna tpe": 86.0}).items()
            for seed in range(6)
        ]
        references = {"branin": Reference(92.0, 72.0)}
        report = Report.of(records, references, {}, list(values))
        assert report.figures()["headline"] == HEADLINE
        notes = report.notes().splitlines()
        lost = [line for line in notes if line.startswith("We lose on synthetic")]
        assert len(lost) == 4
        assert all(f"{HEADLINE} has" in line and line.count("%)") == 1 for line in lost)
        certified = [line for line in notes if "certified nothing yet" in line]
        assert certified == [
            "mfhpo search + certificate at budgets below 100 is a run with budget 100 that has "
            "certified nothing yet."
        ]
        said = list(ElementTree.fromstring(report.picture()).itertext())
        assert {HEADLINE, "random", "optuna tpe"} <= set(said)
        assert not {"best of ours", "mfhpo search + certificate"} & set(said)
        # Six seeds have a p-value of 1/32: below .05 after Holm's method only if it is for one.
        alone = Report.of(
            [one for one in records if one.method != "random"], references, {}, [*values]
        )
        [_, _, row] = alone.markdown_of_duels(HEADLINE).splitlines()
        assert row.startswith("| optuna tpe | 1 / 0 / 0, 1.00 |")
        first, second = (
            Report.of(records, references, {}, [name]).headline for name in ("best of ours", "none")
        )
        assert (first, second) == ("best of ours", None)

    def test_methods_of_several_versions_are_named(self) -> None:
        records = [
            replace(record(method, "branin", seed, 90.0), identity=identity)
            for method, identities in {"ours": ("a1", "a1", ""), "random": ("2", "2", "2")}.items()
            for seed, identity in enumerate(identities)
        ]
        report = Report.of(records, {"branin": Reference(92.0, 72.0)}, {}, ["ours"])
        said = [line for line in report.notes().splitlines() if "versions" in line]
        assert said == ["ours: its runs are of 2 versions: 2 of a1, 1 of unknown."]

    def test_nothing_to_compare(self) -> None:
        with pytest.raises(ValueError, match="hold no seed that all methods"):
            Report.of([], {"branin": Reference(1.0, 0.0)}, {}, [])

    def test_versions_are_the_pinned_ones(self, tmp_path: Path) -> None:
        (tmp_path / "smac.txt").write_text("# SMAC\nnumpy==2.4\nSMAC==2.4.1\n", encoding="utf-8")
        (tmp_path / "other.txt").write_text("numpy==2.4\n", encoding="utf-8")
        assert pinned(tmp_path) == {"smac": "SMAC==2.4.1"}

    def test_tasks_by_kind(self) -> None:
        tasks = ["lcbench 1", "svm wine table", "branin", "hartmann3, sigma 0.2"]
        assert list(grouped(tasks)) == ["LCBench", "scikit-learn", "synthetic"]


def plan(folder: Path, **options: Any) -> Plan:
    given = Plan(("branin", "currin"), range(3), budget=3.0, records=folder, block=2)
    return replace(given, **options)


class TestRuns:
    def test_environments(self, tmp_path: Path) -> None:
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

    def test_what_remains_in_an_order_that_keeps_methods_comparable(self, tmp_path: Path) -> None:
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
            done = Record.from_dict(record("m", "branin", seed, 1.0).to_dict() | {"budget": 3.0})
            append(done, file_of("m", "branin", tmp_path))
        wanted = list(jobs(plan(tmp_path), [both]))
        assert [job.methods for job in wanted] == [("n",), ("m", "n"), ("n",), ("m", "n")]
        wanted = list(jobs(plan(tmp_path), [both], only=["m"]))
        assert [job.task for job in wanted] == ["currin", "currin"]
        wanted = list(jobs(plan(tmp_path, sigma=0.2), [both], only=["m"]))
        assert wanted[0].words == "two on branin, sigma 0.2, seeds 0 to 1"
        assert "--sigma=0.2" in wanted[0].command

    def test_what_other_code_of_ours_has_played_remains(self, tmp_path: Path) -> None:
        for method, identity in (("m", "old"), ("n", "old"), ("n", identity_of(OURS))):
            for seed in range(3):
                done = replace(record(method, "branin", seed, 1.0), budget=3.0, identity=identity)
                append(done, file_of(method, "branin", tmp_path))
        one_task = plan(tmp_path, tasks=("branin",))
        ours = Environment(OURS, Path("python"), ("m", "n"))
        assert [job.methods for job in jobs(one_task, [ours])] == [("m",), ("m",)]
        peer = Environment("peer", Path("python"), ("m", "n"))
        assert list(jobs(one_task, [peer])) == []

    def job(self, folder: Path, script: str) -> Job:
        python = folder / "python"
        python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        python.chmod(0o755)
        environment = Environment("peer", python, ("m",))
        return Job(environment, ("m",), "branin", range(1), plan(folder))

    def test_a_job_that_fails_is_told_and_the_others_go_on(self, tmp_path: Path) -> None:
        said: list[str] = []
        broken = self.job(tmp_path, "echo oh dear >&2; exit 3")
        [failed] = play_all([broken, broken], 1, said.append)[1:]
        assert failed.startswith("peer on branin, seeds 0 to 0: ended with 3")
        assert len(said) == 2
        assert (tmp_path / "logs" / "peer.log").read_text("utf-8") == "oh dear\n" * 2

    def test_it_ends_when_the_time_is_over(self, tmp_path: Path) -> None:
        said: list[str] = []
        endless = self.job(tmp_path, "exec sleep 600")
        assert play_all([endless] * 3, 2, said.append, minutes=0.005) == []
        assert said == ["stopped after 0.005 minutes; the same command goes on from here."]


class TestCommandLine:
    def test_run_and_report(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
        assert report["command"] == "python -m benchmarks.hpo report"
        assert report["seeds"] == [0, 1]
        assert (tmp_path / "out" / "hpo.html").stat().st_size > 1_000
        assert (tmp_path / "out" / "hpo.svg").read_text("utf-8").endswith("</svg>\n")

    def test_mistakes_are_told(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        common = ["--tasks", "branin", f"--records={tmp_path}", "--peers", "random_search"]
        assert main(["run", *common, "--methods", "wild"]) == 2
        assert "--methods: ['wild'] not among ['random']" in capsys.readouterr().err
        assert main(["run", "--tasks", "branin", "--peers", "nobody", "random_search"]) == 2
        assert "peers: ['nobody'] not among ['ours', 'dehb'," in capsys.readouterr().err
        assert main(["run", "--tasks", "brannin"]) == 2
        assert "no problem is named 'brannin'" in capsys.readouterr().err
        assert main(["report", *common[:3]]) == 2
        assert f"{tmp_path} holds no records of this" in capsys.readouterr().err
        missing = ["--tasks", "lcbench 3945", f"--data={tmp_path}", f"--records={tmp_path}"]
        assert main(["run", *missing]) == 2
        assert "missing" in capsys.readouterr().err
        for wrong in ("--seeds=0", "--sigma=-1"):
            with pytest.raises(SystemExit):
                main(["run", wrong])

    def test_again_drops_what_is_asked_for_and_only_if_it_can_be_played(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = file_of("random", "branin", tmp_path)
        for seed in range(3):
            append(record("random", "branin", seed, 1.0), file)
        command = ["run", "--tasks", "branin", f"--records={tmp_path}", "--peers", "random_search"]
        assert main([*command, "--again", "random", "wild"]) == 2
        assert "--again: ['wild'] not among ['random']" in capsys.readouterr().err
        assert len(read([file])) == 3
        assert main([*command, "--again", "random", "--seeds=1"]) == 0
        assert [(one.seed, one.tried) for one in read([file])][:2] == [(1, 20), (2, 20)]
        assert [one.seed for one in read([file])] == [1, 2, 0]

    def test_noise_is_set_where_it_can_be(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        command = [f"--records={tmp_path}", "--seeds=1", "--sigma=0.5"]
        play = ["run", *command, "--peers", "random_search", "--workers=1"]
        both = ["--tasks", "svm digits table", "branin"]
        assert main([*play, *both]) == 0
        assert "left out, for their noise is their own: svm digits table" in capsys.readouterr().err
        assert [file.name for file in tmp_path.glob("*.jsonl")] == [
            "random--branin-sigma-0.5.jsonl"
        ]
        assert main(["report", *command, *both, f"--output={tmp_path / 'out'}"]) == 0
        assert main([*play, *both[:2]]) == 2
        assert "--sigma=0.5 suits none of the tasks" in capsys.readouterr().err
