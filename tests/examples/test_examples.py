"""Every example runs as a newcomer runs it: from the command line, in a folder of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN_TESTS = {"attacker_defender.py", "small_networks.py", "two_tenants.py"}
# Options with which it takes less time, what it leaves behind, and a word of what it prints.
EXPECTED = {
    "architecture_search.py": (["--trainings", "20"], "race.html", "\n  shortlist   of "),
    "automl_service.py": (["--rounds", "12"], None, "\nRCUCB "),
    "certify_study.py": ([], None, "\nthe certificate promises "),
    "quickstart.py": ([], "race.html", "\nCERTIFIED"),
    "ray_architecture_search.py": (["--quick"], None, "\nCERTIFIED"),
    "ray_lightgbm.py": (["--quick", "--scheduler"], None, "\n  the certificate, "),
    "runaway_trials.py": (["--seconds", "5"], None, "\nlimit of 0.5 s "),
    "search_then_certify.py": (
        ["--trainings", "60"],
        "race.html",
        "\n  the certificate promises ",
    ),
}
# A process of Ray's takes longer to start than most trials take.
MARKS = {True: pytest.mark.cluster, False: pytest.mark.slow}
RUNS = [
    pytest.param(path, id=path.name, marks=MARKS[path.name.startswith("ray_")])
    for path in sorted((ROOT / "examples").glob("*.py"))
    if path.name not in OWN_TESTS
]


@pytest.mark.parametrize("example", RUNS)
def test_example_runs(example, tmp_path):
    options, written, printed = EXPECTED[example.name]
    pytest.importorskip("lightgbm")
    pytest.importorskip("plotly")
    if example.name.startswith("ray_"):
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
    assert printed in done.stdout
    assert written is None or (tmp_path / written).stat().st_size > 0
