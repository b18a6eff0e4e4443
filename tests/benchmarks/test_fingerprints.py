"""What the present code chooses is what is recorded; results rest on kinds that there are."""

import json

import pytest

from benchmarks import fingerprints
from benchmarks.evidence.plan import BENCHMARKS
from benchmarks.fingerprints import HOSTS, choices_of, host_of, present_kinds, recorded
from benchmarks.provenance import ROOT, provenance
from benchmarks.replay.policies import POLICIES
from benchmarks.rests_on import _PREFIXES, kinds_of


@pytest.mark.parametrize("host", HOSTS)
def test_the_present_code_chooses_as_recorded(host):
    """If it is meant to choose otherwise: python -m benchmarks.fingerprints --write."""
    kinds = [kind for kind in present_kinds() if host_of(kind) == host]
    assert fingerprints.fingerprints(kinds) == {
        kind: found for kind, found in recorded().items() if host_of(kind) == host
    }


@pytest.mark.parametrize("program", _PREFIXES)
def test_each_program_rests_on_kinds_that_there_are(program, monkeypatch):
    for prefix in _PREFIXES[program]:
        monkeypatch.setitem(_PREFIXES, program, (prefix,))
        assert kinds_of(program), prefix


def test_each_benchmark_is_listed():
    for benchmark in BENCHMARKS:
        kinds_of(benchmark.module)
    with pytest.raises(ValueError, match=r"program='benchmarks\.none' is not listed"):
        kinds_of("benchmarks.none")


def test_a_choice_counts_and_a_digit_does_not(monkeypatch):
    run = "policy MFUCB"
    record = POLICIES[run](None)
    moved = json.loads(json.dumps(record))
    moved["pulls"][7][0] = (moved["pulls"][7][0] + 1) % 5
    assert choices_of(moved) != choices_of(record)
    trial = {"params": {"x": 0.12345678}, "state": "COMPLETE", "values": [1.0]}
    other = {"params": {"x": 0.12345679}, "state": "COMPLETE", "values": [1.1]}
    records = [
        {"trials": [one], "answer": ["CERTIFIED: x", value]}
        for one, value in ((trial, 1), (other, 2))
    ]
    assert choices_of(records[0]) == choices_of(records[1])
    fingerprints.play.cache_clear()
    before = fingerprints.fingerprints([run])
    monkeypatch.setitem(POLICIES, run, lambda data: moved)
    fingerprints.play.cache_clear()
    assert fingerprints.fingerprints([run]) != before
    fingerprints.play.cache_clear()


def test_a_result_says_how_the_measured_code_chooses():
    said = provenance("benchmarks.papers.nash", ["--runs=2"], "optuna")
    assert said["command"] == "python -m benchmarks.papers.nash --runs=2"
    assert set(said["fingerprints"]) == set(kinds_of("benchmarks.papers.nash"))
    if (ROOT / ".git").exists():
        assert len(said["commit"].removesuffix("+")) == 12
