import ast
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import mfhpo
import mfhpo_optuna


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        (
            "import benchmarks.simulation.runner; from mfhpo import MFUCB, Problem, SubGaussian; "
            "MFUCB(Problem(2, (1.0,), noise=SubGaussian(1.0))).ask()",
            {"numba"},
        ),
        ("import mfhpo", {"lightgbm", "numba", "optuna", "pandas", "plotly", "ray", "sklearn"}),
        ("import mfhpo_optuna", {"mfhpo", "numpy", "optuna", "scipy"}),
        (
            "from mfhpo_optuna import SearchSampler",
            {"mfhpo_optuna.report", "mfhpo_optuna.visualization", "scipy.optimize", "scipy.stats"},
        ),
        (
            "from mfhpo_optuna import *",
            {"jinja2", "lightgbm", "matplotlib", "numba", "pandas", "plotly", "ray", "rich"}
            | {"scipy.optimize", "scipy.stats", "sklearn", "typer"},
        ),
        ("import mfhpo_ray", {"lightgbm", "mfhpo_optuna", "numba", "optuna", "plotly", "sklearn"}),
        ("import mfhpo_sklearn", {"lightgbm", "mfhpo_optuna", "numba", "optuna", "plotly", "ray"}),
    ],
)
def test_import_loads_no_library_it_can_do_without(statement, unwanted):
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout.split()) & unwanted


def test_names_of_mfhpo_optuna_are_imported_from_where_type_checkers_look_for_them():
    tree = ast.parse(Path(mfhpo_optuna.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    told = {alias.name: node.module for node in imports for alias in node.names}
    del told["TYPE_CHECKING"], told["import_module"]
    assert told == mfhpo_optuna._MODULES
    assert sorted(mfhpo_optuna._MODULES) == sorted(mfhpo_optuna.__all__)
    assert set(mfhpo_optuna.__all__) < set(dir(mfhpo_optuna))


def test_names_may_be_used_in_several_threads_at_first():
    code = """
import optuna
from concurrent.futures import ThreadPoolExecutor
import mfhpo_optuna
names = [*mfhpo_optuna.__all__, "visualization"]
with ThreadPoolExecutor(len(names)) as pool:
    print(len(list(pool.map(lambda name: getattr(mfhpo_optuna, name), names))) == len(names))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


def test_version_is_that_of_the_installed_distribution():
    assert mfhpo.__version__ == version("mfhpo")
