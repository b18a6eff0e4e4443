"""A short form of `make assumptions`, and its reading of what answers print."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.assumptions.__main__ import main
from benchmarks.assumptions.contestants import CONTESTANTS, run, takes_part
from benchmarks.assumptions.scenarios import SCENARIOS
from benchmarks.assumptions.truth import false_sentences


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "contestant"),
    [
        ("failures 40 %", "group-sequential"),
        ("failures 25 %", "certify"),
        ("failures 25 %", "MFTopTwo"),
        ("noisy rival", "group-sequential"),
        ("two noisy ones tied", "group-sequential"),
        ("sigma half", "MFTopTwo"),
        ("rare divergence, bounded", "group-sequential"),
    ],
)
def test_certificates_keep_their_word(scenario: str, contestant: str) -> None:
    n = 40
    outcomes = [run((scenario, contestant, seed)) for seed in range(n)]
    most = binom.isf(0.001, n, 0.05)
    assert sum(outcome.wrong for outcome in outcomes) <= most
    assert sum(outcome.is_false for outcome in outcomes) <= most


def test_a_race_is_repeatable_by_its_seed() -> None:
    task = ("failures 25 %", "certify", 3)
    assert run(task) == run(task)


def test_shared_noise_breaks_certificates_and_no_data_can_show_it() -> None:
    outcomes = [run(("shared noise", "certify", seed)) for seed in range(30)]
    assert sum(outcome.wrong for outcome in outcomes) >= 3


def test_every_scenario_has_its_contestants() -> None:
    for scenario in SCENARIOS:
        who = [name for name in CONTESTANTS if takes_part(name, scenario)]
        assert "MFTopTwo" in who
        assert ("certify" in who) == (scenario.with_certificates and scenario.workers == 1)


@pytest.mark.parametrize(
    ("claim", "not_compared", "is_false"),
    [
        ("within 0.1 of the best of the 3 best of 9 trials", [], True),
        ("within 0.4 of the best of the 3 best of 9 trials", [], False),
        ("within 0.1 of the best of the 2 compared, of the 3 best of 9 trials", [2], False),
        ("within epsilon = 0.1 of the best of the 3 arms that were compared", [2], True),
        ("nothing is claimed", [], False),
    ],
)
def test_a_printed_claim_is_compared_with_the_truth(
    claim: str, not_compared: list[int], is_false: bool
) -> None:
    assert false_sentences(claim, 0, np.array([0.5, 0.55, 0.9]), not_compared) is is_false


def test_the_command_writes_a_table(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "table.json"
    options = ["--races", "2", "--workers", "1", "--only", "accuracies", "--by", "certify"]
    assert main([*options, "--output", str(file)]) == 0
    assert "| accuracies | certify | 2 |" in capsys.readouterr().out
    assert file.with_suffix(".md").read_text(encoding="utf-8").startswith("| scenario |")
