"""Every example runs as a newcomer runs it: from the command line, in a folder of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

# What an example leaves behind, if anything, and a word of what it prints.
EXPECTED = {
    "automl_service.py": (None, "\nRCUCB "),
    "quickstart.py": ("race.html", "\nCERTIFIED"),
    "runaway_trials.py": (None, "\nlimit of 0.5 s "),
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    pytest.importorskip("plotly")
    paths = [str(ROOT), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    written, printed = EXPECTED[example.name]
    assert printed in done.stdout
    assert written is None or (tmp_path / written).stat().st_size > 0
