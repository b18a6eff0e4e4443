"""Servers for the tests of this folder, and the file that the figures of their cells go to."""

import json
import os
from pathlib import Path

import pytest

from benchmarks.provenance import provenance
from benchmarks.report import as_json, write
from tests.reliability.places import PLACES

# Names the file; `make test-faults` sets it.
_RESULTS = "MFHPO_RELIABILITY"


@pytest.fixture(scope="session")
def servers():
    """Servers by their names, each started when a test first needs it."""
    running = {}
    yield running
    for server in running.values():
        server.close()


@pytest.fixture
def place(request, servers, tmp_path):
    """A storage that nobody has used, of the kind that the test names."""
    kind = PLACES[request.param]
    if kind.missing():
        pytest.skip(kind.missing())
    found = kind(servers, tmp_path)
    yield found
    found.close()


@pytest.fixture(scope="session")
def results():
    """Figures of cells, written at the end if a file is named; cells that did not run stay."""
    cells = []
    yield cells
    file = os.environ.get(_RESULTS)
    if file and cells:
        path = Path(file)
        earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"cells": []}
        played = [_key(cell) for cell in cells]
        kept = [
            {"code": earlier.get("code", ""), **cell}
            for cell in earlier["cells"]
            if _key(cell) not in played
        ]
        packages = ("optuna", "sqlalchemy", "psycopg", "redis", "grpcio")
        report = provenance("pytest", ["tests/reliability"], *packages)
        write(path, as_json({**report, "cells": [*kept, *cells]}))


def _key(cell):
    return tuple(cell.get(name) for name in ("storage", "sampler", "fault", "objective"))
