"""Results of today's code and of earlier versions, and what pages say about them."""

import pytest

from benchmarks.dependencies import code_of
from benchmarks.evidence import __main__ as evidence
from benchmarks.evidence import tables
from benchmarks.evidence.freshness import is_of_present_code
from benchmarks.hpo.identity import identity_of
from benchmarks.hpo.methods import OURS

COMMAND = "python -m benchmarks.papers.iise --data=FOLDER --runs=100"
CODE = code_of("benchmarks.papers.iise")
PLAYED = identity_of(OURS)


def hpo(*identities):
    played = {"mfhpo search": list(identities), "random": [""]}
    return {"command": "", "ours": ["mfhpo search"], "identities": played}


@pytest.mark.parametrize(
    ("report", "present"),
    [
        ({"command": COMMAND, "code": CODE}, True),
        ({"command": COMMAND, "code": "another"}, False),
        ({"command": COMMAND}, False),
        ({"command": COMMAND, "code": CODE, "cells": [{"code": CODE}, {"value": 1}]}, True),
        ({"command": COMMAND, "code": CODE, "cells": [{"code": "another"}]}, False),
        ({"command": f"{COMMAND} and it's told in words", "code": CODE}, True),
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
        "new": {"command": COMMAND, "code": CODE, "date": "2026-01-01", "value": 1},
        "old": {"command": COMMAND, "code": "another", "date": "2025-12-31", "value": 2},
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
