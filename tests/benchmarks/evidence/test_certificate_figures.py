"""What the tables of certificates say."""

import pytest

from benchmarks.evidence import certificates, tables


@pytest.fixture
def races(monkeypatch):
    """As if races of 100 had ended with so many certificates, so many of them wrong."""

    def write(certified, wrong):
        row = {"scenario": "normal", "by": "IISE", "races": 100}
        found = {"rows": [row | {"certified": certified, "wrong": wrong}]}
        monkeypatch.setattr(tables, "_read", lambda name: found)

    return write


@pytest.mark.parametrize(
    ("certified", "wrong", "cell"),
    [
        (100, 3, "3.0 %"),
        (50, 9, "**9 %**"),
        (4, 3, "3.0 % (3 of 4)"),
        (0, 0, "0.0 % (0 of 0)"),
    ],
)
def test_few_certificates_are_counted(races, certified, wrong, cell):
    races(certified, wrong)
    cells = certificates.assumptions().splitlines()[-1].split("|")
    assert cells[2 + certificates._POLICIES.index("IISE")].strip() == cell
