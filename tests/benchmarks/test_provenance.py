from benchmarks.provenance import ROOT, provenance


def test_a_result_says_how_the_measured_code_chooses():
    said = provenance("benchmarks.papers.nash", ["--runs=2"], "optuna")
    assert said["command"] == "python -m benchmarks.papers.nash --runs=2"
    assert set(said["fingerprints"]) == {"game MF-UCB-PNE", "game UCB-PNE"}
    if (ROOT / ".git").exists():
        assert len(said["commit"].removesuffix("+")) == 12
