from benchmarks.dependencies import ROOT, code_of
from benchmarks.provenance import programs, provenance


def test_a_result_says_with_which_code_it_was_measured():
    said = provenance("benchmarks.papers.iise", ["--runs=2"], "optuna")
    assert said["command"] == "python -m benchmarks.papers.iise --runs=2"
    assert said["code"] == code_of("benchmarks.papers.iise")
    if (ROOT / ".git").exists():
        assert len(said["commit"].removesuffix("+")) == 12


def test_tests_are_programs_too():
    found = programs("pytest", ["tests/reliability"])
    assert "tests/reliability/workers.py" in found
    assert programs("benchmarks.certify", ["--seeds=3"]) == ["benchmarks.certify"]
