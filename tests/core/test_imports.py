"""Importing the library stays cheap: a host library is loaded by its own integration only."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import mfhpo


def loaded_by(statement: str) -> set[str]:
    """Top-level modules in a fresh interpreter after `statement`."""
    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("package", "unwanted"),
    [
        ("mfhpo", {"lightgbm", "numba", "optuna", "pandas", "plotly", "ray", "sklearn"}),
        ("mfhpo_optuna", {"lightgbm", "numba", "pandas", "plotly", "ray", "sklearn"}),
        ("mfhpo_ray", {"lightgbm", "mfhpo_optuna", "numba", "optuna", "plotly", "sklearn"}),
        ("mfhpo_sklearn", {"lightgbm", "mfhpo_optuna", "numba", "optuna", "plotly", "ray"}),
    ],
)
def test_import_loads_no_library_it_can_do_without(package: str, unwanted: set[str]) -> None:
    loaded = loaded_by(f"import {package}")
    assert package in loaded
    assert not loaded & unwanted


def test_version_is_that_of_the_installed_distribution() -> None:
    assert mfhpo.__version__ == version("mfhpo")
