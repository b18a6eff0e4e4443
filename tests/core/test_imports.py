import subprocess
import sys
from importlib.metadata import version

import pytest

import mfhpo


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        (
            "import mfhpo.simulation.runner; from mfhpo import MFUCB, Problem, SubGaussian; "
            "MFUCB(Problem(2, (1.0,), noise=SubGaussian(1.0))).ask()",
            {"numba"},
        ),
        ("import mfhpo", {"lightgbm", "numba", "optuna", "pandas", "plotly", "ray", "sklearn"}),
        (
            "import mfhpo_optuna",
            {"jinja2", "lightgbm", "numba", "pandas", "plotly", "ray", "sklearn", "typer"},
        ),
        ("import mfhpo_ray", {"lightgbm", "mfhpo_optuna", "numba", "optuna", "plotly", "sklearn"}),
        ("import mfhpo_sklearn", {"lightgbm", "mfhpo_optuna", "numba", "optuna", "plotly", "ray"}),
    ],
)
def test_import_loads_no_library_it_can_do_without(statement, unwanted):
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout.split()) & unwanted


def test_version_is_that_of_the_installed_distribution():
    assert mfhpo.__version__ == version("mfhpo")
