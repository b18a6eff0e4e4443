"""Results of today's code and of earlier versions, and what pages say about them."""

import pytest

from benchmarks.evidence import __main__ as evidence
from benchmarks.evidence import tables
from benchmarks.evidence.freshness import is_of_present_code
from benchmarks.fingerprints import recorded
from benchmarks.hpo.identity import identity_by
from benchmarks.rests_on import kinds_of

COMMAND = "python -m benchmarks.papers.iise --data=FOLDER --runs=100"
NOW = {kind: recorded()[kind] for kind in kinds_of("benchmarks.papers.iise")}
BEFORE = NOW | {"policy IISE, declared": "another"}
PLAYED = identity_by(recorded())


def hpo(*identities):
    played = {"mfhpo search": list(identities), "random": [""]}
    return {"command": "", "ours": ["mfhpo search"], "identities": played}


@pytest.mark.parametrize(
    ("report", "present"),
    [
        ({"command": COMMAND, "fingerprints": NOW}, True),
        ({"command": COMMAND, "fingerprints": BEFORE}, False),
        ({"command": COMMAND}, False),
        ({"command": "python -m benchmarks.overhead"}, True),
        ({"command": "python -m benchmarks.overhead", "fingerprints": NOW}, False),
        (
            {
                "command": COMMAND,
                "fingerprints": NOW,
                "cells": [{"fingerprints": NOW}, {}],
            },
            True,
        ),
        ({"command": COMMAND, "fingerprints": NOW, "cells": [{"fingerprints": BEFORE}]}, False),
        ({"command": f"{COMMAND} and it's told in words", "fingerprints": NOW}, True),
        (hpo(PLAYED), True),
        (hpo(PLAYED, "another"), False),
        ({"command": "", "ours": ["mfhpo search"]}, False),
        ({"command": "", "workers": {"1": hpo(PLAYED), "4": hpo(PLAYED)}}, True),
        ({"command": "", "workers": {"1": hpo(PLAYED), "4": hpo("another")}}, False),
    ],
)
def test_a_result_is_of_the_present_code_if_all_of_it_is(report, present):
    assert is_of_present_code(report) == present


def test_a_page_says_what_is_of_an_earlier_version(monkeypatch):
    reports = {
        "new": {"command": COMMAND, "fingerprints": NOW, "date": "2026-01-01", "value": 1},
        "old": {"command": COMMAND, "fingerprints": BEFORE, "date": "2025-12-31", "value": 2},
    }
    monkeypatch.setattr(tables, "_read", reports.__getitem__)
    figures = {
        "of both": lambda: f"{tables.result('new')['value']}, {tables.result('old')['value']}",
        "of the new one": lambda: str(tables.result("new")["value"]),
    }
    monkeypatch.setattr(evidence, "FIGURES", figures)
    assert evidence.marked("of the new one") == "1"
    assert evidence.marked("of both") == (
        "1, 2\n\n*Of an earlier version of the code: old (2025-12-31).*"
    )
