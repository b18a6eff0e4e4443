"""Objectives that hang, crash and leave things behind, beside what Optuna alone does with them."""

import sys

import pytest

from tests.reliability.objectives import CASES, check, play

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

# Those that `make test` plays; the others have the marker `faults`.
QUICK = {
    "closes all descriptors",
    "leaves a daemon behind",
    "leaves 200 files open",
    "raises what cannot be pickled",
    "reads address zero",
}


def cases():
    for case in CASES:
        marks = [] if case.words in QUICK else [pytest.mark.faults]
        yield pytest.param(case, marks=marks, id=case.words)


@pytest.mark.parametrize("case", list(cases()))
def test_with_limits(case, tmp_path, results):
    found = play(case, tmp_path, limited=True)
    results.append(found)
    check(found, case)


@pytest.mark.faults
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_optuna_alone(case, tmp_path, results):
    found = play(case, tmp_path, limited=False)
    results.append(found)
