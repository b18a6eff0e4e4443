"""All benchmarks one after the other, with programs that are made up."""

import json
import shlex

import pytest

from benchmarks.evidence import run
from benchmarks.evidence.plan import BENCHMARKS, LEFT_OUT, Benchmark
from benchmarks.evidence.tables import RESULTS

PROGRAM = """
import json, sys
arguments = sys.argv[1:]
print("arguments:", *arguments[:2])
report = {report}
with open(arguments[arguments.index("--output") + 1], "w") as file:
    json.dump(report, file)
"""
OF_TODAY = {"command": "python -m benchmarks.size", "fingerprints": {}}


@pytest.fixture
def played(tmp_path, monkeypatch, capsys):
    """Runs the command with benchmarks of a made-up program; returns status, page and lines."""
    (tmp_path / "made_up.py").write_text(PROGRAM.format(report=OF_TODAY), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MFHPO_DATA", str(tmp_path / "data"))

    def play(*benchmarks, arguments=()):
        monkeypatch.setattr(run, "BENCHMARKS", benchmarks)
        status = run.main([f"--output={tmp_path / 'out'}", *arguments])
        text = (tmp_path / "out" / "evidence.md").read_text(encoding="utf-8")
        return status, text, capsys.readouterr().err.splitlines()

    return play


def test_what_the_present_code_has_measured_is_not_measured_again(played, tmp_path):
    one = Benchmark("first", "made_up", "--runs 2")
    played(one)
    _, text, lines = played(one)
    assert lines[0] == "first: was measured before, 0 s"
    assert "arguments: --runs 2" in text
    other = {**OF_TODAY, "fingerprints": {"another": "kind"}}
    (tmp_path / "out" / "first.json").write_text(json.dumps(other))
    _, _, lines = played(one)
    assert lines[0].startswith("first: done")


class TestPlan:
    def test_it_measures_each_results_file_but_those_that_others_make(self):
        there = {file.stem for file in RESULTS.glob("*.json")} - {
            "fingerprints",
            "hpo_judged_begun",
        }
        assert there == {one.name for one in BENCHMARKS} | set(LEFT_OUT)
        assert len(there) == len(BENCHMARKS) + len(LEFT_OUT)

    @pytest.mark.parametrize("one", BENCHMARKS, ids=lambda one: one.name)
    def test_a_result_was_measured_by_the_program_that_is_planned(self, one):
        command = json.loads((RESULTS / f"{one.name}.json").read_text("utf-8"))["command"]
        assert shlex.split(command)[2] == one.module
        if one.module != "benchmarks.hpo":  # which is played by one command, and shown by another
            assert one.full in command.replace("=", " ")

    def test_the_comparison_is_played_and_then_reported(self, tmp_path):
        [one] = [one for one in BENCHMARKS if one.name == "hpo"]
        first, second = one.commands("small", tmp_path, tmp_path)
        assert first[:2] == ["benchmarks.hpo", "run"]
        assert second[:2] == ["benchmarks.hpo", "report"]
        assert second[-2:] == ["--output", str(tmp_path)]
        assert one.commands("full", tmp_path, tmp_path)[0] == ["benchmarks.hpo", "run"]
