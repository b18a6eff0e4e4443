import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import mfhpo


def loaded_by(statement):
    """Top-level modules in a fresh interpreter after `statement`."""
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        (
            "import mfhpo.simulation.runner; from mfhpo import MFUCB, Problem, SubGaussian; "
            "MFUCB(Problem(2, (1.0,), noise=SubGaussian(1.0))).ask()",
            {"numba"},
        ),
        ("import mfhpo", {"lightgbm", "numba", "optuna", "pandas", "plotly", "ray", "sklearn"}),
        ("import mfhpo_optuna", {"lightgbm", "numba", "pandas", "plotly", "ray", "sklearn"}),
        ("import mfhpo_ray", {"lightgbm", "mfhpo_optuna", "numba", "optuna", "plotly", "sklearn"}),
        ("import mfhpo_sklearn", {"lightgbm", "mfhpo_optuna", "numba", "optuna", "plotly", "ray"}),
    ],
)
def test_import_loads_no_library_it_can_do_without(statement, unwanted):
    assert not loaded_by(statement) & unwanted


def test_version_is_that_of_the_installed_distribution():
    assert mfhpo.__version__ == version("mfhpo")


def test_what_is_known_of_a_problem_rests_on_no_race():
    root = Path(mfhpo.__file__).parent
    below = {"knowledge": ("_validation", "knowledge"), "problem.py": ("_validation", "knowledge")}
    below["policy.py"] = ("_validation", "knowledge", "problem")
    for name, allowed in below.items():
        files = [root / name] if name.endswith(".py") else sorted((root / name).glob("*.py"))
        for file in files:
            imported = re.findall(
                r"^\s*(?:from|import) mfhpo\.(\w+)", file.read_text("utf-8"), re.M
            )
            assert set(imported) <= set(allowed), file
