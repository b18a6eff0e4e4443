"""Every example runs as a newcomer runs it: from the command line, in a folder of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN_TESTS = {"attacker_defender.py", "two_tenants.py"}
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name not in OWN_TESTS)

# What an example leaves behind, if anything, and a word of what it prints.
EXPECTED = {
    "automl_service.py": (None, "\nRCUCB "),
    "certify_study.py": (None, "\nthe certificate promises "),
    "quickstart.py": ("race.html", "\nCERTIFIED"),
    "ray_architecture_search.py": (None, "\nCERTIFIED"),
    "ray_lightgbm.py": (None, "\n  the certificate, "),
    "runaway_trials.py": (None, "\nlimit of 0.5 s "),
    "search_then_certify.py": ("race.html", "\n  the certificate promises "),
}
# Those that take long can be told to do less.
OPTIONS = {
    "automl_service.py": ["--rounds", "12"],
    "ray_architecture_search.py": ["--quick"],
    "ray_lightgbm.py": ["--quick", "--scheduler"],
    "runaway_trials.py": ["--seconds", "5"],
    "search_then_certify.py": ["--trainings", "60"],
}
# A process of Ray's takes longer to start than most trials take.
WITH_RAY = ["ray_architecture_search.py", "ray_lightgbm.py"]
RUNS = [
    pytest.param(
        path,
        OPTIONS.get(path.name, []),
        id=path.name,
        marks=pytest.mark.cluster if path.name in WITH_RAY else pytest.mark.slow,
    )
    for path in EXAMPLES
]


@pytest.mark.parametrize(("example", "options"), RUNS)
def test_example_runs(example, options, tmp_path):
    pytest.importorskip("lightgbm")
    pytest.importorskip("plotly")
    if example.name in WITH_RAY:
        pytest.importorskip("ray.tune")
    paths = [str(ROOT), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(example), *options],
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
