import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.assumptions.__main__ import main
from benchmarks.assumptions.contestants import run
from benchmarks.assumptions.truth import Tally, claim_fails, false_facts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "contestant"),
    [
        ("order, 16 workers", "MFTopTwo"),
        ("order, 16 workers", "MFSampler"),
        ("quick failures, 8 workers", "MFSampler"),
        ("quick failures, 8 workers", "MFSearch"),
        ("failures 40 %", "group-sequential"),
        ("failures 25 %", "certify"),
        ("failures 25 %", "IISE"),
        ("late bloomer of 12", "MFTopTwo"),
        ("noisy best", "MFLUCB"),
        ("noisy rival", "group-sequential"),
        ("noisy rival", "blocks"),
        ("six arms alike", "blocks"),
        ("low values fail", "blocks"),
        ("order, 4 workers", "blocks"),
        ("failures 25 %", "blocks"),
        ("two noisy ones tied", "group-sequential"),
        ("sigma half", "MFTopTwo"),
        ("sigma half", "group-sequential"),
        ("rare divergence, bounded", "group-sequential"),
    ],
)
def test_certificates_keep_their_word(scenario, contestant):
    n = 40
    outcomes = [run((scenario, contestant, seed)) for seed in range(n)]
    most = binom.isf(0.001, n, 0.05)
    assert sum(outcome.wrong for outcome in outcomes) <= most
    assert sum(outcome.claim_fails for outcome in outcomes) <= most
    assert not any(outcome.false_facts for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("contestant", ["MFTopTwo", "certify", "group-sequential", "blocks"])
def test_what_stays_unseen_is_said(contestant):
    outcomes = [run(("rare divergence", contestant, seed)) for seed in range(10)]
    assert any(outcome.wrong for outcome in outcomes)
    assert not any(outcome.false_facts for outcome in outcomes)
    # Each divergence has a share of 5 %: the text of none excludes outcomes as frequent as that.
    assert all(outcome.unseen_percent > 5.0 for outcome in outcomes if outcome.wrong)


def test_a_race_is_repeatable_by_its_seed():
    task = ("failures 25 %", "certify", 3)
    assert run(task) == run(task)


@pytest.mark.slow
def test_shared_noise_breaks_certificates_and_no_data_can_show_it():
    outcomes = [run(("shared noise", "certify", seed)) for seed in range(30)]
    assert sum(outcome.wrong for outcome in outcomes) >= 3


@pytest.mark.parametrize(
    ("claim", "not_compared", "fails"),
    [
        ("within 0.1 of the best of the 3 best of 9 trials", [], True),
        ("within 0.4 of the best of the 3 best of 9 trials", [], False),
        ("within 0.1 of the best of the 2 compared, of the 3 best of 9 trials", [2], False),
        ("within epsilon = 0.01 of the best of the 2 arms that were compared", [2], True),
        ("nothing is claimed", [], False),
        ("  trial 2    1         160          0.9   [0.8, 1.0]  worse", [], True),
        ("  trial 1    1         160          0.5   [0.4, 0.6]  worse", [], False),
    ],
)
def test_a_printed_claim_is_compared_with_the_truth(claim, not_compared, fails):
    assert claim_fails(claim, 0, np.array([0.5, 0.55, 0.9]), not_compared) is fails


@pytest.mark.parametrize(
    ("text", "false"),
    [
        ("within 0.1 of the best of the 2 arms\nnot compared  arm 2 {'x': 2}: failed 3 of 3", []),
        ("within 0.1 of the best of the 3 arms", ["arm 2: compared without a value"]),
        ("within 0.1 of the best of the 2 arms", ["2 compared", "arm 2: compared without a value"]),
        ("not compared  trial 2: failed 2 of 3", ["arm 2: failed 2"]),
        ("cost  9 in 8 trials; failed 3 of 9, and all", ["9 evaluations"]),
        ("cost  8 evaluations", ["no failures"]),
        ("outcomes rarer than 63 % of evaluations of this arm (3 seen)", []),
        ("outcomes rarer than 63 % of trial 1 (3 seen)", ["arm 1: 3 seen"]),
        ("outcomes rarer than 6 % of this arm (3 seen)", ["6 % unseen of 3"]),
    ],
)
def test_printed_facts_are_counted(text, false):
    tally = Tally(3)
    for arm, value in [(0, 1.0)] * 3 + [(1, 0.5)] * 2 + [(2, None)] * 3:
        tally.add(arm, value)
    assert false_facts(text, 0, tally) == false


def test_the_command_writes_a_table(tmp_path, capsys):
    file = tmp_path / "table.json"
    options = ["--races", "2", "--workers", "1", "--only", "accuracies", "--by", "certify"]
    assert main([*options, "--output", str(file)]) == 0
    assert "| accuracies | certify | 2 |" in capsys.readouterr().out
    assert file.with_suffix(".md").read_text(encoding="utf-8").startswith("| scenario |")
